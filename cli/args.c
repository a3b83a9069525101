#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "ui.h"
#include "vram/options.h"

static int usage_error(const struct args_command *command) {
    fprintf(stderr, "Try 'vram %s --help'.\n", command->name);
    return CLI_USAGE;
}

static bool is_digits(const char *text) { return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0'; }

// Returns false if the number does not fit in 64 bits.
static bool read_whole(const char *digits, uint64_t *number) {
    errno = 0;
    const unsigned long long whole = strtoull(digits, NULL, 10);
    if (errno == 0) *number = whole;
    return errno == 0;
}

// Returns the number of bytes in the unit, which may be in upper or lower case; 0 for an unknown unit.
static double unit_bytes(const char *unit) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"b", 1},        {"k", 0x1p10},   {"m", 0x1p20}, {"g", 0x1p30}, {"t", 0x1p40}, {"kib", 0x1p10}, {"mib", 0x1p20},
                 {"gib", 0x1p30}, {"tib", 0x1p40}, {"kb", 1e3},   {"mb", 1e6},   {"gb", 1e9},   {"tb", 1e12}};
    char lower[5] = "";
    for (size_t i = 0; unit[i] != '\0'; i++) {
        if (i + 1 >= sizeof lower) return 0;
        lower[i] = (char)(unit[i] >= 'A' && unit[i] <= 'Z' ? unit[i] - 'A' + 'a' : unit[i]);
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(lower, units[i].name) == 0) return units[i].bytes;
    return 0;
}

// A number without a unit is in bytes. A smaller one is refused: the user probably meant GiB or MiB.
#define LEAST_PLAIN_BYTES (UINT64_C(1) << 20)

bool args_size(const char *text, uint64_t *bytes) {
    if (text[0] < '0' || text[0] > '9') return false;
    const size_t digits = strspn(text, "0123456789");
    const size_t number = digits + (text[digits] == '.' ? 1 + strspn(text + digits + 1, "0123456789") : 0);
    if (strspn(text, "0") == strlen(text)) { // nothing, in every unit
        *bytes = 0;
        return true;
    }
    if (text[digits] == '\0') return read_whole(text, bytes) && *bytes >= LEAST_PLAIN_BYTES;
    const double unit = unit_bytes(text + number + strspn(text + number, " "));
    if (unit == 0) return false;
    if (number == digits && unit == 1) return read_whole(text, bytes);
    const double value = strtod(text, NULL) * unit;
    if (value >= 0x1p64) return false;
    *bytes = (uint64_t)value;
    return true;
}

void args_size_say_wrong(const char *option, const char *text) {
    char bytes[40];
    (void)snprintf(bytes, sizeof bytes, "%.30sB", text);
    uint64_t size;
    if (!is_digits(text))
        ui_say("vram: --%s: '%s' is not a size, such as 24GiB, 80GB or 512MiB", option, text);
    else if (args_size(bytes, &size))
        ui_say("vram: --%s: '%s' has no unit: write %sGiB, %sMiB or, for bytes, %sB", option, text, text, text, text);
    else
        ui_say("vram: --%s: '%s' is too large", option, text);
}

const char *args_nearest(const char *text, const char *const *first, size_t stride) {
    const char *best = NULL;
    size_t best_distance = strlen(text) / 3 + 2;
    for (const char *at = (const char *)first; *(const char *const *)(const void *)at != NULL; at += stride) {
        const char *candidate = *(const char *const *)(const void *)at;
        const size_t d = vram_edit_distance(text, candidate);
        if (d < best_distance) {
            best = candidate;
            best_distance = d;
        }
    }
    return best;
}

// A longer name with its value gets its own line.
enum { WIDEST_NAME = 30 };

static size_t name_width(const struct args_option *option) {
    return 2 + strlen(option->name) + (option->value == NULL ? 0 : 1 + strlen(option->value));
}

