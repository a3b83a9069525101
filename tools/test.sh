#!/usr/bin/env bash
# Runs the tests. Usage: tools/test.sh all|release|asan|tsan|nightly
# The last lines are ctest's summaries of every stage, the one of the shipped build at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
ATTACK_SEED=${ATTACK_SEED:-1}
summaries=()

note() { printf '\n=== %s (%d s)\n' "$1" "$SECONDS"; }

# build PRESET [TARGET...]
build() {
    local preset=$1
    shift
    note "build $preset"
    cmake --preset "$preset" --log-level=WARNING
    cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"}
}

# run PRESET [CTEST ARGUMENT...]: the tests of a build; its summary is kept for the end.
run() {
    local preset=$1 log=build/$1/test.log failed=0
    shift
    note "test $preset"
    ctest --preset "$preset" -j "$jobs" "$@" 2>&1 | tee "$log" || failed=1
    summaries+=("$preset")
    [ "$failed" -eq 0 ] || finish 1
}

finish() {
    local index
    for ((index = ${#summaries[@]} - 1; index >= 0; index--)); do
        printf '\n=== %s\n' "${summaries[index]}"
        sed -n '/tests passed/,$p' "build/${summaries[index]}/test.log"
    done
    exit "$1"
}

release() {
    build release
    run release "$@"
}

# The preset has intercept_tls_get_addr=0: where the thread-local block of a library that was loaded later begins 16 bytes into a page, the
# leak checker of clang 14 takes what stands before it for a header and crashes ("Tracer caught signal 11"). It finds those blocks without it, too.
# Without what only repeats, with the command built for shipping, on every real recording what other tests do on a few, and without what reads the
# tree alone.
asan() {
    build asan
    run asan -E '^viewer\.|^snapshot\.round_trip_recordings$|^tune\.recordings$|^house\.(floors|names|citations|checkers|coverage|documents|written_files|nulls)$'
}

# Only the tests with threads of their own: everything else was under the other sanitizers.
tsan() {
    local source targets=() units=()
    for source in $(grep -lE 'vr_thread_start|pthread_create|vr_os_spawn' tests/*/test_*.c); do
        targets+=("$(basename "$source" .c)")
        if [ "$(dirname "$source")" = tests/unit ]; then units+=("$(basename "$source" .c)"); fi
    done
    build tsan "${targets[@]}"
    run tsan -R "^unit\.($(IFS='|' && echo "${units[*]}"))\$|^torch\.adapter_threads\$|^share\.share\$"
}

# 2.5 million refused driver calls, 2 million option strings, 50,000 messages to servers, 200,000 mutated files (spread over the kinds; 25,000 more of real
# recordings), 200 kills. Another night, other seeds: ATTACK_SEED.
attack() {
    local corpus name kinds=(fuzz/corpus/*)
    note "attack, seed $ATTACK_SEED"
    build/release/tests/attack/fault_ops --seed "$ATTACK_SEED" --faults 2500000
    build/release/tests/attack/option_strings --seed "$ATTACK_SEED" --count 2000000
    python3 tests/attack/servers.py --vram build/release/cli/vram --seed "$ATTACK_SEED" --count 50000
    for corpus in "${kinds[@]}"; do
        name=$(basename "$corpus")
        "build/release/fuzz/mutate_$name" --seed "$ATTACK_SEED" --count $((200000 / ${#kinds[@]} + 1)) "$corpus"
    done
    # And real recordings, where the tests found them.
    for name in recording report replay explore write; do
        [ ! -d build/release/recordings/snapshots ] ||
            "build/release/fuzz/mutate_$name" --seed "$ATTACK_SEED" --count 5000 build/release/recordings/snapshots
    done
    python3 tests/attack/kills.py --build build/release --seed "$ATTACK_SEED" --count 200
}

nightly() {
    release
    build check
    run check --timeout 3600
    note "random operations against the naive model"
    build/release/tests/model/random_ops --seed "$ATTACK_SEED" --seeds 3000 --ops 5000
    build/check/tests/model/random_ops --seed 5000 --seeds 100 --ops 2000
    build/release/tests/model/async_ops --seeds 250 --ops 20000
    attack
    note "fuzzing"
    FUZZ_SECONDS=${FUZZ_SECONDS:-600} tools/fuzz.sh
}

case "${1:-}" in
all)
    note "format"
    tools/format.sh --check
    release -LE '^nightly$'
    asan
    tsan
    ;;
release | asan | tsan | nightly) "$1" ;;
*)
    echo "usage: tools/test.sh all|release|asan|tsan|nightly" >&2
    exit 2
    ;;
esac
finish 0
