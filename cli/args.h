// args.h: options of a command as a table, and the table's parser.
//
// `--name value`, `--name=value`, `-n value`, `-nvalue`, flags in one go (`-ab`), operands anywhere, `--` ends options, `-` is an operand.
// `--help` and `-h` exist for every command. Every mistake is one line on standard error, with the nearest name for an unknown option.
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The exit codes of the command.
enum cli_exit { CLI_OK, CLI_FINDING, CLI_USAGE, CLI_BAD_INPUT, CLI_DEVICE };

enum args_kind {
    ARGS_FLAG,    // target: bool, set to true
    ARGS_STRING,  // target: const char *; the last one counts
    ARGS_STRINGS, // target: struct args_list; each one is kept
    ARGS_COUNT,   // target: uint64_t; decimal
    ARGS_SIZE,    // target: uint64_t; with a unit: 512MiB, 80GB, 1.5GiB, 24g (binary), 100B; without one bytes, from 1 MiB on; or 0
    ARGS_CHOICE,  // target: unsigned, the index in choices
};

#define ARGS_LIST_MAX 64
struct args_list {
    const char *values[ARGS_LIST_MAX]; // borrowed from argv
    size_t count;
};

struct args_option {
    const char *name; // without dashes; NULL ends the table
    char letter;      // 0: none
    enum args_kind kind;
    const char *value;          // how help calls the value; NULL for a flag
    const char *help;           // one line
    void *target;               // untouched when the option is absent
    const char *const *choices; // NULL-terminated, for ARGS_CHOICE
    const char *also;           // other words for it, apart by spaces, which are taken with a note; NULL: none
};

// The row of --json for what may be printed as one JSON object or as an array; `several`: when it is one.
#define ARGS_JSON(several, where)                                                                                                          \
    { .name = "json", .kind = ARGS_FLAG, .help = "one JSON object (" several "); keys in docs/reference/json.md", .target = (where) }
// How a missing operand is called that is a recording.
#define ARGS_RECORDING "a recording (FILE, or - for standard input)"

struct args_command {
    const char *name;                  // "report"
    const char *usage;                 // "[options] FILE..."
    const char *summary;               // a sentence or two
    const char *examples;              // lines, each indented by two spaces
    const struct args_option *options; // ends with name == NULL
    int min_operands;
    int max_operands;    // -1: any number
    const char *operand; // how a missing operand is called: "a recording (FILE, or - for standard input)"
};

// Reads argv[1..argc). Operands are moved to argv[1 .. 1 + *operand_count), in order. Returns true to go on; false when the command
// is to end with *exit_code: help was printed (CLI_OK) or the line was wrong (CLI_USAGE).
bool args_parse(const struct args_command *command, int argc, char **argv, int *operand_count, int *exit_code);

// Reads a size such as "24GiB", "80GB", "1.5g", "1048576B" or "0". False for any other text, and for a number below 1 MiB without a unit.
bool args_size(const char *text, uint64_t *bytes);
// One line on standard error about a text that is no size.
void args_size_say_wrong(const char *option, const char *text);

// The candidate (NULL-terminated array of strings, `stride` bytes apart) nearest to `text`, or NULL if none is near.
const char *args_nearest(const char *text, const char *const *first, size_t stride);

#endif
