#!/bin/sh
# The amalgamation compiles without a warning, as C and as C++, and handles every request as the library does.
# Usage: amalgamation.sh PYTHON SOURCE LIBRARY SIMULATOR COMMAND OUT COMPILER...
set -eu
python=$1 source=$2 library=$3 simulator=$4 command=$5 out=$6
shift 6
here=$(dirname "$0")
rm -rf "$out"
for kind in alone sim; do
    # The flags are split into words on purpose.
    # shellcheck disable=SC2046
    "$python" "$source/packaging/amalgamation/amalgamate.py" $([ $kind = sim ] && echo --sim) "$source" "$out/$kind"
done
cc=$1
shift
warn="-std=c11 -Wall -Wextra -Wpedantic -Werror"
for kind in alone sim; do
    # shellcheck disable=SC2086
    "$cc" $warn -O0 -c "$out/$kind/vram.c" -o "$out/$kind/vram.o" &
    # Another architecture has other headers.
    for compiler in "$@" aarch64-linux-gnu-gcc; do
        command -v "$compiler" >/dev/null || continue
        # shellcheck disable=SC2086
        "$compiler" $warn -fsyntax-only "$out/$kind/vram.c"
    done
done
wait
# shellcheck disable=SC2086
{
    "$cc" $warn -DVRAM_TEST_SIM -I"$source/allocator/include" -I"$source/simulator/include" "$here/walk.c" "$simulator" "$library" -pthread -ldl -lm -o "$out/library"
    "$cc" $warn -DVRAM_TEST_SIM -DAMALGAMATED -I"$out/sim" "$here/walk.c" "$out/sim/vram.o" -pthread -ldl -lm -o "$out/sim/walk"
    "$cc" $warn -DAMALGAMATED -I"$out/alone" "$here/walk.c" "$out/alone/vram.o" -pthread -ldl -lm -o "$out/alone/walk"
}
"$out/library" >"$out/library.txt"
"$out/sim/walk" >"$out/sim.txt"
cmp "$out/library.txt" "$out/sim.txt"
test "$(grep -c '^{' "$out/sim.txt")" -eq 6
# Compares the allocator alone, on a driver that it finds at run time, with the library on the same driver.
"$command" sim --memory 4GiB -- "$out/library" driver >"$out/library-driver.txt"
"$command" sim --memory 4GiB -- "$out/alone/walk" >"$out/alone.txt"
cmp "$out/library-driver.txt" "$out/alone.txt"
# Every function declared in the vram.h of the allocator alone is defined.
for kind in alone sim; do
    grep -o -E '^VRAM_API.*' "$out/$kind/vram.h" | grep -o -E '\bvram_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$out/$kind/declared"
    nm "$out/$kind/vram.o" | awk '$2 == "T" { print $3 }' | sort -u >"$out/$kind/defined"
    comm -23 "$out/$kind/declared" "$out/$kind/defined" >"$out/$kind/missing"
    if [ -s "$out/$kind/missing" ]; then
        echo "declared and not defined: $(cat "$out/$kind/missing")"
        exit 1
    fi
done
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    echo '#include "vram.h"' | "$compiler" -std=c++17 -Wall -Wextra -Werror -I"$out/alone" -fsyntax-only -x c++ -
done
