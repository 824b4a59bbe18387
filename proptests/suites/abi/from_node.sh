#!/bin/bash
# from_node.sh LIBWEIR DIR: runs caller.js with koffi, which is installed into DIR by npm the first time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if ! command -v node > /dev/null; then
  echo "skipped: node is not installed (Debian: nodejs, npm), so nobody calls weir from JavaScript here"
  exit 77
fi
if [ ! -d "$2/node_modules/koffi" ]; then
  npm install --prefix "$2" --no-audit --no-fund --no-save --loglevel=error koffi@2
fi
exec node "$here/caller.js" "$1" "$2/node_modules/koffi"
