#include "fit_fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/driver.h"
#include "vram/sim.h"

// Options that set how many processes, one per device, start on a machine; written with dashes or underscores.
static const char *const counting[] = {"nproc-per-node",         "num-processes",      "num-gpus", "tensor-parallel-size",
                                       "pipeline-parallel-size", "data-parallel-size", NULL};
// Options of launchers, and the options for the number of machines.
static const char *const processes[] = {"nproc-per-node", "num-processes", "num-gpus", NULL};
static const char *const machines[] = {"nnodes", "num-machines", "num-nodes", NULL};

static bool is_one_of(const char *const *words, const char *argument, size_t length) {
    for (size_t i = 0; words[i] != NULL; i++) {
        size_t same = 0;
        while (same < length && words[i][same] != '\0' && (argument[same] == '_' ? '-' : argument[same]) == words[i][same]) same++;
        if (same == length && words[i][same] == '\0') return true;
    }
    return false;
}

// Returns the number that an option gives; 0 if it is another option or has no number.
static uint64_t number_of(const char *const *words, char **at) {
    if (strncmp(*at, "--", 2) != 0) return 0;
    const char *name = *at + 2, *value = strchr(name, '=');
    if (!is_one_of(words, name, strcspn(name, "="))) return 0;
    value = value != NULL ? value + 1 : at[1];
    return value == NULL ? 0 : strtoull(value, NULL, 10);
}

uint64_t fit_count_devices(char **program) {
    uint64_t count = 1;
    for (char **at = program; *at != NULL; at++) {
        const uint64_t number = number_of(counting, at);
        if (number > 1 && number <= VRAM_SIM_MOST_DEVICES && count * number <= VRAM_SIM_MOST_DEVICES) count *= number;
    }
    return count;
}

static char **find_option(const char *const *words, char **program, uint64_t *number) {
    *number = 1;
    for (char **at = program; *at != NULL; at++) {
        const uint64_t found = number_of(words, at);
        if (found == 0) continue;
        *number = found;
        return at;
    }
    return NULL;
}

// Gives the option at `at` another value. `joined` is space for "--name=value".
static void replace_argument(char **at, const char *name, const char *value, char *joined, size_t capacity) {
    if (strchr(*at, '=') == NULL) {
        at[1] = (char *)(uintptr_t)value;
        return;
    }
    (void)snprintf(joined, capacity, "%s=%s", name, value);
    *at = joined;
}

static void keep_option(char **at, char name[52]) {
    if (at != NULL) (void)snprintf(name, 52, "%.*s", (int)strcspn(*at, "="), *at);
}

static void run_also(struct fit_fold *fold, uint64_t rank) {
    for (size_t i = 0; i < fold->running_count; i++)
        if (fold->running[i] == rank) return;
    if (fold->running_count < sizeof fold->running / sizeof *fold->running) fold->running[fold->running_count++] = rank;
}

