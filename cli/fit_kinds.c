// The kinds of ranks in the answer of `vram fit --fold auto`.
#include "fit_kinds.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/json_rows.h"
#include "fit_cards.h"
#include "fit_page.h"
#include "output.h"
#include "base/text.h"
#include "ui.h"
#include "vram/recordings.h"
#include "vram/roles.h"

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
    struct vr_sink sink = vr_sink_begin(text, capacity);
    for (size_t i = 0; i < kind->running_count; i++) vr_sink_printf(&sink, "%s%" PRIu64, i == 0 ? "" : ", ", kind->running[i]);
}

// Returns the smallest card whose memory holds what the kind's ranks reserve, the context and the libraries; "none" if no card does.
static const char *card_of(const struct fit_verdict *verdict, const struct fit_holding *highest) {
    const uint64_t context = verdict->ran_on.context_bytes, outside = highest->outside_bytes;
    const uint64_t libraries = outside > context ? outside - context : 0;
    for (const struct fit_card *card = verdict->cards; card < verdict->cards + verdict->card_count; card++) {
        const uint64_t need_bytes = highest->reserved_bytes + libraries + card->model.context_bytes;
        if (fit_is_judged(verdict, card) && fit_is_offered(card) && need_bytes <= card->model.memory_bytes) return card->model.key;
    }
    return "none";
}

static void print_kind(FILE *page, const struct fit_answer *answer, const struct fit_kind *kind) {
    char ranks[120], allocated[UI_SIZE_CAPACITY] = "?", reserved[UI_SIZE_CAPACITY] = "?";
    const struct fit_holding *highest = highest_of(answer->run, kind);
    write_ranks(kind, ranks, sizeof ranks);
    if (highest != NULL) {
        (void)ui_size(highest->allocated_bytes, allocated);
        (void)ui_size(highest->reserved_bytes, reserved);
    }
    fprintf(page, "%17s%5" PRIu64 " %10s %10s  %-9s ", "", kind->count, allocated, reserved,
            highest == NULL ? "?" : card_of(answer->verdict, highest));
    ui_put(page, kind->name);
    fprintf(page, " (ran: %s%s)\n", ranks, highest == NULL ? "; no recording" : "");
}

// --- why one kind needs more than another --------------------------------------------------------------------------------------------

// Stores the bytes of each role at the peak. Returns false if they are not known.
static bool roles_of(const struct fit_holding *holding, uint64_t bytes[VRAM_ROLE_COUNT]) {
    const struct vram_roles_options options = {.device = holding->device};
    struct vram_recording *recording;
    struct vram_roles *roles;
    if (holding->process->whole_program || fit_run_recording(holding->process, &recording) != CLI_OK) return false;
    const bool known = vram_roles_create(recording, &options, &roles, NULL) == VRAM_OK;
    vram_recording_destroy(recording);
    if (!known) return false;
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) bytes[role] = roles->at_peak[role].bytes;
    vram_roles_destroy(roles);
    return true;
}

// Appends the role that grew most from `low` to `high`, and sets it to be equal. Returns false if none grew.
static bool append_largest(char *text, size_t capacity, uint64_t low[VRAM_ROLE_COUNT], const uint64_t high[VRAM_ROLE_COUNT]) {
    char size[UI_SIZE_CAPACITY];
    size_t largest = VRAM_ROLE_UNKNOWN + 1;
    const size_t used = strlen(text);
    for (size_t role = largest; role < VRAM_ROLE_COUNT; role++)
        if (high[role] > low[role] && (high[largest] <= low[largest] || high[role] - low[role] > high[largest] - low[largest]))
            largest = role;
    if (high[largest] <= low[largest] || used >= capacity) return false;
    (void)snprintf(text + used, capacity - used, "%s%s %s", text[used - 1] == ':' ? " " : ", ", vram_role_title(largest),
                   ui_size(high[largest] - low[largest], size));
    low[largest] = high[largest];
    return true;
}

void fit_kinds_reason(const struct fit_answer *answer, char *text, size_t capacity) {
    enum { ROLES = 3 };
    const struct fit_fold *fold = answer->fold;
    const struct fit_kind *most = NULL, *least = NULL;
    uint64_t low[VRAM_ROLE_COUNT], high[VRAM_ROLE_COUNT];
    text[0] = '\0';
    for (const struct fit_kind *kind = fold->kinds; kind < fold->kinds + fold->kind_count; kind++) {
        const struct fit_holding *highest = highest_of(answer->run, kind);
        if (highest == NULL) continue;
        if (most == NULL || highest->allocated_bytes > highest_of(answer->run, most)->allocated_bytes) most = kind;
        if (least == NULL || highest->allocated_bytes < highest_of(answer->run, least)->allocated_bytes) least = kind;
    }
    if (most == least || !roles_of(highest_of(answer->run, least), low) || !roles_of(highest_of(answer->run, most), high)) return;
    (void)snprintf(text, capacity, "%s; at its peak, more than %s:", most->name, least->name);
    for (int i = 0; i < ROLES && append_largest(text, capacity, low, high); i++) continue;
    if (text[strlen(text) - 1] == ':') text[0] = '\0';
}

