#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60) on its corpus; new inputs stay in build/fuzz/corpus, findings in build/fuzz/findings.
# Usage: tools/fuzz.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset fuzz --log-level=WARNING
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do targets+=("$(basename "$source" .c)"); done
fi
cmake --build build/fuzz --target "${targets[@]}"
mkdir -p build/fuzz/findings
for target in "${targets[@]}"; do
    name=${target#fuzz_}
    corpora=("build/fuzz/corpus/$name")
    [ -d "tests/fuzz/corpus/$name" ] && corpora+=("tests/fuzz/corpus/$name")
    dictionary=()
    [ -f "tests/fuzz/$name.dict" ] && dictionary=("-dict=tests/fuzz/$name.dict")
    mkdir -p "build/fuzz/corpus/$name"
    echo "=== $target, ${FUZZ_SECONDS:-60} s"
    "build/fuzz/fuzz/$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        "${dictionary[@]}" -artifact_prefix="build/fuzz/findings/$name-" "${corpora[@]}"
done