static int by_number(const void *a, const void *b) {
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

// Chooses the ranks to run. By default these include the first rank, which often does additional work, and the last, which may get a
// smaller part of the divided work.
static void run_a_few(struct fit_fold *fold) {
    fold->running_count = 0;
    run_also(fold, 0);
    run_also(fold, 1);
    run_also(fold, fold->ranks / 2);
    run_also(fold, fold->ranks - 1);
}

static const char *choose_ranks(struct fit_fold *fold, const char *asked) {
    fold->scouts = strcmp(asked, "auto") == 0;
    run_a_few(fold);
    if (fold->scouts) return NULL;
    fold->running_count = 1; // rank 0
    for (const char *at = asked;; at++) {
        char *end;
        const unsigned long long rank = strtoull(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' || rank >= fold->ranks) return "--fold takes auto, none or ranks: 0,1,63";
        if (fold->running_count == sizeof fold->running / sizeof *fold->running) return "--fold takes at most 64 ranks";
        run_also(fold, rank);
        at = end;
        if (*at == '\0') break;
        if (*at != ',') return "--fold takes auto, none or ranks: 0,1,63";
    }
    qsort(fold->running, fold->running_count, sizeof *fold->running, by_number);
    return NULL;
}

static bool put_environment(const struct fit_fold *fold) {
    char text[600], number[24];
    size_t used = (size_t)snprintf(text, sizeof text, "%" PRIu64 ":", fold->ranks);
    for (size_t i = 0; i < fold->running_count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, i == 0 ? "" : ",", fold->running[i]);
    (void)snprintf(number, sizeof number, "%" PRIu64, fold->of_machine);
    return used < sizeof text && setenv("VRAM_SIM_RANKS", text, 1) == 0 && setenv("VRAM_FIT_LOCAL_WORLD", number, 1) == 0;
}

// Changes the program's arguments and environment to the ranks that run.
static const char *set_running(struct fit_fold *fold) {
    (void)snprintf(fold->count_text, sizeof fold->count_text, "%zu", fold->running_count);
    replace_argument(fold->processes_at, fold->options[0], fold->count_text, fold->joined[0], sizeof fold->joined[0]);
    if (fold->machines_at != NULL) replace_argument(fold->machines_at, fold->options[1], "1", fold->joined[1], sizeof fold->joined[1]);
    return put_environment(fold) ? NULL : "not enough host memory";
}

const char *fit_fold_begin(struct fit_fold *fold, const char *asked, char **program) {
    uint64_t started, on;
    *fold = (struct fit_fold){.ranks = 0};
    fold->processes_at = find_option(processes, program, &started);
    fold->machines_at = find_option(machines, program, &on);
    keep_option(fold->processes_at, fold->options[0]);
    keep_option(fold->machines_at, fold->options[1]);
    // num-processes counts the processes of all machines.
    const bool of_all =
        fold->processes_at != NULL && (strncmp(fold->options[0], "--num-p", 7) == 0 || strncmp(fold->options[0], "--num_p", 7) == 0);
    const uint64_t ranks = of_all ? started : started * on;
    if (asked == NULL && (fold->processes_at == NULL || ranks <= FIT_RANKS_RUN_MOST)) return NULL;
    if (asked != NULL && strcmp(asked, "none") == 0) return NULL;
    if (fold->processes_at == NULL) return "--fold needs a launcher's --nproc-per-node, --num-processes or --num-gpus";
    if (ranks < 2 || ranks > FIT_RANKS_MOST) return "2 to 65536 ranks can be folded";
    fold->ranks = ranks;
    fold->of_machine = of_all ? started / (on == 0 ? 1 : on) : started;
    const char *wrong = choose_ranks(fold, asked == NULL ? "auto" : asked);
    return wrong != NULL ? wrong : set_running(fold);
}

const char *fit_fold_scout(struct fit_fold *fold) {
    fold->running_count = fold->kind_count = 0;
    run_also(fold, 0);
    return setenv("VRAM_FIT_SCOUTS", "1", 1) == 0 ? set_running(fold) : "not enough host memory";
}

// --- the file `kinds` -----------------------------------------------------------------------------------------------------------------

// Reads ranks with a character between them.
static size_t read_ranks(const char *text, uint64_t most, uint64_t *ranks, size_t capacity) {
    size_t count = 0;
    for (char *end; *text >= '0' && *text <= '9' && count < capacity; text = end + (*end == ',' || *end == ' ')) {
        const uint64_t rank = strtoull(text, &end, 10);
        if (rank < most) ranks[count++] = rank;
    }
    return count;
}

// "kind 1024 0,8191 pp 1 of 8"
static void read_kind(struct fit_fold *fold, const char *text) {
    char ranks[400] = "";
    if (fold->kind_count == FIT_KINDS_MOST) return;
    struct fit_kind *kind = &fold->kinds[fold->kind_count];
    *kind = (struct fit_kind){.count = 0};
    if (sscanf(text, "%" SCNu64 " %399s %199[^\n]", &kind->count, ranks, kind->name) != 3) return;
    kind->running_count = read_ranks(ranks, fold->ranks, kind->running, FIT_KINDS_MOST);
    fold->kind_count++;
}

static void read_line(struct fit_fold *fold, char *line) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "run ", 4) == 0)
        fold->running_count = read_ranks(line + 4, fold->ranks, fold->running, sizeof fold->running / sizeof *fold->running);
    if (strncmp(line, "kind ", 5) == 0) read_kind(fold, line + 5);
}

const char *fit_fold_take_kinds(struct fit_fold *fold, const char *folder) {
    char path[4200], line[2048]; // 400 characters (vram_fit_kinds.py)
    (void)snprintf(path, sizeof path, "%s/kinds", folder);
    FILE *file = fopen(path, "r");
    fold->running_count = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) read_line(fold, line);
    if (file != NULL) (void)fclose(file);
    if (fold->running_count == 0) run_a_few(fold);
    return unsetenv("VRAM_FIT_SCOUTS") == 0 ? set_running(fold) : "not enough host memory";
}
