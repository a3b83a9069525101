// args.h: declares a command's options as a table, and parses arguments by it.
//
// Accepts `--name value`, `--name=value`, `-n value`, `-nvalue`, grouped flags (`-ab`) and operands in any position. `--` ends the options;
// `-` is an operand. Every command has `--help` and `-h`. Each mistake is one line on standard error, with the nearest name for an unknown
// option.
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The exit codes of the command.
enum cli_exit { CLI_OK, CLI_FINDING, CLI_USAGE, CLI_BAD_INPUT, CLI_DEVICE };

enum args_kind {
    ARGS_FLAG,    // target: bool, set to true
    ARGS_STRING,  // target: const char *; the last one wins
    ARGS_STRINGS, // target: struct args_list; keeps each one
    ARGS_COUNT,   // target: uint64_t; decimal
    ARGS_SIZE,    // target: uint64_t; 512MiB, 80GB, 1.5GiB, 24g (binary), 100B; 0, or bytes from 1 MiB up, without a unit
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
    const char *value;          // the value's name in help; NULL for a flag
    const char *help;           // one line
    void *target;               // unchanged if the option is absent
    const char *const *choices; // NULL-terminated, for ARGS_CHOICE
    uint64_t least;             // of ARGS_COUNT and ARGS_SIZE
    const char *also;           // other words for it, separated by spaces, accepted with a note; NULL: none
};

// The row of --json. `several` says when the output is an array instead of one JSON object.
#define ARGS_JSON(several, where)                                                                                                          \
    { .name = "json", .kind = ARGS_FLAG, .help = "one JSON object (" several "); keys in docs/reference/json.md", .target = (where) }
// The name of a missing operand that is a recording.
#define ARGS_RECORDING "a recording (FILE, or - for standard input)"

struct args_command {
    const char *name;                  // "report"
    const char *usage;                 // "[options] FILE..."
    const char *summary;               // a sentence or two
    const char *examples;              // lines, each indented by two spaces
    const struct args_option *options; // ends with name == NULL
    int min_operands;
    int max_operands;    // -1: any number
    const char *operand; // the name of a missing operand: "a recording (FILE, or - for standard input)"
};

// Reads argv[1..argc). Moves the operands to argv[1 .. 1 + *operand_count), in order. Returns true to go on. Returns false, with *exit_code
// set, if the command should exit: CLI_OK after printing help, CLI_USAGE after a mistake.
bool args_parse(const struct args_command *command, int argc, char **argv, int *operand_count, int *exit_code);

// Reads a size such as "24GiB", "80GB", "1.5g", "1048576B" or "0". Returns false for other text, and for a number below 1 MiB without a
// unit.
bool args_size(const char *text, uint64_t *bytes);
// Prints one line on standard error that rejects the text as a size.
void args_size_say_wrong(const char *option, const char *text);

// Returns the candidate nearest to `text`, or NULL if none is near. `first` begins a NULL-terminated array of strings, `stride` bytes
// apart.
const char *args_nearest(const char *text, const char *const *first, size_t stride);

#endif
