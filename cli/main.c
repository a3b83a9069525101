// vram: runs the command that the first argument names. commands.def is the table of commands.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "ui.h"
#include "vram/vram.h"

#define COMMAND(name, help) int cmd_##name(int argc, char **argv);
#include "commands.def"
#undef COMMAND

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
#define COMMAND(name, help) {#name, cmd_##name, help},
#include "commands.def"
#undef COMMAND
    {NULL, NULL, NULL},
};

static void print_help(FILE *file) {
    static const char more[] = "`vram <command> --help` shows details and examples. FILE is a recording (a PyTorch memory snapshot: "
                               "pickle, JSON or HTML page, or "
                               "vram's own file or page; also compressed by gzip, xz or zstd), a folder of them, or - for standard input.";
    const unsigned columns = ui_style().columns;
    size_t width = 0;
    for (const struct command *command = commands; command->name != NULL; command++) {
        if (strlen(command->name) > width) width = strlen(command->name);
    }
    fprintf(file, "vram: an inspectable malloc for GPU memory\n\n"
                  "vram <command> [options] FILE...\n\nCommands:\n");
    for (const struct command *command = commands; command->name != NULL; command++) {
        fprintf(file, "  %-*s  ", (int)width, command->name);
        ui_wrap(file, command->help, (unsigned)width + 4, columns);
        fprintf(file, "\n");
    }
    fprintf(file, "\n");
    ui_wrap(file, more, 0, columns);
    fprintf(file, "\n");
    ui_wrap(file,
            "Exit codes: 0 success, 1 finding, 2 usage error, 3 bad input, 4 device error. `vram --version` prints the version; `vram "
            "doctor` shows where the documents (docs/...) are.",
            0, columns);
    fprintf(file, "\n");
}

static int unknown_command(const char *name) {
    static const char *const others[] = {"help", "version", NULL}, *const flags[] = {"--help", "--version", NULL};
    const bool is_option = name[0] == '-';
    const char *nearest =
        is_option ? args_nearest(name, flags, sizeof flags[0]) : args_nearest(name, &commands[0].name, sizeof commands[0]);
    if (nearest == NULL && !is_option) nearest = args_nearest(name, others, sizeof others[0]);
    const char *kind = is_option ? "option" : "command";
    ui_say(nearest == NULL ? "vram: unknown %s '%s'" : "vram: unknown %s '%s'; did you mean '%s'?", kind, name, nearest);
    fprintf(stderr, "Try 'vram --help'.\n");
    return CLI_USAGE;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int run_command(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (is_one_of(argv[1], "--version", "-V", "version") && argc == 2) {
        printf("vram %s\n", vram_version());
        return CLI_OK;
    }
    if (is_one_of(argv[1], "--help", "-h", argc == 2 ? "help" : "-h")) {
        print_help(stdout);
        return CLI_OK;
    }
    // `vram help report` is `vram report --help`.
    static char help[] = "--help";
    char *help_arguments[] = {argc > 2 ? argv[2] : NULL, help, NULL};
    const bool wants_help = strcmp(argv[1], "help") == 0;
    const char *name = wants_help ? argv[2] : argv[1];
    for (const struct command *command = commands; command->name != NULL; command++) {
        if (strcmp(name, command->name) == 0) return wants_help ? command->run(2, help_arguments) : command->run(argc - 1, argv + 1);
    }
    return unknown_command(name);
}

// Fills closed standard descriptors, so that a file opened later does not become standard output. Reading and writing the fillers fails.
static void hold_standard_files(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", (file == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != file) return;
    }
}

int main(int argc, char **argv) {
    hold_standard_files();
    const int code = run_command(argc, argv);
    return ui_finish() || code != CLI_OK ? code : CLI_BAD_INPUT;
}
