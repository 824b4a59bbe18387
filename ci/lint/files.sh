# Which files are ours: what git tracks, and what it would track. Sourced by the lints.
# shellcheck shell=bash

set -euo pipefail

# ours PATTERN...: the paths that match (git's globs, from the top), one a line; fails when none does,
# so that a lint cannot pass by reading nothing.
ours() {
  # safe.directory: a container or sudo may run this as another user than the one who cloned.
  git -c safe.directory="$PWD" ls-files --cached --others --exclude-standard -- "$@" |
    while read -r path; do [[ ! -f $path ]] || printf '%s\n' "$path"; done | grep .
}
