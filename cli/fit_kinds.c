// The kinds of ranks in the answer of `vram fit --fold auto`.
#include "fit_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_rows.h"
#include "ui.h"

static bool ran_in(const struct fit_kind *kind, uint64_t rank) {
    for (size_t i = 0; i < kind->running_count; i++)
        if (kind->running[i] == rank) return true;
    return false;
}

// Returns the holding of the kind that reserves the most; NULL if none of its ranks left a recording.
static const struct fit_holding *highest_of(const struct fit_run *run, const struct fit_kind *kind) {
    const struct fit_holding *highest = NULL;
    for (size_t i = 0; i < run->holding_count; i++) {
        const struct fit_holding *one = &run->holdings[i];
        if (ran_in(kind, one->process->rank) && (highest == NULL || one->reserved_bytes > highest->reserved_bytes)) highest = one;
    }
    return highest;
}

static void write_ranks(const struct fit_kind *kind, char *text, size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < kind->running_count && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRIu64, i == 0 ? "" : ", ", kind->running[i]);
}

static void print_kind(FILE *page, const struct fit_run *run, const struct fit_kind *kind) {
    char ranks[120], allocated[UI_SIZE_CAPACITY] = "?", reserved[UI_SIZE_CAPACITY] = "?";
    const struct fit_holding *highest = highest_of(run, kind);
    write_ranks(kind, ranks, sizeof ranks);
    if (highest != NULL) {
        (void)ui_size(highest->allocated_bytes, allocated);
        (void)ui_size(highest->reserved_bytes, reserved);
    }
    fprintf(page, "%17s%5" PRIu64 " %10s %10s  ", "", kind->count, allocated, reserved);
    ui_put(page, kind->name);
    fprintf(page, " (ran: %s%s)\n", ranks, highest == NULL ? "; no recording" : "");
}

void fit_kinds_print(FILE *page, const struct fit_run *run, const struct fit_fold *fold) {
    uint64_t known = 0;
    if (fold->kind_count > 0) fprintf(page, "  %-14s ranks  allocated   reserved  kind\n", "Kinds");
    for (size_t i = 0; i < fold->kind_count; i++) {
        print_kind(page, run, &fold->kinds[i]);
        known += fold->kinds[i].count;
    }
    if (fold->kind_count > 0 && known < fold->ranks)
        fprintf(page, "                 %" PRIu64 " ranks are of other kinds, which did not run\n", fold->ranks - known);
}

#define FIT_KIND_FACTS(X)                                                                                                                  \
    X(TEXT, "name", it->name, ALWAYS, "place in each group whose members send each other messages: `pp 1 of 8`")                           \
    X(U64, "ranks", it->count, ALWAYS, "number of ranks")                                                                                  \
    X(TEXT, "ran", ranks, ALWAYS, "the ranks that ran")                                                                                    \
    X(U64, "allocated_bytes", highest == NULL ? 0 : highest->allocated_bytes, ALWAYS, "allocated peak of the rank that reserves the most") \
    X(U64, "reserved_bytes", highest == NULL ? 0 : highest->reserved_bytes, ALWAYS, "reserved peak of that rank; 0: it left no recording")

void fit_kinds_json(struct vr_json *json, const char *name, const struct fit_run *run, const struct fit_fold *fold) {
    vr_json_array(json, name);
    for (const struct fit_kind *it = fold->kinds; it < fold->kinds + fold->kind_count; it++) {
        char ranks[400] = "";
        const struct fit_holding *highest = highest_of(run, it);
        write_ranks(it, ranks, sizeof ranks);
        vr_json_object(json, NULL);
        FIT_KIND_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}