static void print_reason(FILE *page, const struct fit_answer *answer) {
    char text[800];
    fit_kinds_reason(answer, text, sizeof text);
    if (text[0] == '\0') return;
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, "Highest");
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

// Prints the host memory of a machine: its ranks run as one process each.
static void print_host(FILE *page, const struct fit_answer *answer) {
    uint64_t most = 0;
    char rank[UI_SIZE_CAPACITY], machine[UI_SIZE_CAPACITY];
    const uint64_t ranks = answer->fold->launcher.of_machine;
    for (size_t i = 0; i < answer->run->process_count; i++)
        if (answer->run->processes[i].host.most_bytes > most) most = answer->run->processes[i].host.most_bytes;
    if (most == 0 || ranks < 2) return;
    fprintf(page, "%17shost memory: up to %s a rank, %s for the %" PRIu64 " ranks of a machine\n", "", ui_size(most, rank),
            ui_size(most * ranks, machine), ranks);
}

void fit_kinds_print(FILE *page, const struct fit_answer *answer) {
    const struct fit_fold *fold = answer->fold;
    uint64_t known = 0;
    if (fold->kind_count > 0) fprintf(page, "  %-14s ranks  allocated   reserved  card      kind\n", "Kinds");
    for (size_t i = 0; i < fold->kind_count; i++) {
        print_kind(page, answer, &fold->kinds[i]);
        known += fold->kinds[i].count;
    }
    if (fold->kind_count > 0 && known < fold->ranks)
        fprintf(page, "%17s%" PRIu64 " ranks are of other kinds, which did not run\n", "", fold->ranks - known);
    print_reason(page, answer);
    if (fold->ranks != 0) print_host(page, answer);
}

#define FIT_KIND_FACTS(X)                                                                                                                  \
    X(TEXT, "name", it->name, ALWAYS, "place in each group whose members send each other messages: `pp 1 of 8`")                           \
    X(U64, "ranks", it->count, ALWAYS, "number of ranks")                                                                                  \
    X(TEXT, "ran", ranks, ALWAYS, "the ranks that ran")                                                                                    \
    X(U64, "rank", highest == NULL ? 0 : highest->process->rank, NULL_UNLESS(highest != NULL),                                             \
      "the rank with these peaks, which reserves the most; null: no recording")                                                            \
    X(U64, "allocated_bytes", highest == NULL ? 0 : highest->allocated_bytes, ALWAYS, "allocated peak of the rank that reserves the most") \
    X(U64, "reserved_bytes", highest == NULL ? 0 : highest->reserved_bytes, ALWAYS, "reserved peak of that rank; 0: it left no recording") \
    X(U64, "outside_bytes", highest == NULL ? 0 : highest->outside_bytes, ALWAYS, "bytes of context and libraries, such as communicators") \
    X(U64, "host_bytes", highest == NULL ? 0 : highest->process->host.most_bytes, ALWAYS, "most host memory of that rank's process")       \
    X(TEXT, "card", highest == NULL ? NULL : card_of(answer->verdict, highest), ALWAYS,                                                    \
      "smallest card whose memory holds all that; `none` if no card does; null: no recording")

void fit_kinds_json(struct vr_json *json, const char *name, const struct fit_answer *answer) {
    const struct fit_fold *fold = answer->fold;
    vr_json_array(json, name);
    for (const struct fit_kind *it = fold->kinds; it < fold->kinds + fold->kind_count; it++) {
        char ranks[400] = "";
        const struct fit_holding *highest = highest_of(answer->run, it);
        write_ranks(it, ranks, sizeof ranks);
        vr_json_object(json, NULL);
        FIT_KIND_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

int fit_kinds_keep(const struct fit_answer *answer, const char *folder) {
    char path[4200], reason[800];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, FIT_KINDS_FILE);
    if (answer->fold->kind_count == 0) return CLI_OK;
    if (length < 0 || (size_t)length >= sizeof path) return ui_usage("fit", "vram fit: --output: the path is too long");
    struct answer_json made;
    struct vr_json *json = answer_json_begin(&made);
    vr_json_object(json, NULL);
    vr_json_u64(json, "ranks", answer->fold->ranks);
    vr_json_u64(json, "ran", answer->fold->running_count);
    vr_json_string(json, "highest_kind", fit_kinds_text(answer, reason, sizeof reason));
    fit_kinds_json(json, "kinds", answer);
    vr_json_object_end(json);
    struct output *output = output_open(path);
    const bool good = output != NULL && vr_text_status(&made.text) == VRAM_OK && output_write(output, made.text.bytes, made.text.length);
    vr_text_release(&made.text);
    return output == NULL ? CLI_BAD_INPUT : output_close(output, good);
}
