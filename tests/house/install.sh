#!/bin/sh
# Installs the build into a separate folder and builds another project on it, by find_package and by pkg-config.
# Usage: install.sh CMAKE BUILD PREFIX CONSUMER CC GUIDE
set -eu
cmake=$1 build=$2 prefix=$3 consumer=$4 cc=$5 guide=$6

rm -rf "$prefix" "$prefix-consumer"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null
libdir=$(dirname "$(find "$prefix" -name libvram.a)")

"$cmake" -S "$consumer" -B "$prefix-consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >/dev/null
"$cmake" --build "$prefix-consumer" >/dev/null
"$prefix-consumer/consumer"
"$prefix-consumer/consumer_static"

for file in bin/vram include/vram/vram.h include/vram/replay.h include/vram/sim.h share/man/man1/vram.1 share/man/man1/vram-run.1 share/bash-completion/completions/vram \
    share/zsh/site-functions/_vram share/fish/vendor_completions.d/vram.fish \
    share/doc/vram/LICENSE share/doc/vram/docs/reference/json.md; do
    test -s "$prefix/$file" || { echo "not installed: $file"; exit 1; }
done
"$prefix/bin/vram" --version

# Every header compiles by itself, included twice, in C and C++, with every installed compiler.
mkdir "$prefix-consumer/headers"
for header in "$prefix"/include/vram/*.h; do
    name=$(basename "$header")
    printf '#include <vram/%s>\n#include <vram/%s>\n' "$name" "$name" >"$prefix-consumer/headers/$name.c"
done
for compiler in "$cc" gcc clang; do
    command -v "$compiler" >/dev/null || continue
    "$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$prefix-consumer"/headers/*.c
done
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only -x c++ "$prefix-consumer"/headers/*.c
    # The base of the plugs; the plugs need the headers of their libraries (tests/real/plugs).
    "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only -x c++ "$prefix/include/vram/plug.hpp"
    "$compiler" -std=c++20 -I"$prefix/include" -x c++ "$consumer/consumer.c" -x none "$libdir/libvram-sim.a" "$libdir/libvram.a" -pthread -ldl -lm \
        -o "$prefix-consumer/consumer_cxx"
    "$prefix-consumer/consumer_cxx"
done

# The installed command finds the libraries it loads into programs, and its page.
"$cc" -std=c11 "$consumer/device.c" -o "$prefix-consumer/device" -ldl
"$prefix/bin/vram" sim -- "$prefix-consumer/device" || { echo "vram sim does not run a program"; exit 1; }
"$prefix/bin/vram" sim -- "$prefix/bin/vram" run -o "$prefix-consumer/device.vram" -- "$prefix-consumer/device" >/dev/null 2>&1 ||
    { echo "vram run does not record"; exit 1; }
"$prefix/bin/vram" report "$prefix-consumer/device.vram" | grep -q -F '3.0 MiB' || { echo "the recording does not have the 3 MiB"; exit 1; }
if "$prefix/bin/vram" view --no-open -o "$prefix-consumer/page.html" "$prefix-consumer/device.vram" 2>"$prefix-consumer/page.log"; then
    grep -q '<html' "$prefix-consumer/page.html" || { echo "vram view wrote no page"; exit 1; }
else
    # Only a build without the tools for WebAssembly and TypeScript has no page.
    test $? -eq 4 || { cat "$prefix-consumer/page.log"; exit 1; }
fi

# The documents that the help names are in the folder that the doctor names; so are those of the formats' rows and of every option.
documents=$("$prefix/bin/vram" doctor --sim --json | sed -n 's/.*"value": "\(.*\)\/docs",$/\1/p')
test -d "$documents/docs" || { echo "vram doctor does not find the documents: '$documents'"; exit 1; }
for command in $("$prefix/bin/vram" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
    for page in $("$prefix/bin/vram" "$command" --help | grep -o '\([a-z]*/\)*[a-z-]*\.md'); do
        test -e "$documents/$page" || { echo "vram $command --help names $page, which is not installed"; exit 1; }
    done
done

# The first example of the guide, as it is installed, prints what the guide shows.
"$cc" -std=c11 -Wall -Wextra -Werror -I"$prefix/include" "$prefix/share/doc/vram/examples/ten_lines.c" "$libdir/libvram-sim.a" "$libdir/libvram.a" -pthread -ldl -lm -o "$prefix-consumer/example"
printed=$("$prefix-consumer/example" | tr -s ' \n' ' ')
tr -s ' \n' ' ' <"$guide" | grep -q -F -- "$printed" || { echo "the guide does not show: $printed"; exit 1; }

command -v pkg-config >/dev/null || { echo "pkg-config is not there: vram.pc not tried"; exit 0; }
export PKG_CONFIG_PATH="$libdir/pkgconfig"
# The flags are split into words on purpose.
# shellcheck disable=SC2046
"$cc" "$consumer/consumer.c" $(pkg-config --cflags --libs vram vram-sim) -o "$prefix-consumer/by-pkg-config"
LD_LIBRARY_PATH="$libdir" "$prefix-consumer/by-pkg-config"
# A snapshot needs the library for recordings, linked or next to libvram; without it the call names the missing library.
# shellcheck disable=SC2046
{
    "$cc" -Wall -Wextra -Werror "$consumer/snapshot.c" $(pkg-config --cflags --libs vram vram-sim) -o "$prefix-consumer/snapshot"
    "$cc" "$consumer/snapshot.c" $(pkg-config --cflags --libs vram-recordings vram vram-sim) -o "$prefix-consumer/snapshot-linked"
    "$cc" "$consumer/snapshot.c" $(pkg-config --cflags vram) -Wl,--undefined=vram_recordings_library \
        "$libdir/libvram-recordings.a" "$libdir/libvram-sim.a" "$libdir/libvram.a" -pthread -ldl -lm -o "$prefix-consumer/snapshot-static"
}
for program in snapshot snapshot-linked snapshot-static; do
    LD_LIBRARY_PATH="$libdir" "$prefix-consumer/$program" "$prefix-consumer/$program.pickle" written
    "$prefix/bin/vram" report "$prefix-consumer/$program.pickle" >/dev/null
done
mkdir "$prefix-consumer/alone"
cp -P "$libdir"/libvram.so* "$libdir"/libvram-sim.so* "$prefix-consumer/alone"
LD_LIBRARY_PATH="$prefix-consumer/alone" "$prefix-consumer/snapshot" "$prefix-consumer/none.pickle" missing
# Before 1.0 the library name (SONAME) contains the minor version.
version=$(pkg-config --modversion vram)
test -e "$libdir/libvram.so.${version%.*}" || { echo "no libvram.so.${version%.*}"; exit 1; }
test "$version" = "$("$prefix/bin/vram" --version | cut -d' ' -f2)"
