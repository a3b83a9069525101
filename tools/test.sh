#!/usr/bin/env bash
# Runs the tests. Usage: [TIMES=1] tools/test.sh all|release|asan|asan_gcc|tsan|nightly (TIMES: with each test's seconds). The last lines
# are ctest's summaries of every stage, the shipped build's at the end. Each lists the tests that had nothing to run, and why.
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
    cmake --preset "$preset" --log-level=NOTICE
    cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"}
}

# run PRESET [CTEST ARGUMENT...]: runs the tests of a build and keeps the summary for the end.
run() {
    local preset=$1 log=build/$1/test.log failed=0
    shift
    note "test $preset"
    ctest --preset "$preset" --no-tests=error -j "$jobs" "$@" 2>&1 | tee "$log" || failed=1
    summaries+=("$preset")
    [ "$failed" -eq 0 ] || finish 1
}

# prices PRESET: seconds and name of each test, slowest first.
prices() { sed -nE 's/^ *[0-9]+\/[0-9]+ +Test +#[0-9]+: (\S+) .* ([0-9.]+) sec$/\2 \1/p' "build/$1/test.log" | sort -rn; }

finish() {
    local index
    for ((index = ${#summaries[@]} - 1; index >= 0; index--)); do
        printf '\n=== %s\n' "${summaries[index]}"
        sed -n '/tests passed/,$p' "build/${summaries[index]}/test.log"
        [ -z "${TIMES:-}" ] || prices "${summaries[index]}"
        python3 tools/skipped.py "build/${summaries[index]}/"{test.log,Testing/Temporary/LastTest.log}
    done
    exit "$1"
}

release() {
    build release
    run release "$@"
}

# The preset sets intercept_tls_get_addr=0. If the thread-local block of a library that was loaded later begins 16 bytes into a page, clang
# 14's leak checker reads the bytes before it as a header and crashes ("Tracer caught signal 11"). It finds those blocks without the setting
# too. Skips tests that run the command over many inputs to judge its answers, because other tests run the same code on a few. Skips tests
# that only read the tree. `make nightly` runs them under the sanitizers too.
repeats='^viewer\.|^judgement\.|^house\.|^snapshot\.round_trip_recordings$|^tune\.(recordings|surfaces)$|^explain\.(causes|advice)$|^cli\.unpacked$|^example\.out_of_memory$'
asan() {
    [ $# -gt 0 ] || set -- -E "$repeats"
    build asan
    run asan "$@"
}

# Runs with gcc the tests that may depend on the compiler: the allocator's own tests, the models and the refusals. Clang's build has all
# others.
asan_gcc() {
    local source units=()
    for source in tests/unit/test_{async,capture_,core_,fault,fenced,host_faults,nth_failure,paged,peers,pool,refusals,sleep}*.c; do
        units+=("$(basename "$source" .c)")
    done
    build asan-gcc random_ops async_ops paged_ops fault_ops "${units[@]}"
    run asan-gcc -R "^unit\.($(IFS='|' && echo "${units[*]}"))\$|^model\.(random_ops_seeds|random_ops_restored|async_ops|paged_ops)\$|^attack\.fault_ops\$"
    build/asan-gcc/tests/model/random_ops --seed 700000 --seeds 100 --ops 5000
}

# Runs only the tests with threads of their own, because all others ran under the other sanitizers.
tsan() {
    local source targets=() units=()
    for source in $(grep -lE 'vr_thread_start|pthread_create|vr_os_spawn' tests/*/test_*.c); do
        targets+=("$(basename "$source" .c)")
        if [ "$(dirname "$source")" = tests/unit ]; then units+=("$(basename "$source" .c)"); fi
    done
    build tsan "${targets[@]}"
    run tsan -R "^unit\.($(IFS='|' && echo "${units[*]}"))\$|^torch\.adapter_threads\$|^share\.share\$"
}

# 2.5 million refused driver calls, 2 million option strings, 50,000 messages to servers, 200,000 mutated files (spread over the kinds;
# 25,000 more of real recordings), 200 kills. For another night, other seeds: ATTACK_SEED.
attack() {
    local corpus name kinds=(tests/fuzz/corpus/*)
    note "attack, seed $ATTACK_SEED"
    build/release/tests/attack/fault_ops --seed "$ATTACK_SEED" --faults 2500000
    build/release/tests/attack/option_strings --seed "$ATTACK_SEED" --count 2000000
    python3 tests/attack/servers.py --vram build/release/cli/vram --seed "$ATTACK_SEED" --count 50000
    for name in asan asan-gcc; do "build/$name/tests/attack/fault_ops" --seed "$ATTACK_SEED" --faults 250000; done
    for corpus in "${kinds[@]}"; do
        name=$(basename "$corpus")
        "build/release/fuzz/mutate_$name" --seed "$ATTACK_SEED" --count $((200000 / ${#kinds[@]} + 1)) "$corpus"
    done
    # Also mutates real recordings, if the tests found some.
    for name in recording report replay explore write; do
        [ ! -d build/release/recordings/snapshots ] ||
            "build/release/fuzz/mutate_$name" --seed "$ATTACK_SEED" --count 5000 build/release/recordings/snapshots
    done
    python3 tests/attack/kills.py --build build/release --seed "$ATTACK_SEED" --count 200
}

nightly() {
    local preset
    release
    build check
    run check --timeout 3600
    note "random operations against the naive model"
    build/release/tests/model/random_ops --seed "$ATTACK_SEED" --seeds 3000 --ops 5000
    build/check/tests/model/random_ops --seed 5000 --seeds 100 --ops 2000
    build/release/tests/model/async_ops --seeds 250 --ops 20000
    asan -E '^(viewer|house)\.' --timeout 3600
    build asan-gcc
    run asan-gcc -E '^(viewer|house)\.' --timeout 3600
    for preset in asan asan-gcc; do "build/$preset/tests/model/random_ops" --seed "$ATTACK_SEED" --seeds 300 --ops 5000; done
    note "arguments"
    python3 tools/check_arguments.py build/release
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
release | asan | asan_gcc | tsan | nightly) "$1" ;;
*)
    echo "usage: tools/test.sh all|release|asan|asan_gcc|tsan|nightly" >&2
    exit 2
    ;;
esac
finish 0