// Prints the name. A list of values that is wider than the terminal continues below its start; without a terminal it is one line.
static void print_name(const struct args_option *option, const char *name, unsigned columns) {
    const unsigned begin = 6 + 2 + (unsigned)strlen(option->name) + 1;
    unsigned at = 6;
    for (const char *part = name; *part != '\0';) {
        const size_t word = strcspn(part, "|"), length = word + (part[word] == '|');
        if (at + length > columns && at > begin) {
            printf("\n%*s", (int)begin, "");
            at = begin;
        }
        printf("%.*s", (int)length, part);
        at += (unsigned)length;
        part += length;
    }
}

static void print_option(const struct args_option *option, size_t width) {
    char name[160];
    const unsigned at = (unsigned)width + 8;
    (void)snprintf(name, sizeof name, "--%s%s%s", option->name, option->value == NULL ? "" : " ",
                   option->value == NULL ? "" : option->value);
    if (option->letter != 0)
        printf("  -%c, ", option->letter);
    else
        printf("      ");
    print_name(option, name, isatty(STDOUT_FILENO) ? ui_style().columns : UINT_MAX);
    printf("%*s", strlen(name) < width ? (int)(width - strlen(name)) : 0, "");
    if (strlen(name) > width)
        printf("\n%*s", (int)at, "");
    else
        printf("  ");
    ui_wrap(stdout, option->help, at, ui_style().columns);
    printf("\n");
}

static void print_options(const struct args_option *options) {
    size_t width = strlen("--help");
    for (const struct args_option *option = options; option->name != NULL; option++) {
        const size_t own = name_width(option);
        if (own > width && own <= WIDEST_NAME) width = own;
    }
    printf("Options:\n");
    for (const struct args_option *option = options; option->name != NULL; option++) print_option(option, width);
    printf("  -h, %-*s  show this help\n", (int)width, "--help");
}

static void print_help(const struct args_command *command) {
    printf("vram %s %s\n\n", command->name, command->usage);
    ui_wrap(stdout, command->summary, 0, ui_style().columns);
    printf("\n\n");
    print_options(command->options);
    printf("\nExamples:\n%s", command->examples);
}

static bool take_choice(const struct args_option *option, const char *value) {
    for (unsigned i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], value) != 0) continue;
        *(unsigned *)option->target = i;
        return true;
    }
    ui_none_of(option->name, value, option->choices);
    return false;
}

// Returns whether the number in the option's target is not less than its least value. Prints a message if not.
static bool is_enough(const struct args_option *option) {
    if (*(const uint64_t *)option->target >= option->least) return true;
    ui_say("vram: --%s takes %" PRIu64 "%s or more", option->name, option->least, option->kind == ARGS_SIZE ? " B" : "");
    return false;
}

// Stores the value in the option's target. Returns false, after a message, if the value is not of the option's kind.
static bool take_value(const struct args_option *option, const char *value) {
    switch (option->kind) {
    case ARGS_FLAG: *(bool *)option->target = true; return true;
    case ARGS_STRING: *(const char **)option->target = value; return true;
    case ARGS_STRINGS: {
        struct args_list *list = option->target;
        if (list->count < ARGS_LIST_MAX) {
            list->values[list->count++] = value;
            return true;
        }
        ui_say("vram: --%s may be given at most %d times", option->name, ARGS_LIST_MAX);
        return false;
    }
    case ARGS_COUNT:
        if (is_digits(value) && read_whole(value, option->target)) return is_enough(option);
        ui_say("vram: --%s: '%s' is %s", option->name, value, is_digits(value) ? "too large" : "not a whole number");
        return false;
    case ARGS_SIZE:
        if (args_size(value, option->target)) return is_enough(option);
        args_size_say_wrong(option->name, value);
        return false;
    case ARGS_CHOICE: return take_choice(option, value);
    }
    return false;
}

static const struct args_option help_option = {.name = "help", .letter = 'h', .kind = ARGS_FLAG};

