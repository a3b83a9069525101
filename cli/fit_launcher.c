#include "fit_launcher.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/sim.h"

// An option with a number. Its name may have underscores instead of dashes. A name of one letter takes its number also without a space.
struct counting_option {
    const char *name;
    bool of_all;  // counts the processes of all machines
    bool is_mpis; // of mpirun and srun only
};

static const struct counting_option processes[] = {{"--nproc-per-node", false, false},
                                                   {"--num-processes", true, false},
                                                   {"--num-gpus", false, false},
                                                   {"--np", true, true},
                                                   {"-np", true, true},
                                                   {"--ntasks", true, true},
                                                   {"--ntasks-per-node", false, true},
                                                   {"-n", true, true},
                                                   {NULL, false, false}};
static const struct counting_option machines[] = {{"--nnodes", false, false},    {"--num-machines", false, false},
                                                  {"--num-nodes", false, false}, {"--nodes", false, true},
                                                  {"-N", false, true},           {NULL, false, false}};
// Engines, which start their own processes.
static const struct counting_option parallel[] = {{"--tensor-parallel-size", false, false},
                                                  {"--pipeline-parallel-size", false, false},
                                                  {"--data-parallel-size", false, false},
                                                  {NULL, false, false}};

static bool has_name(const struct counting_option *option, const char *word, size_t length) {
    size_t same = 0;
    while (same < length && option->name[same] != '\0' && (same > 1 && word[same] == '_' ? '-' : word[same]) == option->name[same]) same++;
    return same == length && option->name[same] == '\0';
}

// Returns the number in the word or the next one; NULL if the word is another option.
static const char *number_text(const struct counting_option *option, char **at) {
    const size_t length = strcspn(*at, "=");
    if (has_name(option, *at, length)) return (*at)[length] == '=' ? *at + length + 1 : at[1];
    const bool letter = strlen(option->name) == 2;
    return letter && strncmp(*at, option->name, 2) == 0 && (*at)[2] >= '1' && (*at)[2] <= '9' ? *at + 2 : NULL;
}

static bool starts_by_mpi(const char *word) {
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun", "srun"};
    const char *slash = strrchr(word, '/');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(slash == NULL ? word : slash + 1, names[i]) == 0) return true;
    return false;
}

// Finds the first of the options that has a number. Returns its word, or NULL.
static char **find_option(const struct counting_option *options, char **program, uint64_t *number, const struct counting_option **found) {
    bool by_mpi = false;
    *number = 1;
    for (char **at = program; *at != NULL; at++) {
        by_mpi = by_mpi || starts_by_mpi(*at);
        for (const struct counting_option *option = options; option->name != NULL; option++) {
            const char *text = option->is_mpis && !by_mpi ? NULL : number_text(option, at);
            const uint64_t value = text == NULL || *text < '0' || *text > '9' ? 0 : strtoull(text, NULL, 10);
            if (value == 0) continue;
            *number = value;
            *found = option;
            return at;
        }
    }
    return NULL;
}

static void keep_name(char **at, const struct counting_option *option, char name[52]) {
    const size_t length = at == NULL ? 0 : strcspn(*at, "=");
    if (at != NULL) (void)snprintf(name, 52, "%.*s", (int)(strlen(option->name) == 2 ? 2 : length), *at);
}

// Reads the number of machines, or a range of it, "1:4", of which the least counts. The launcher refuses what is neither.
static void read_machines(struct fit_launcher *launcher, char **program) {
    const struct counting_option *found = NULL;
    launcher->machines_at = find_option(machines, program, &launcher->machines, &found);
    const char *text = launcher->machines_at == NULL ? "" : number_text(found, launcher->machines_at), *colon = strchr(text, ':');
    keep_name(launcher->machines_at, found, launcher->names[1]);
    if (colon == NULL) return;
    char *end;
    launcher->machines_most = colon[1] < '0' || colon[1] > '9' ? 0 : strtoull(colon + 1, &end, 10);
    if (launcher->machines_most >= launcher->machines && *end == '\0') return;
    launcher->machines_at = NULL;
    launcher->machines = 1;
    launcher->machines_most = 0;
}

void fit_launcher_find(struct fit_launcher *launcher, char **program) {
    const struct counting_option *starts = NULL;
    uint64_t started;
    *launcher = (struct fit_launcher){.ranks = 1};
    launcher->processes_at = find_option(processes, program, &started, &starts);
    keep_name(launcher->processes_at, starts, launcher->names[0]);
    read_machines(launcher, program);
    const uint64_t on = launcher->machines;
    const bool of_all = starts != NULL && starts->of_all;
    launcher->of_machine = of_all ? started / on : started;
    launcher->ranks = of_all || started > UINT32_MAX || on > UINT32_MAX ? started : started * on;
}

// Gives an option another number: in its word, or in the next one.
static void set_number(struct fit_launcher *launcher, int option, uint64_t number) {
    char **at = option == 0 ? launcher->processes_at : launcher->machines_at;
    char name[sizeof launcher->names[0]]; // a copy, because the words are formatted into *launcher
    (void)strcpy(name, launcher->names[option]);
    if (at == NULL) return;
    (void)snprintf(launcher->texts[option], sizeof launcher->texts[option], "%" PRIu64, number);
    if (strlen(*at) == strlen(name)) {
        at[1] = launcher->texts[option];
        return;
    }
    const char *equals = (*at)[strlen(name)] == '=' ? "=" : "";
    (void)snprintf(launcher->joined[option], sizeof launcher->joined[option], "%s%s%" PRIu64, name, equals, number);
    *at = launcher->joined[option];
}

void fit_launcher_set(struct fit_launcher *launcher, size_t count) {
    set_number(launcher, 0, count);
    set_number(launcher, 1, 1);
}

void fit_launcher_settle(struct fit_launcher *launcher) {
    if (launcher->machines_most != 0) set_number(launcher, 1, launcher->machines);
}

const char *fit_launcher_range_text(const struct fit_launcher *launcher, char *text, size_t capacity) {
    if (launcher->machines_most == 0) return NULL;
    (void)snprintf(text, capacity, "%s %" PRIu64 ":%" PRIu64 ": judged for %" PRIu64 ", the least; for another number give %s N",
                   launcher->names[1], launcher->machines, launcher->machines_most, launcher->machines, launcher->names[1]);
    return text;
}

uint64_t fit_count_ranks(char **program) {
    struct fit_launcher launcher;
    fit_launcher_find(&launcher, program);
    return launcher.processes_at != NULL ? launcher.ranks : fit_count_devices(program);
}

static void multiply(uint64_t *count, uint64_t number) {
    if (number > 1 && number <= VRAM_SIM_MOST_DEVICES && *count * number <= VRAM_SIM_MOST_DEVICES) *count *= number;
}

uint64_t fit_count_devices(char **program) {
    struct fit_launcher launcher;
    uint64_t count = 1;
    fit_launcher_find(&launcher, program);
    multiply(&count, launcher.of_machine);
    for (const struct counting_option *option = parallel; option->name != NULL; option++) {
        const struct counting_option one[] = {*option, {NULL, false, false}}, *found;
        uint64_t number;
        if (find_option(one, program, &number, &found) != NULL) multiply(&count, number);
    }
    return count;
}
