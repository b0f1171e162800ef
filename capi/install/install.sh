#!/usr/bin/env bash
#
# Installs libttopt for C and C++: install.sh PREFIX [LIBRARY]
# After that `pkg-config ttopt` (with PKG_CONFIG_PATH=PREFIX/lib/pkgconfig) and CMake's find_package(ttopt) (with
# CMAKE_PREFIX_PATH=PREFIX) find it.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
(($# >= 1)) || { echo "usage: install.sh PREFIX [LIBRARY]" >&2; exit 1; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
library=${2:-$root/target/release/libttopt.so}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)

install -D -m 644 "$root/capi/include/ttopt.h" "$prefix/include/ttopt.h"
install -D -m 755 "$library" "$prefix/lib/libttopt.so"
mkdir -p "$prefix/lib/pkgconfig"
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" "$here/ttopt.pc.in" >"$prefix/lib/pkgconfig/ttopt.pc"
install -D -m 644 "$here/ttopt-config.cmake" "$prefix/lib/cmake/ttopt/ttopt-config.cmake"
# The library contains LLVM and what LLVM needs.
for licence in LICENSE-MIT LICENSE-APACHE capi/install/LICENSES-OTHERS; do
  install -D -m 644 "$root/$licence" "$prefix/share/doc/ttopt/${licence##*/}"
done
