// vram check: runs a program on the simulated driver and reports stream-ordering errors: memory that is freed or reused while another
// stream uses it, streams that use the same bytes without synchronization, and use after free.
#define _GNU_SOURCE // mkdtemp()
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../simulator/standins/common/check_lines.h"
#include "args.h"
#include "check_findings.h"
#include "output.h"
#include "program.h"
#include "run_environment.h"
#include "sim_environment.h"
#include "sim_settings.h"
#include "ui.h"

int cmd_check(int argc, char **argv);

struct asked {
    bool json, may, never_written;
    const char *sarif, *suppress;
};

// ---- The folder of the processes' files.

static bool make_folder(char *folder, size_t capacity) {
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0') parent = "/tmp";
    const bool made = snprintf(folder, capacity, "%s/vram-check-XXXXXX", parent) < (int)capacity && mkdtemp(folder) != NULL;
    if (!made) ui_say("vram check: cannot create a folder in %s: %s", parent, strerror(errno));
    return made;
}

static void remove_folder(const char *folder) {
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.') (void)unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries != NULL) (void)closedir(entries);
    (void)rmdir(folder);
}

// ---- The run.

static bool put_variables(const struct asked *asked, const char *values, const char *folder, const struct sim_values *rules) {
    char stacks[4096];
    bool put = setenv("VRAM_SIM", values, 1) == 0 && setenv(VR_CHECK_LINES_FOLDER, folder, 1) == 0 && sim_values_compute(rules);
    if (asked->never_written) put = put && setenv(VR_CHECK_LINES_UNWRITTEN, "1", 1) == 0;
    if (find_stacks_library(stacks, sizeof stacks)) put = put && setenv("VRAM_SIM_STACKS", stacks, 0) == 0;
    if (!put) ui_say("vram: cannot set the program's environment: %s", strerror(errno));
    return put;
}

// Runs the program. With --json, standard output is for our answer, so the program's output goes to standard error.
static int run_program(const struct asked *asked, char **program, bool *started) {
    const int own = asked->json ? dup(STDOUT_FILENO) : -1;
    if (own >= 0) (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    const int code = program_run("check", program, started);
    if (own >= 0) {
        (void)dup2(own, STDOUT_FILENO);
        (void)close(own);
    }
    return code;
}

static int report(const struct asked *asked, const char *folder) {
    struct check_findings findings = {0};
    int code = check_findings_read(folder, &findings) ? CLI_OK : CLI_BAD_INPUT;
    if (code != CLI_OK) ui_say("vram check: not enough host memory");
    if (!asked->may) check_findings_drop_may(&findings);
    if (code == CLI_OK && asked->suppress != NULL) code = check_findings_suppress(&findings, asked->suppress);
    if (code == CLI_OK && asked->sarif != NULL) code = check_sarif_write(&findings, asked->sarif);
    if (code == CLI_OK && asked->json) code = check_json_print(&findings);
    if (code == CLI_OK && !asked->json) check_text_print(&findings);
    if (code == CLI_OK && findings.count > 0) code = CLI_FINDING;
    check_findings_release(&findings);
    return code;
}

// Returns a failed program's exit code even if there are findings, because the failure cut short what was to be checked.
static int run_checked(const struct asked *asked, const char *values, const struct sim_values *rules, char **program) {
    char folder[4096];
    bool started = false;
    if (!make_folder(folder, sizeof folder)) return CLI_BAD_INPUT;
    int code = put_variables(asked, values, folder, rules) ? sim_front_put(false) : CLI_BAD_INPUT;
    if (code == CLI_OK) {
        sim_front_check(program[0]);
        code = run_program(asked, program, &started);
    }
    const int found = started ? report(asked, folder) : CLI_OK;
    remove_folder(folder);
    return code != CLI_OK ? code : found;
}

// Finds out whether the files of the options can be read and written, before the program runs. Returns an exit code.
static int try_files(const struct asked *asked) {
    struct check_findings none = {0};
    if (asked->json && asked->sarif != NULL && strcmp(asked->sarif, "-") == 0)
        return ui_usage("check", "vram check: --json and --sarif - cannot be used together");
    if (asked->sarif != NULL && output_is_folder(asked->sarif))
        return ui_usage("check", "vram: --sarif %s: %s", asked->sarif, strerror(EISDIR));
    if (asked->sarif != NULL && !output_can_write(asked->sarif, false))
        return ui_usage("check", "vram: --sarif %s: %s", asked->sarif, strerror(errno));
    return asked->suppress == NULL ? CLI_OK : check_findings_suppress(&none, asked->suppress);
}

int cmd_check(int argc, char **argv) {
    struct sim_settings settings = {.devices = SIM_UNSET, .memory_bytes = SIM_UNSET};
    struct asked asked = {0};
    struct sim_values rules = {.compute_bytes = SIM_VALUES_COMPUTED};
    const struct args_option options[] = {
        ARGS_JSON("the program's output goes to standard error", &asked.json),
        {.name = "sarif",
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "also write the findings as SARIF, which code hosts show next to the lines",
         .target = &asked.sarif},
        {.name = "suppress",
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "leave out the findings that the file names: KIND PATTERN, one per line",
         .target = &asked.suppress},
        {.name = "never-written", .kind = ARGS_FLAG, .help = "also report reads of uninitialized memory", .target = &asked.never_written},
        {.name = "may", .kind = ARGS_FLAG, .help = "also report likely findings", .target = &asked.may},
        SIM_MACHINE_OPTIONS(settings),
        SIM_VALUES_OPTIONS(&rules),
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "check",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary = "Runs a program on simulated GPUs, as `vram sim` does, and reports stream-ordering errors: memory that is freed or\n"
                   "reused while another stream uses it, streams that use the same bytes without synchronization, and use after free.\n"
                   "Each mistake is reported once, with both stacks and a remedy, on standard error. The result does not depend on the\n"
                   "run's timing. The exit code is the program's; 1 if that is 0 and a mistake was found.",
        .examples = "  vram check -- python train.py\n"
                    "  vram check --card a100-80 --devices 2 -- torchrun --nproc-per-node 2 train.py\n"
                    "  vram check --sarif check.sarif --suppress known.txt -- python -m pytest tests\n"
                    "  vram check --json -- ./program | jq '.findings[].message'\n",
        .options = options,
        .min_operands = 0,
        .max_operands = -1,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (count == 0) return ui_usage("check", "vram: check needs a program");
    char values[4096], wrong[400];
    if (!sim_settings_text(&settings, values, sizeof values, wrong, sizeof wrong)) return ui_usage("check", "vram: %s", wrong);
    code = try_files(&asked);
    if (code == CLI_OK) code = sim_values_put("check", &rules);
    if (code != CLI_OK) return code;
    argv[1 + count] = NULL;
    sim_session_put();
    return run_checked(&asked, values, &rules, argv + 1);
}
