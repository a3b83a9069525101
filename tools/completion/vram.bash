# Completion for the command `vram`, made from what the program itself says.
# shellcheck shell=bash

# The rows between "Commands:" and the next empty line; each begins with a command's name.
_vram_commands() {
    "$1" --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } on && NF == 0 { exit } on { print $1 }'
}

_vram_options() {
    "$1" "$2" --help 2>/dev/null | grep -o -E -- '--[a-z][a-z-]*' | sort -u
}

_vram() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(_vram_commands "$program") help --help --version"
    elif [ "${COMP_WORDS[1]}" = help ]; then
        words=$(_vram_commands "$program")
    elif [[ $word == -* ]]; then
        words=$(_vram_options "$program" "${COMP_WORDS[1]}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _vram vram