static const struct args_option *find_option(const struct args_option *options, const char *name, size_t length, char letter) {
    const bool is_help = name == NULL ? letter == 'h' : length == 4 && memcmp(name, "help", 4) == 0;
    if (is_help) return &help_option;
    for (const struct args_option *option = options; option->name != NULL; option++) {
        if (name == NULL ? option->letter == letter : strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

enum outcome { GOING, HELPED, WRONG };

static bool is_among(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        const size_t next = strcspn(at, " ");
        if (next == length && memcmp(at, word, length) == 0) return true;
        at += next;
    }
    return false;
}

// Returns the option that lists the text among its other words, or NULL.
static const struct args_option *named_otherwise(const struct args_option *options, const char *text) {
    for (const struct args_option *option = options; option->name != NULL; option++)
        if (option->also != NULL && is_among(option->also, text)) return option;
    return NULL;
}

// Finds an option by one of its other words and prints a note. Returns NULL, after a message, if no option has the word.
static const struct args_option *find_otherwise(const struct args_command *command, const char *name, size_t length) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    const struct args_option *option = named_otherwise(command->options, text);
    if (option != NULL) {
        ui_say("vram: --%s was renamed to --%s", text, option->name);
        return option;
    }
    const char *nearest = args_nearest(text, &command->options[0].name, sizeof command->options[0]);
    ui_say(nearest == NULL ? "vram: unknown option '--%s'" : "vram: unknown option '--%s'; did you mean '--%s'?", text, nearest);
    return NULL;
}

// Parses one `--name`, `--name=value` or `--name value`. Advances *at past a value taken from the next argument.
static enum outcome parse_long(const struct args_command *command, int argc, char **argv, int *at) {
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const struct args_option *option = find_option(command->options, name, length, 0);
    if (option == NULL) option = find_otherwise(command, name, length);
    if (option == NULL) return WRONG;
    if (option == &help_option) return HELPED;
    if (option->kind == ARGS_FLAG) {
        if (equals == NULL) return take_value(option, NULL) ? GOING : WRONG;
        ui_say("vram: --%s takes no value", option->name);
        return WRONG;
    }
    if (equals != NULL) return take_value(option, equals + 1) ? GOING : WRONG;
    if (*at + 1 < argc) return take_value(option, argv[++*at]) ? GOING : WRONG;
    ui_say("vram: --%s needs a value (%s)", option->name, option->value);
    return WRONG;
}

// Parses one `-abc`, `-nvalue` or `-n value`.
static enum outcome parse_short(const struct args_command *command, int argc, char **argv, int *at) {
    for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
        const struct args_option *option = find_option(command->options, NULL, 0, *letter);
        if (option == NULL) {
            int bytes = 1; // length of the character, which may be multi-byte UTF-8
            while (((unsigned char)letter[bytes] & 0xC0) == 0x80) bytes++;
            ui_say("vram: unknown option '-%.*s'", bytes, letter);
            return WRONG;
        }
        if (option == &help_option) return HELPED;
        if (option->kind == ARGS_FLAG) {
            (void)take_value(option, NULL);
            continue;
        }
        if (letter[1] != '\0') return take_value(option, letter + 1) ? GOING : WRONG;
        if (*at + 1 < argc) return take_value(option, argv[++*at]) ? GOING : WRONG;
        ui_say("vram: -%c needs a value (%s)", *letter, option->value);
        return WRONG;
    }
    return GOING;
}

static bool count_fits(const struct args_command *command, char **argv, int count) {
    if (count < command->min_operands) {
        ui_say("vram: %s needs %s", command->name, command->operand);
        return false;
    }
    if (command->max_operands >= 0 && count > command->max_operands) {
        ui_say("vram: unexpected argument '%s'", argv[1 + command->max_operands]);
        return false;
    }
    return true;
}

bool args_parse(const struct args_command *command, int argc, char **argv, int *operand_count, int *exit_code) {
    int count = 0;
    bool only_operands = false;
    for (int at = 1; at < argc; at++) {
        char *argument = argv[at];
        if (only_operands || argument[0] != '-' || argument[1] == '\0') {
            argv[1 + count++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            only_operands = true;
            continue;
        }
        const enum outcome outcome = argument[1] == '-' ? parse_long(command, argc, argv, &at) : parse_short(command, argc, argv, &at);
        if (outcome == GOING) continue;
        if (outcome == HELPED) print_help(command);
        *exit_code = outcome == HELPED ? CLI_OK : usage_error(command);
        return false;
    }
    if (!count_fits(command, argv, count)) {
        *exit_code = usage_error(command);
        return false;
    }
    *operand_count = count;
    return true;
}
