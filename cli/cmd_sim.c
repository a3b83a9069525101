// vram sim: runs a program on the simulated driver.
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "program.h"
#include "sim_settings.h"
#include "sim_environment.h"
#include "sim_counts.h"
#include "ui.h"

int cmd_sim(int argc, char **argv);

static const char *const profiles[] = {"cheap", "dear", "free", NULL};

// Which summaries to print after the program.
struct asked {
    bool missing, reads, hip;
};

// Runs the program and prints the summaries. Returns its exit code, or 128 + n for signal n.
static int run_and_report(const struct asked *asked, char **program) {
    struct sim_counts missing = {0}, reads = {0};
    const bool made = (!asked->missing || sim_missing_begin(&missing)) && (!asked->reads || sim_reads_begin(&reads));
    bool started = false;
    const int code = made ? program_run("sim", program, &started) : CLI_BAD_INPUT;
    if (started && asked->missing) sim_missing_report(&missing);
    if (started && asked->reads) sim_reads_report(&reads);
    sim_counts_end(&missing);
    sim_counts_end(&reads);
    return code;
}

static int run_simulated(const char *values, const struct asked *asked, char **program) {
    if (setenv("VRAM_SIM", values, 1) != 0) {
        ui_say("vram: cannot set the program's environment: %s", strerror(errno));
        return CLI_BAD_INPUT;
    }
    const int code = sim_front_put(asked->hip);
    if (code != CLI_OK) return code;
    sim_front_check(program[0]);
    if (asked->missing || asked->reads) return run_and_report(asked, program);
    execvp(program[0], program);
    const int error = errno;
    ui_say("vram: %s: %s", program[0], strerror(error));
    return error == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE;
}

int cmd_sim(int argc, char **argv) {
    struct sim_settings settings = {.devices = SIM_UNSET, .memory_bytes = SIM_UNSET};
    unsigned costs = 0;
    struct asked asked = {0};
    bool cards = false;
    struct sim_values rules = {.compute_bytes = SIM_VALUES_COMPUTED};
    const struct args_option options[] = {
        SIM_MACHINE_OPTIONS(settings),
        {.name = "cards", .kind = ARGS_FLAG, .help = "list the known cards and which of their figures are estimated", .target = &cards},
        {.name = "costs",
         .kind = ARGS_CHOICE,
         .value = "cheap|dear|free",
         .help = "what driver calls cost on the virtual clock (default cheap)",
         .target = &costs,
         .choices = profiles,
         .also = "profile"},
        {.name = "missing",
         .kind = ARGS_FLAG,
         .help = "at the end, list the functions called that are not simulated",
         .target = &asked.missing},
        {.name = "reads",
         .kind = ARGS_FLAG,
         .help = "at the end, list the reads of data that only a kernel would have written",
         .target = &asked.reads},
        {.name = "hip", .kind = ARGS_FLAG, .help = "for HIP programs: provide AMD's runtime on the simulated device", .target = &asked.hip},
        SIM_VALUES_OPTIONS(&rules),
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "sim",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary = "Runs a program on simulated GPUs. Memory, streams, events, graphs, peers and processes behave as on the given "
                   "card;\nkernels take time but compute nothing. It works for programs that call the driver API, and for programs such as "
                   "PyTorch's\nthat load the shared runtime, NVML, cuBLAS, cuDNN, NCCL and similar libraries: stand-ins replace these "
                   "libraries at\nload time, and no file is changed. Programs linked statically against NVIDIA's runtime cannot run; vram "
                   "says which.\nThe exit code is the program's.",
        .examples = "  vram sim -- ./program\n"
                    "  vram sim --card rtx4090 -- python train.py\n"
                    "  vram sim --devices 2 --memory 16GiB -- torchrun --nproc-per-node 2 train.py\n"
                    "  vram sim --card b200 --set bytes=none,kernel=50us -- python train.py\n"
                    "  vram sim --missing --reads -- python train.py\n"
                    "  vram sim --value 'sample.py:31=0,0,0,1' -- python sample.py\n"
                    "  vram sim --cards\n"
                    "  vram sim -- vram run -- ./program\n",
        .options = options,
        .min_operands = 0,
        .max_operands = -1,
    };
    int count, code;
    // Arguments after the program's name belong to the program.
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (cards) {
        sim_cards_print();
        return CLI_OK;
    }
    if (count == 0) return ui_usage("sim", "vram: sim needs a program");
    settings.hip = asked.hip;
    char values[4096], wrong[400];
    settings.profile = profiles[costs];
    if (!sim_settings_text(&settings, values, sizeof values, wrong, sizeof wrong)) {
        (void)ui_usage("sim", "vram: %s", wrong);
        return CLI_USAGE;
    }
    code = sim_values_put("sim", &rules);
    if (code != CLI_OK) return code;
    argv[1 + count] = NULL;
    if (!asked.hip && !sim_values_compute(&rules)) ui_say("vram: cannot set the program's environment: %s", strerror(errno));
    sim_session_put();
    return run_simulated(values, &asked, argv + 1);
}
