# Completion of the command `vram` for fish, made from what the program itself says. A row is a word, a tab and what it means.

function __vram_commands
    vram --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } on && NF == 0 { exit }
        on { name = $1; sub(/^ *[^ ]+ +/, ""); print name "\t" $0 }'
end

function __vram_options
    set -l words (commandline -opc)
    vram $words[2] --help 2>/dev/null | awk '/^Options:/ { on = 1; next } on && NF == 0 { exit }
        on && match($0, /^ +(-., )? *--[a-z][a-z-]*/) { head = substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1)
            sub(/^.*--/, "--", head); if (match(text, /  +/)) text = substr(text, RSTART + RLENGTH); print head "\t" text }'
end

# The cards, or the values that the help offers for the option before: "--costs cheap|dear|free".
function __vram_values
    set -l words (commandline -opc)
    test (count $words) -gt 2; or return
    if test "$words[-1]" = --card
        vram sim --cards 2>/dev/null | string replace -r -f -- '^([a-z][a-z0-9-]*) +[0-9].*' '$1'
        return
    end
    vram $words[2] --help 2>/dev/null | string replace -r -f -- "^ +(?:-., )? *$words[-1] ([^ ]+\|[^ ]+)(?: .*)?\$" '$1' | string split '|' | string match -r -- '^[a-z][a-z0-9-]*$'
end

complete -c vram -n __fish_use_subcommand -f -a "(__vram_commands)"
complete -c vram -n __fish_use_subcommand -f -a help -d "what a command does"
complete -c vram -n __fish_use_subcommand -f -a version -d "the version"
complete -c vram -n "__fish_seen_subcommand_from help" -f -a "(__vram_commands)"
complete -c vram -n "not __fish_use_subcommand; and string match -q -- '-*' (commandline -ct)" -f -a "(__vram_options)"
complete -c vram -n "not __fish_use_subcommand; and count (__vram_values) >/dev/null" -f -a "(__vram_values)"
