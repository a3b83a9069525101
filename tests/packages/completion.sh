#!/bin/sh
# Tests the completions in bash, zsh and fish; a missing shell is named and skipped. Usage: completion.sh FOLDER-OF-VRAM COMPLETIONS
set -eu
PATH="$(cd "$1" && pwd):$PATH"
export PATH
here=$(cd "$2" && pwd)
failed=0

# expect SHELL WHAT WANTED TEXT: checks that a line of TEXT begins with WANTED.
expect() {
    printf '%s\n' "$4" | grep -q -- "^$3" && return
    printf '%s: %s: no "%s" in:\n%s\n' "$1" "$2" "$3" "$4"
    failed=1
}

try() {
    shell=$1
    command -v "$shell" >/dev/null || { echo "$shell is not installed: not tried"; return 0; }
    cd "$(mktemp -d)"
    touch somefile.pickle
    answer=$(ask_"$shell" vram re)
    expect "$shell" commands report "$answer"
    expect "$shell" commands replay "$answer"
    expect "$shell" "commands after help" tune "$(ask_"$shell" vram help tu)"
    expect "$shell" options --max-unpacked "$(ask_"$shell" vram tune --m)"
    expect "$shell" "options with a letter" --memory "$(ask_"$shell" vram tune --m)"
    expect "$shell" values dear "$(ask_"$shell" vram sim --costs de)"
    expect "$shell" "values among others" end "$(ask_"$shell" vram report --at e)"
    expect "$shell" "a long list of values" annotation "$(ask_"$shell" vram diff --by ann)"
    expect "$shell" formats perfetto "$(ask_"$shell" vram convert --to perf)"
    expect "$shell" cards rtx4090 "$(ask_"$shell" vram sim --card rtx40)"
    expect "$shell" files somefile.pickle "$(ask_"$shell" vram report some)"
    # At most two rows begin with "re"; others must not be offered.
    case $answer in *tune*) echo "$shell offers what does not fit"; failed=1 ;; esac
}

ask_bash() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _vram; printf "%s\n" "${COMPREPLY[@]}"' "$here/vram.bash" "$@"
}

ask_fish() { fish --no-config -c 'source $argv[1]; complete -C "$argv[2..-1]"' "$here/vram.fish" "$@"; }

# zsh completes only in a terminal, so this filters the offered words by the current one, as zsh does.
ask_zsh() {
    zsh -f -c 'source $0
        _describe() { local row; for row in "${(@P)2}"; do [[ ${row%%:*} == $words[CURRENT]* ]] && print -r -- $row; done; return 0 }
        _files() { print -l -- $words[CURRENT]*(N) }
        words=("$@"); CURRENT=$#; _vram' "$here/_vram" "$@"
}

for shell in bash zsh fish; do try "$shell"; done
exit $failed
