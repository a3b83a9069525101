#include "fit_fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
        if (end == at || *at < '0' || *at > '9') return "--fold takes auto, none or ranks: 0,1,63";
        if (rank >= fold->ranks) {
            (void)snprintf(fold->wrong, sizeof fold->wrong, "--fold: there is no rank %llu: the program has ranks 0 to %" PRIu64, rank,
                           fold->ranks - 1);
            return fold->wrong;
        }
        if (fold->running_count == sizeof fold->running / sizeof *fold->running) return "--fold takes at most 64 ranks";
        run_also(fold, rank);
        at = end;
        if (*at == '\0') break;
        if (*at != ',') return "--fold takes auto, none or ranks: 0,1,63";
    }
    qsort(fold->running, fold->running_count, sizeof *fold->running, by_number);
    return NULL;
}

static uint64_t local_rank(const struct fit_fold *fold, size_t i) {
    return fold->launcher.of_machine == 0 ? fold->running[i] : fold->running[i] % fold->launcher.of_machine;
}

static bool has_own_devices(const struct fit_fold *fold) {
    uint64_t used = 0;
    for (size_t i = 0; i < fold->running_count; i++) {
        const uint64_t local = local_rank(fold, i);
        if (local >= 64 || (used >> local & 1) != 0) return false;
        used |= UINT64_C(1) << local;
    }
    return !fold->has_devices;
}

uint64_t fit_fold_devices(const struct fit_fold *fold) {
    uint64_t most = 0;
    if (!has_own_devices(fold)) return fold->running_count;
    for (size_t i = 0; i < fold->running_count; i++)
        if (local_rank(fold, i) > most) most = local_rank(fold, i);
    return most + 1;
}

// Sets the local ranks of the processes, or removes them.
static bool put_local_ranks(const struct fit_fold *fold) {
    char text[600];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    if (!has_own_devices(fold)) return unsetenv("VRAM_FIT_LOCAL_RANKS") == 0;
    for (size_t i = 0; i < fold->running_count; i++) vr_sink_printf(&sink, "%s%" PRIu64, i == 0 ? "" : ",", local_rank(fold, i));
    return sink.length < sizeof text && setenv("VRAM_FIT_LOCAL_RANKS", text, 1) == 0;
}

static bool put_environment(const struct fit_fold *fold) {
    char text[600], number[24];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%" PRIu64 ":", fold->ranks);
    for (size_t i = 0; i < fold->running_count; i++) vr_sink_printf(&sink, "%s%" PRIu64, i == 0 ? "" : ",", fold->running[i]);
    (void)snprintf(number, sizeof number, "%" PRIu64, fold->launcher.of_machine);
    return sink.length < sizeof text && setenv("VRAM_SIM_RANKS", text, 1) == 0 && setenv("VRAM_FIT_LOCAL_WORLD", number, 1) == 0 &&
           put_local_ranks(fold) && (!fold->few || setenv("VRAM_FIT_FEW", "1", 1) == 0);
}

// Changes the program's arguments and environment to the ranks that run.
static const char *set_running(struct fit_fold *fold) {
    fit_launcher_set(&fold->launcher, fold->running_count);
    return put_environment(fold) ? NULL : "not enough host memory";
}

// Lets all ranks run on this machine. Those of one machine need no change.
static const char *run_all(struct fit_fold *fold) {
    const uint64_t ranks = fold->launcher.ranks;
    if (fold->launcher.machines < 2 || ranks < 2 || ranks > sizeof fold->running / sizeof *fold->running) return NULL;
    fold->ranks = ranks;
    for (uint64_t rank = 0; rank < ranks; rank++) run_also(fold, rank);
    return set_running(fold);
}

const char *fit_fold_begin(struct fit_fold *fold, const char *asked, bool few, bool has_devices, char **program) {
    const uint64_t most = few ? FIT_FEW_MOST : FIT_RANKS_RUN_MOST;
    *fold = (struct fit_fold){.ranks = 0, .few = few, .has_devices = has_devices};
    fit_launcher_find(&fold->launcher, program);
    const uint64_t ranks = fold->launcher.ranks;
    fit_launcher_settle(&fold->launcher);
    const bool none = asked != NULL && strcmp(asked, "none") == 0;
    const bool has_launcher = fold->launcher.processes_at != NULL;
    if (none || (asked == NULL && (!has_launcher || ranks <= most))) return has_launcher ? run_all(fold) : NULL;
    if (!has_launcher)
        return "--fold needs a launcher's number of processes: --nproc-per-node, --num-processes, --num-gpus, or -n of mpirun or srun";
    if (ranks < 2 || ranks > FIT_RANKS_MOST) return "2 to 65536 ranks can be folded";
    fold->ranks = ranks;
    const char *wrong = choose_ranks(fold, asked == NULL ? "auto" : asked);
    return wrong != NULL ? wrong : set_running(fold);
}

void fit_fold_end(const struct fit_fold *fold) {
    static const char *const variables[] = {"VRAM_SIM_RANKS", "VRAM_FIT_LOCAL_WORLD", "VRAM_FIT_LOCAL_RANKS", "VRAM_FIT_SCOUTS",
                                            "VRAM_FIT_FEW"};
    for (size_t i = 0; fold->ranks != 0 && i < sizeof variables / sizeof *variables; i++) (void)unsetenv(variables[i]);
}

const char *fit_fold_scout(struct fit_fold *fold) {
    fold->running_count = fold->kind_count = 0;
    run_also(fold, 0);
    return setenv("VRAM_FIT_SCOUTS", "1", 1) == 0 ? set_running(fold) : "not enough host memory";
}

// --- the file `kinds` -----------------------------------------------------------------------------------------------------------------

#define NOTED_MOST    65536
#define LINE_CAPACITY 2048 // 400 characters (vram_fit_kinds.py)

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

static void read_line(struct fit_fold *fold, const char *line) {
    if (strncmp(line, "run ", 4) == 0)
        fold->running_count = read_ranks(line + 4, fold->ranks, fold->running, sizeof fold->running / sizeof *fold->running);
    if (strncmp(line, "kind ", 5) == 0) read_kind(fold, line + 5);
}

char *fit_fold_noted(const char *folder) {
    char path[4200], *text = calloc(NOTED_MOST + 1, 1);
    (void)snprintf(path, sizeof path, "%s/kinds", folder);
    FILE *file = text == NULL ? NULL : fopen(path, "r");
    const size_t length = file == NULL ? 0 : fread(text, 1, NOTED_MOST, file);
    if (file != NULL) (void)fclose(file);
    if (length > 0) return text;
    free(text);
    return NULL;
}

const char *fit_fold_take_kinds(struct fit_fold *fold, const char *noted, bool notes_again) {
    char line[LINE_CAPACITY];
    fold->running_count = fold->kind_count = 0;
    for (const char *at = noted; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), at);
        read_line(fold, line);
        at += length + (at[length] == '\n');
    }
    if (fold->running_count == 0) run_a_few(fold);
    if (!notes_again && unsetenv("VRAM_FIT_SCOUTS") != 0) return "not enough host memory";
    return set_running(fold);
}
