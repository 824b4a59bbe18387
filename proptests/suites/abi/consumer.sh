#!/bin/bash
# consumer.sh CMAKE BUILD DIR: installs BUILD below DIR and builds consumer/ against the install, by CMake and by
# pkg-config.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cmake=$1 build=$2 dir=$3

rm -rf "$dir"
"$cmake" --install "$build" --prefix "$dir/prefix" > /dev/null
"$cmake" -G Ninja -S "$here/consumer" -B "$dir/build" -DCMAKE_PREFIX_PATH="$dir/prefix" > /dev/null
"$cmake" --build "$dir/build"
"$dir/build/from_cpp"
"$dir/build/from_c"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$dir/prefix" -name weir.pc)")
prefix="--define-variable=prefix=$dir/prefix"
# shellcheck disable=SC2046  # pkg-config answers in words of a command line
c++ -std=c++20 "$here/consumer/main.cpp" $(pkg-config "$prefix" --cflags weir-core) -o "$dir/by_pkg_config"
"$dir/by_pkg_config"
# shellcheck disable=SC2046
cc "$here/consumer/main.c" $(pkg-config "$prefix" --cflags --libs weir) -o "$dir/by_pkg_config_c"
LD_LIBRARY_PATH=$(dirname "$(find "$dir/prefix" -name libweir.so)") "$dir/by_pkg_config_c"
