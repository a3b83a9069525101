#!/bin/sh
# The version that this tree is, as its CMakeLists.txt says.
sed -n 's/^project(vram VERSION \([0-9.]*\) .*/\1/p' "$(dirname "$0")/../CMakeLists.txt"
