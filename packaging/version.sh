#!/bin/sh
# Prints the version of this tree, from its CMakeLists.txt.
sed -n 's/^project(vram VERSION \([0-9.]*\) .*/\1/p' "$(dirname "$0")/../CMakeLists.txt"
