// vram sim: runs a program on the simulated driver.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "beside.h"
#include "sim_settings.h"
#include "ui.h"

int cmd_sim(int argc, char **argv);

#define EXIT_NOT_FOUND  127 // as shells say it
#define EXIT_NO_EXECUTE 126

static const char *const profiles[] = {"cheap", "dear", "free", NULL};

// Puts folders before what the dynamic linker searches anyway.
static bool put_first(const char *folders) {
    const char *before = getenv("LD_LIBRARY_PATH");
    if (before == NULL || before[0] == '\0') return setenv("LD_LIBRARY_PATH", folders, 1) == 0;
    const size_t length = strlen(folders) + strlen(before) + 2;
    char *path = malloc(length);
    if (path == NULL) return false;
    snprintf(path, length, "%s:%s", folders, before);
    const bool put = setenv("LD_LIBRARY_PATH", path, 1) == 0;
    free(path);
    return put;
}

static bool put_environment(const char *values, const char *simcuda, const char *cudart) {
    char folders[8200];
    snprintf(folders, sizeof folders, "%s%s%s", simcuda, cudart[0] == '\0' ? "" : ":", cudart);
    return put_first(folders) && setenv("VRAM_SIM", values, 1) == 0;
}

static int run(const char *values, char **program) {
    char simcuda[4096], cudart[4096] = "";
    if (!beside_simcuda(simcuda, sizeof simcuda)) {
        ui_say("vram: the simulated libcuda.so.1 is not there; name its folder in VRAM_SIMCUDA");
        return CLI_DEVICE;
    }
    if (!beside_cudart(cudart, sizeof cudart)) cudart[0] = '\0'; // programs that call the driver do without
    if (!put_environment(values, simcuda, cudart)) {
        ui_say("vram: the environment of the program could not be set: %s", strerror(errno));
        return CLI_BAD_INPUT;
    }
    execvp(program[0], program);
    const int error = errno;
    ui_say("vram: %s: %s", program[0], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXECUTE;
}

int cmd_sim(int argc, char **argv) {
    struct sim_settings settings = {.devices = SIM_UNSET, .memory_bytes = SIM_UNSET};
    unsigned profile = 0;
    const struct args_option options[] = {
        {.name = "device",
         .kind = ARGS_STRING,
         .value = "NAME,...",
         .help = "what the devices are: t4, a100-80, rtx4090, ... (default h100; docs/guides/simulator.md)",
         .target = &settings.models},
        {.name = "devices",
         .letter = 'd',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "number of devices (default: as many as --device names)",
         .target = &settings.devices},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory of each device (default: the device's own)",
         .target = &settings.memory_bytes},
        {.name = "profile",
         .kind = ARGS_CHOICE,
         .value = "cheap|dear|free",
         .help = "what driver calls cost on the virtual clock (default cheap)",
         .target = &profile,
         .choices = profiles},
        {.name = "set",
         .kind = ARGS_STRING,
         .value = "KEY=VALUE,...",
         .help = "further settings of the simulator (docs/guides/simulator.md)",
         .target = &settings.more},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "sim",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary =
            "Runs a program on a simulated CUDA driver, without a GPU: memory, streams, events and graphs behave, kernels do nothing.\n"
            "For programs that call the driver API, and for those built with `nvcc -cudart shared`. NVIDIA's own runtime, static\n"
            "or shared, refuses any driver but NVIDIA's, and is not made to do otherwise. The exit code is the program's.",
        .examples = "  vram sim -- ./program\n"
                    "  vram sim --device rtx4090 -- ./program\n"
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
    char values[4096], wrong[400];
    settings.profile = profiles[profile];
    if (!sim_settings_text(&settings, values, sizeof values, wrong, sizeof wrong)) {
        (void)ui_usage("sim", "vram: %s", wrong);
        return CLI_USAGE;
    }
    argv[1 + count] = NULL;
    return run(values, argv + 1);
}
