#include "sim_front.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "beside.h"
#include "run_check.h"
#include "ui.h"

#define PATH_CAPACITY 4096
#define FOLDERS       4

// The variable's value becomes `first`, a colon and what it was.
static bool put_first(const char *name, const char *first) {
    const char *before = getenv(name);
    if (before == NULL || before[0] == '\0') return setenv(name, first, 1) == 0;
    const size_t capacity = strlen(first) + strlen(before) + 2;
    char *value = malloc(capacity);
    if (value == NULL) return false;
    (void)snprintf(value, capacity, "%s:%s", first, before);
    const bool put = setenv(name, value, 1) == 0;
    free(value);
    return put;
}

// The folders of what stands in for NVIDIA's libraries, divided by colons. An installed vram has them in one. AMD's runtime lies in one of
// its own: programs that look for either take what they find.
static bool find_folders(char folders[FOLDERS * PATH_CAPACITY], bool hip) {
    char found[FOLDERS][PATH_CAPACITY] = {"", "", "", ""};
    if (!beside_simcuda(found[0], PATH_CAPACITY)) return false;
    if (!beside_cudart(found[1], PATH_CAPACITY)) found[1][0] = '\0'; // programs that call the driver do without
    if (!beside_standins(found[2], PATH_CAPACITY)) found[2][0] = '\0';
    if (hip && snprintf(found[3], PATH_CAPACITY, "%s/hip", found[2]) >= PATH_CAPACITY) return false;
    size_t used = 0;
    for (size_t i = 0; i < FOLDERS; i++) {
        if (found[i][0] == '\0' || (i > 0 && strcmp(found[i], found[0]) == 0)) continue;
        used += (size_t)snprintf(folders + used, FOLDERS * PATH_CAPACITY - used, "%s%s", used == 0 ? "" : ":", found[i]);
    }
    return true;
}

static bool put_environment(const char *folders) {
    char front[PATH_CAPACITY];
    if (!put_first("LD_LIBRARY_PATH", folders)) return false;
    // Where there is no auditor, or the linker could not read its path, the folders are what there is.
    if (!beside_front(front, sizeof front) || strchr(front, ':') != NULL) return true;
    return setenv("VRAM_SIM_FRONT", folders, 1) == 0 && put_first("LD_AUDIT", front);
}

int sim_front_put(bool hip) {
    char folders[FOLDERS * PATH_CAPACITY];
    if (!find_folders(folders, hip)) {
        ui_say("vram: the simulated libcuda.so.1 is not there; name its folder in VRAM_SIMCUDA");
        return CLI_DEVICE;
    }
    if (put_environment(folders)) return CLI_OK;
    ui_say("vram: the environment of the program could not be set: %s", strerror(errno));
    return CLI_BAD_INPUT;
}

void sim_front_check(const char *program) {
    const char *why = run_check(program);
    if (why != NULL) ui_say("vram sim: %s does not reach the simulated driver: %s; it is run all the same", program, why);
}
