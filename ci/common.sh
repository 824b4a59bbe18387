# What ci/check, ci/test and ci/setup share. Sourced, not run.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# `su` without a dash leaves root without the folders in which dpkg looks for its tools.
PATH="${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
export PATH

# say LINE...: for people, so never in the way of what a program prints.
say() { printf '%s\n' "$@" >&2; }

# print_header SCRIPT: the comment it opens with.
print_header() { sed -n '2,/^$/s/^# \{0,1\}//p' "$1"; }

# build PRESET [TARGET...]: configures and builds; of configuring only what went wrong is shown.
build() {
  local preset=$1 log="$root/build/configure-$1.log" targets=()
  shift
  (($#)) && targets=(--target "$@")
  mkdir -p "$root/build"
  cd -- "$root" || return  # where cmake looks for the presets; callers run this in a subshell
  if ! cmake --preset "$preset" > "$log" 2>&1; then
    cat "$log" >&2
    say "cmake could not configure the preset '$preset'; what it said is above"
    return 1
  fi
  cmake --build --preset "$preset" "${targets[@]}" >&2
}
