# Completion for the command `vram`, made from what the program itself says.
# shellcheck shell=bash

# The rows between "Commands:" and the next empty line; each begins with a command's name.
_vram_commands() {
    "$1" --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } on && NF == 0 { exit } on { print $1 }'
}

_vram_options() {
    "$1" "$2" --help 2>/dev/null | awk '/^Options:/ { on = 1; next } on && NF == 0 { exit } on' | grep -o -E -- '^ +(-., )? *--[a-z][a-z-]*' |
        grep -o -E -- '--[a-z-]*'
}

# The cards, or the values that the help offers for an option: "--costs cheap|dear|free".
_vram_values() {
    if [ "$3" = --card ]; then
        "$1" sim --cards 2>/dev/null | sed -n -E 's/^([a-z][a-z0-9-]*) +[0-9].*/\1/p'
        return
    fi
    "$1" "$2" --help 2>/dev/null | sed -n -E "s/^ +(-., )? *$3 ([^ ]+\|[^ ]+)( .*)?\$/\2/p" | tr '|' '\n' | grep -x '[a-z][a-z0-9-]*'
}

_vram() {
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} words="" before=${COMP_WORDS[COMP_CWORD - 1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$(_vram_commands "$program") help version --help --version"
    elif [ "${COMP_WORDS[1]}" = help ]; then
        words=$(_vram_commands "$program")
    elif [[ $word == -* ]]; then
        words=$(_vram_options "$program" "${COMP_WORDS[1]}")
    elif [[ $before == --* ]]; then
        words=$(_vram_values "$program" "${COMP_WORDS[1]}" "$before")
    fi
    if [ -z "$words" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _vram vram
