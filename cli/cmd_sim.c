// vram sim: runs a program on the simulated driver.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <unistd.h>

#include "args.h"
#include "program.h"
#include "sim_front.h"
#include "sim_missing.h"
#include "ui.h"

int cmd_sim(int argc, char **argv);

static const char *const profiles[] = {"cheap", "dear", "free", NULL};

struct settings {
    uint64_t devices, memory_bytes;
    unsigned profile;
    const char *more;
    bool missing;
};

static bool put_settings(const struct settings *settings) {
    char values[4096];
    const int length =
        snprintf(values, sizeof values, "devices=%" PRIu64 ",memory=%" PRIu64 ",profile=%s%s%s", settings->devices, settings->memory_bytes,
                 profiles[settings->profile], settings->more == NULL ? "" : ",", settings->more == NULL ? "" : settings->more);
    return length > 0 && (size_t)length < sizeof values && setenv("VRAM_SIM", values, 1) == 0;
}

static int run(const struct settings *settings, char **program) {
    if (!put_settings(settings)) {
        ui_say("vram: the environment of the program could not be set: %s", strerror(errno));
        return CLI_BAD_INPUT;
    }
    const int code = sim_front_put();
    if (code != CLI_OK) return code;
    sim_front_check(program[0]);
    if (settings->missing) return sim_missing_run(program);
    execvp(program[0], program);
    const int error = errno;
    ui_say("vram: %s: %s", program[0], strerror(error));
    return error == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NO_EXECUTE;
}

// The simulator would refuse them at the program's first call only.
static bool agree(const struct settings *settings) {
    const char *wrong = NULL;
    if (settings->devices < 1 || settings->devices > 64) wrong = "--devices takes 1 to 64";
    if (settings->memory_bytes < (uint64_t)1 << 20 || settings->memory_bytes > (uint64_t)1 << 50) wrong = "--memory takes 1MiB to 1024TiB";
    if (wrong != NULL) (void)ui_usage("sim", "vram: %s", wrong);
    return wrong == NULL;
}

int cmd_sim(int argc, char **argv) {
    struct settings settings = {.devices = 1, .memory_bytes = (uint64_t)80 << 30};
    const struct args_option options[] = {
        {.name = "devices",
         .letter = 'd',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "number of devices (default 1)",
         .target = &settings.devices},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory of each device (default 80GiB)",
         .target = &settings.memory_bytes},
        {.name = "profile",
         .kind = ARGS_CHOICE,
         .value = "cheap|dear|free",
         .help = "what driver calls cost on the virtual clock (default cheap)",
         .target = &settings.profile,
         .choices = profiles},
        {.name = "set",
         .kind = ARGS_STRING,
         .value = "KEY=VALUE,...",
         .help = "further settings of the simulator (docs/guides/simulator.md)",
         .target = &settings.more},
        {.name = "missing",
         .kind = ARGS_FLAG,
         .help = "say at the end what the program called that is not simulated",
         .target = &settings.missing},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "sim",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary =
            "Runs a program on a simulated CUDA driver, without a GPU: memory, streams, events and graphs behave, kernels do nothing.\n"
            "For programs that call the driver API or a shared runtime: stand-ins are put in front of the libraries they bring.\n"
            "NVIDIA's own runtime linked into a program refuses any driver but NVIDIA's; it is named, and not made to do otherwise.\n"
            "The exit code is the program's.",
        .examples = "  vram sim -- ./program\n"
                    "  vram sim --devices 2 --memory 16GiB -- ./program\n"
                    "  vram sim -- vram run -- ./program\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a program",
    };
    int count, code;
    // What follows the program's name is the program's.
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!agree(&settings)) return CLI_USAGE;
    argv[1 + count] = NULL;
    return run(&settings, argv + 1);
}
