#!/bin/bash
# exports_only.sh LIBWEIR: every symbol it shows begins with weir_, and it needs nothing but the standard library.
set -euo pipefail

foreign=$(nm --dynamic --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | grep -v '^weir_' || true)
if [ -n "$foreign" ]; then
  printf 'libweir.so shows symbols that are not its interface:\n%s\n' "$foreign" >&2
  exit 1
fi
[ "$(nm --dynamic --defined-only "$1" | grep -c ' T weir_')" -ge 11 ] || { echo "libweir.so shows too few weir_ functions" >&2; exit 1; }
