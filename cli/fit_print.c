// Prints the answer of `vram fit`. It begins by saying whether the program fits, on which cards, and how much it needs, or that the
// program failed.

#include "fit_print.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "fit_doubt.h"
#include "fit_failure.h"
#include "fit_kinds.h"
#include "fit_page.h"
#include "base/text.h"
#include "ui.h"
#include "vram/recording.h"
#include "vram/report.h"
#include "vram/roles.h"

#define SIZE(bytes) ui_size((bytes), (char[UI_SIZE_CAPACITY]){0})

#define MOST_NAMED 4 // cards in the first line

enum verdict { FITS, NOT_SURE, DOES_NOT_FIT, VERDICTS };

static enum verdict verdict_of(const struct fit_card *card) { return !card->fits ? DOES_NOT_FIT : card->unsure ? NOT_SURE : FITS; }

static void print_need(FILE *page, const struct fit_answer *answer) {
    char low[UI_SIZE_CAPACITY], high[UI_SIZE_CAPACITY];
    const uint64_t need_bytes = fit_need_bytes(answer->verdict);
    (void)ui_size(need_bytes, low);
    (void)ui_size(need_bytes + answer->stake_bytes, high);
    const char *unit = strchr(low, ' '), *other = strchr(high, ' ');
    const bool same = unit != NULL && other != NULL && strcmp(unit, other) == 0;
    if (strcmp(low, high) == 0)
        fprintf(page, "%s", low);
    else
        fprintf(page, "%.*s to %s", same ? (int)(unit - low) : (int)strlen(low), low, high);
}

static void print_named(FILE *page, const struct fit_verdict *verdict, enum verdict of) {
    size_t count = 0, printed = 0;
    for (size_t i = 0; i < verdict->card_count; i++) count += verdict->cards[i].asked && verdict_of(&verdict->cards[i]) == of;
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked || verdict_of(&verdict->cards[i]) != of) continue;
        fprintf(page, "%s%s", printed == 0 ? "" : printed + 1 == count ? " and " : ", ", verdict->cards[i].model.key);
        printed++;
    }
}

// Prints the requested cards by verdict.
static void print_where(FILE *page, const struct fit_verdict *verdict) {
    static const char *const first[VERDICTS] = {"Fits on ", "Might not fit on ", "Does not fit on "};
    static const char *const further[VERDICTS] = {"", ", might not fit on ", ", not on "};
    size_t counts[VERDICTS] = {0}, asked = 0;
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked) continue;
        asked++;
        counts[verdict_of(&verdict->cards[i])]++;
    }
    bool begun = false;
    for (enum verdict of = FITS; of < VERDICTS; of++) {
        if (counts[of] == 0 || (asked > MOST_NAMED && begun && of == DOES_NOT_FIT)) continue;
        fprintf(page, "%s", begun ? further[of] : first[of]);
        if (asked <= MOST_NAMED)
            print_named(page, verdict, of);
        else if (counts[of] == asked)
            fprintf(page, of == FITS ? "all %zu cards" : "any of %zu cards", asked);
        else
            fprintf(page, begun ? "%zu" : "%zu of %zu cards", counts[of], asked);
        begun = true;
    }
}

static void print_varied(FILE *page, const char *varied) {
    if (varied == NULL) return;
    fprintf(page, "With ");
    ui_put(page, varied);
    fprintf(page, "\n");
}

static void print_failure(FILE *page, const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    char text[2000];
    size_t too_small = 0;
    fit_failure_text(answer->run, text, sizeof text);
    ui_wrap(page, text, 0, UINT_MAX);
    fprintf(page, "\nAt least %s on a GPU like %s until then", SIZE(fit_need_bytes(verdict)), verdict->ran_on.key);
    for (size_t i = 0; i < verdict->card_count; i++) too_small += verdict->cards[i].asked && !verdict->cards[i].fits;
    if (answer->limit_bytes != UINT64_MAX)
        fprintf(page, verdict->smallest_bytes > answer->limit_bytes ? ", more than the limit" : "; the limit is %s",
                SIZE(answer->limit_bytes));
    else if (too_small > 0 && too_small <= MOST_NAMED) {
        fprintf(page, ", too much for ");
        print_named(page, verdict, DOES_NOT_FIT);
    } else if (too_small > 0)
        fprintf(page, ", too much for %zu cards", too_small);
    fprintf(page, "\n");
}

// Prints what comes between the verdict and the need: the reason if the verdict is not sure, on the first line.
static void print_doubt(FILE *page, const struct fit_answer *answer) {
    char text[2000];
    const char *why = fit_doubt_text(answer, text, sizeof text);
    fprintf(page, ": ");
    if (why != NULL) ui_wrap(page, why, 0, UINT_MAX);
    fprintf(page, why == NULL ? "needs " : "\nNeeds ");
}

static void print_headline(FILE *page, const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    print_varied(page, answer->varied);
    if (fit_run_failed(answer->run)) {
        print_failure(page, answer);
        return;
    }
    if (answer->limit_bytes != UINT64_MAX)
        fprintf(page, "%s", answer->unsure ? "Not sure" : answer->fits ? "Fits" : "Does not fit");
    else
        print_where(page, verdict);
    print_doubt(page, answer);
    print_need(page, answer);
    if (answer->limit_bytes != UINT64_MAX)
        fprintf(page, ", the limit is %s\n", SIZE(answer->limit_bytes));
    else
        fprintf(page, " on a GPU like %s\n", verdict->ran_on.key);
}

uint64_t fit_need_bytes(const struct fit_verdict *verdict) {
    return verdict->highest->reserved_bytes + verdict->highest->outside_bytes + verdict->others_bytes;
}

// --- place and moment of the peak ---------------------------------------------------------------------------------------------------

static const struct vram_report_device *device_of(const struct vram_report *report, uint32_t device) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].device == device) return &report->devices[i];
    return NULL;
}

static void print_site(FILE *page, const char *site) { ui_put(page, fit_site_short(site)); }

static void print_sites(FILE *page, const struct vram_report_device *device) {
    const char *title = "At the peak";
    for (size_t i = 0; i < device->allocated.site_count && i < 3; i++) {
        if (strcmp(device->allocated.sites[i].name, "<no frames>") == 0) continue;
        fprintf(page, "  %-*s%s ", FIT_TEXT_COLUMN - 2, title, SIZE(device->allocated.sites[i].bytes));
        print_site(page, device->allocated.sites[i].name);
        fprintf(page, "\n");
        title = "";
    }
}

static void print_wrapped(FILE *page, const char *title, const char *text) {
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, title);
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

// Prints the uses of the peak, largest first.
static void print_roles(FILE *page, const struct vram_roles *roles) {
    size_t column = FIT_TEXT_COLUMN;
    bool printed[VRAM_ROLE_COUNT] = {false};
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, "At the peak");
    for (size_t n = 0; n < VRAM_ROLE_COUNT; n++) {
        size_t most = VRAM_ROLE_COUNT;
        for (size_t role = 0; role < VRAM_ROLE_COUNT; role++)
            if (!printed[role] && (most == VRAM_ROLE_COUNT || roles->at_peak[role].bytes > roles->at_peak[most].bytes)) most = role;
        printed[most] = true;
        if (roles->at_peak[most].bytes == 0) break;
        const char *size = SIZE(roles->at_peak[most].bytes);
        const size_t length = strlen(vram_role_title(most)) + 1 + strlen(size);
        // Keep a size and its comma on the line of its name.
        const bool begins = n > 0 && column + length + 1 > fit_page_columns();
        if (begins) column = FIT_TEXT_COLUMN;
        if (begins)
            fprintf(page, ",\n%*s", FIT_TEXT_COLUMN, "");
        else if (n > 0)
            fprintf(page, ", ");
        fprintf(page, "%s %s", vram_role_title(most), size);
        column += length + 2;
    }
    fprintf(page, "\n");
    for (size_t i = 0; i < roles->module_count && i < 3; i++) {
        fprintf(page, "                 %s %s ", SIZE(roles->modules[i].bytes), vram_role_title(roles->modules[i].role));
        print_site(page, roles->modules[i].name);
        fprintf(page, "\n");
    }
}

// Returns whether the stacks of a program without PyTorch explain most of its memory.
static bool has_roles(const struct vram_roles *roles) {
    static const enum vram_role certain[] = {VRAM_ROLE_PARAMETERS, VRAM_ROLE_KV_CACHE, VRAM_ROLE_WORKSPACES};
    uint64_t all_bytes = 0, named_bytes = 0;
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) all_bytes += roles->at_peak[role].bytes;
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) named_bytes += roles->at_peak[certain[i]].bytes;
    return named_bytes > all_bytes / 2;
}

// Prints the step and the call site of the request that made the peak.
static void print_when(FILE *page, const struct fit_verdict *verdict, const struct fit_run *run, int64_t event) {
    char site[FIT_SITE_CAPACITY];
    const uint32_t device = verdict->highest->device;
    const uint64_t step = event < 0 ? 0 : fit_step_of(verdict->recording, device, (uint64_t)event);
    site[0] = '\0';
    if (event >= 0) fit_site_of(verdict->recording, device, (uint64_t)event, site, sizeof site);
    if (step == 0 && site[0] == '\0') return;
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, "When");
    if (step > run->steps)
        fprintf(page, "after step %" PRIu64 "%s", run->steps, site[0] == '\0' ? "" : ", ");
    else if (step != 0)
        fprintf(page, "in step %" PRIu64 " of %" PRIu64 "%s", step, run->steps, site[0] == '\0' ? "" : ", ");
    if (site[0] != '\0') {
        fprintf(page, "at ");
        print_site(page, site);
    }
    fprintf(page, "\n");
}

static void print_moment(FILE *page, const struct fit_verdict *verdict, const struct fit_run *run) {
    struct vram_report *report;
    struct vram_roles *roles;
    const struct fit_holding *highest = verdict->highest;
    if (vram_report_create(verdict->recording, &(struct vram_report_options){.top = 4}, &report, NULL) != VRAM_OK) return;
    const struct vram_report_device *device = device_of(report, highest->device);
    print_when(page, verdict, run, device == NULL ? -1 : device->allocated.peak_event);
    const struct vram_roles_options options = {.device = highest->device, .top = 3};
    const bool computed = vram_roles_create(verdict->recording, &options, &roles, NULL) == VRAM_OK;
    const bool by_role = computed && (!highest->process->whole_program || has_roles(roles));
    if (by_role) print_roles(page, roles);
    if (computed) vram_roles_destroy(roles);
    if (!by_role && device != NULL) print_sites(page, device);
    vram_report_destroy(report);
}

#define KEY_WIDTH     8 // minimum width of a card's key
#define MOST_DETAILED 3 // cards described in detail if they run out of memory; with more cards, only the largest

// --- the cards ----------------------------------------------------------------------------------------------------------------------

static void print_oom(FILE *page, const struct fit_oom *oom) {
    char text[300];
    if (!oom->known) return;
    fprintf(page, "%*sruns out", FIT_TEXT_COLUMN + 2, "");
    if (oom->step != 0) fprintf(page, " in step %" PRIu64, oom->step);
    fprintf(page, ": %s requested", SIZE(oom->requested_bytes));
    if (oom->site[0] != '\0') {
        fprintf(page, " at\n%*s", FIT_TEXT_COLUMN + 2, "");
        print_site(page, oom->site);
    }
    fprintf(page, "\n%*s", FIT_TEXT_COLUMN + 2, "");
    if (oom->allocated_bytes + oom->requested_bytes <= oom->room_bytes)
        (void)snprintf(text, sizeof text, "%s in use of %s: %s is cached, in pieces of at most %s", SIZE(oom->allocated_bytes),
                       SIZE(oom->room_bytes), SIZE(oom->cached_bytes), SIZE(oom->largest_free_bytes));
    else
        (void)snprintf(text, sizeof text, "%s in use of %s: too much is live at once", SIZE(oom->allocated_bytes), SIZE(oom->room_bytes));
    ui_wrap(page, text, FIT_TEXT_COLUMN + 2, UINT_MAX);
    fprintf(page, "\n");
}

// Prints a card's row. `detailed` adds where memory runs out. `width` is that of the longest key.
static void print_card(FILE *page, const struct fit_card *card, int width, bool detailed, bool failed) {
    const uint64_t spare = card->model.memory_bytes > card->need_bytes ? card->model.memory_bytes - card->need_bytes : 0;
    char size[UI_SIZE_CAPACITY + 1];
    (void)snprintf(size, sizeof size, "%s%s", fit_memory_is_estimated(&card->model) ? "~" : "", SIZE(card->model.memory_bytes));
    fprintf(page, "%-*s %9s  ", width, card->model.key, size);
    if (card->unsure && card->need_bytes > card->model.memory_bytes)
        fprintf(page, "%s", failed ? "not known" : "not sure");
    else if (card->unsure)
        fprintf(page, "%s (%s to spare%s)", failed ? "not known" : "not sure", SIZE(spare), failed ? " until then" : "");
    else if (!card->fits)
        fprintf(page, "no, %s short", SIZE(card->need_bytes > card->model.memory_bytes ? card->need_bytes - card->model.memory_bytes : 0));
    else if (card->need_bytes <= card->model.memory_bytes)
        fprintf(page, "fits, %s to spare", SIZE(spare));
    else
        fprintf(page, "fits with %" PRIu64 " %s", card->retries, card->retries == 1 ? "retry" : "retries");
    if (card->unsure) {
        fprintf(page, "\n");
        return;
    }
    if (card->method == FIT_BY_RUN) fprintf(page, card->fits ? " (it ran there)" : " (it ran out there)");
    if (card->method == FIT_BY_REPLAY) fprintf(page, " (replayed)");
    if (card->method == FIT_BY_SHARE) fprintf(page, " (by its memory share)");
    if (card->method == FIT_BY_OTHER) fprintf(page, " (it failed there)");
    if (card->method == FIT_BY_DEFAULT) fprintf(page, " (no kernels for it)");
    fprintf(page, "\n");
    if (!card->fits && detailed) print_oom(page, &card->oom);
}

static void print_cards(FILE *page, const struct fit_verdict *verdict, bool failed) {
    size_t asked = 0, estimated = 0, largest = 0, printed = 0; // largest: that it does not fit
    int width = KEY_WIDTH;
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked) continue;
        asked++;
        estimated += fit_memory_is_estimated(&verdict->cards[i].model);
        if ((int)strlen(verdict->cards[i].model.key) > width) width = (int)strlen(verdict->cards[i].model.key);
        if (!verdict->cards[i].fits) largest = i;
    }
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked) continue;
        fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, printed++ == 0 ? "Cards" : "");
        print_card(page, &verdict->cards[i], width, asked <= MOST_DETAILED || i == largest, failed);
    }
    if (estimated > 0) print_wrapped(page, "", "~ estimated from a similar card, because no log of a real one is known");
}

// --- settings and certainty -----------------------------------------------------------------------------------------------------------

static void print_setting(FILE *page, const struct fit_setting *setting, const struct fit_verdict *verdict) {
    char title[48], text[500];
    if (!setting->any) return;
    if (setting->card != NULL)
        (void)snprintf(title, sizeof title, "On %s", setting->card->model.key);
    else
        (void)snprintf(title, sizeof title, "In the limit");
    if (setting->found && setting->conf[0] != '\0')
        (void)snprintf(text, sizeof text, "fits with PYTORCH_CUDA_ALLOC_CONF=%s (in %s)", setting->conf, SIZE(setting->needed_bytes));
    else if (setting->found)
        (void)snprintf(text, sizeof text, "completes in %s with the defaults by releasing cached memory on the way",
                       SIZE(setting->needed_bytes));
    else if (setting->tried)
        (void)snprintf(text, sizeof text, "none of the allocator settings tried makes it fit");
    else
        (void)snprintf(text, sizeof text, "no allocator setting can make it fit: %s live at once, %s available",
                       SIZE(verdict->highest->allocated_bytes), SIZE(setting->room_bytes));
    print_wrapped(page, title, text);
}

static void print_batch(FILE *page, const struct fit_batch *batch) {
    char text[400];
    if (!batch->known) return;
    if (batch->share <= 0)
        (void)snprintf(text, sizeof text, "no batch is small enough: %s does not depend on it", SIZE(batch->fixed_bytes));
    else if (batch->about > 0)
        (void)snprintf(text, sizeof text,
                       "%s=%" PRIu64 " might fit, instead of %" PRIu64 ": the peak scales with it (check with --vary '%s=%" PRIu64 "')",
                       batch->argument, batch->about, batch->value, batch->argument, batch->about);
    else
        (void)snprintf(
            text, sizeof text,
            "activations and inputs take %s, of which about %.0f %% would fit: try a smaller batch or a shorter sequence (--vary)",
            SIZE(batch->varying_bytes), batch->share * 100);
    print_wrapped(page, "", text);
}

#define MOST_PLACES 3

// Prints the innermost frame of the program's own code, else the innermost, as a call site: FOLDER/FILE:LINE:FUNCTION.
static void print_place(FILE *page, const struct sim_read_place *place) {
    char site[2 * FIT_FRAME_CAPACITY + 20] = "";
    struct fit_frame frame;
    if (fit_frame_own(place->text, &frame)) fit_frame_site(&frame, site, sizeof site);
    fprintf(page, "                 ");
    print_site(page, site);
    fprintf(page, " (%" PRIu64 "x%s%s)\n", place->calls, place->operation[0] == '\0' ? "" : ", aten::", place->operation);
}

static void print_reads(FILE *page, const struct fit_run *run) {
    char text[200];
    if (run->read_count == 0) return;
    (void)snprintf(
        text, sizeof text,
        "kernel results, at %zu %s; this run used zero or a likely value instead. The answer holds unless one of them determines a size "
        "or the number of steps",
        run->read_count, run->read_count == 1 ? "place" : "places");
    print_wrapped(page, "Values read", text);
    for (size_t i = 0; i < run->read_count && i < MOST_PLACES; i++) print_place(page, &run->reads[i]);
    if (run->read_count > MOST_PLACES) fprintf(page, "                 and %zu more (--json has all)\n", run->read_count - MOST_PLACES);
}

static void print_stake(FILE *page, const struct fit_answer *answer) {
    const struct fit_stake *stake = &answer->stake;
    const struct fit_holding *highest = answer->verdict->highest;
    char text[300];
    if (!stake->tried) return;
    const uint64_t more = stake->reserved_bytes > highest->reserved_bytes ? stake->reserved_bytes - highest->reserved_bytes : 0;
    const uint64_t allocated = stake->allocated_bytes > highest->allocated_bytes ? stake->allocated_bytes - highest->allocated_bytes : 0;
    (void)snprintf(text, sizeof text,
                   "up to %s more reserved and %s more allocated if nonzero(), masks and unique() find all%s (--nonzero sets how many)",
                   SIZE(more), SIZE(allocated), stake->finished ? "" : ", measured until that run failed");
    print_wrapped(page, "Data-dependent", text);
}

// Sizes of simulator/standins/common/size_names.def, in words. X(name, words)
#define SIZES_IN_WORDS(X)                                                                                                                  \
    X(CUDNN_ENGINE_WORKSPACE, "scratch memory of cuDNN, assumed to be none")                                                               \
    X(CUBLASLT_MATMUL_WORKSPACE, "scratch memory of cuBLASLt, assumed to be none")                                                         \
    X(CUSOLVER_WORKSPACE_PERCENT, "scratch memory of cuSOLVER, assumed to be a copy of the matrix")                                        \
    X(CUSPARSE_BUFFER, "scratch memory of cuSPARSE, assumed to be 1 KiB")                                                                  \
    X(CUDNN_DROPOUT_STATE, "the state of cuDNN's dropout, assumed to be 24 B per thread")                                                  \
    X(NCCL_CONNECTIONS_OF_TWO, "NCCL's connections of two ranks, assumed to be as on similar cards")                                       \
    X(NCCL_CONNECTIONS, "NCCL's connections of more ranks, assumed to be as on similar cards")                                             \
    X(NCCL_SENDS, "NCCL's connections for sends and receives, assumed to be none")

static const char *size_in_words(const char *name) {
#define SIZE_IN_WORDS(size, words)                                                                                                         \
    if (strcmp(name, #size) == 0) return words;
    SIZES_IN_WORDS(SIZE_IN_WORDS)
#undef SIZE_IN_WORDS
    return name;
}

static void print_names(FILE *page, const char *title, const struct sim_wanted *rows, size_t count, size_t most) {
    char text[800];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    if (count == 0) return;
    for (size_t i = 0; i < count && i < most; i++) {
        char of[64] = "";
        const bool is_size = strcmp(rows[i].library, "size") == 0;
        if (!is_size)
            (void)snprintf(of, sizeof of, " of %s", rows[i].library);
        else if (rows[i].bytes != 0)
            (void)snprintf(of, sizeof of, ": up to %s", SIZE(rows[i].bytes));
        vr_sink_printf(&sink, "%s%s%s",
                       i == 0    ? ""
                       : is_size ? "; "
                                 : ", ",
                       is_size ? size_in_words(rows[i].function) : rows[i].function, of);
    }
    if (count > most) vr_sink_printf(&sink, ", and %zu more", count - most);
    print_wrapped(page, title, text);
}

static void print_doubts(FILE *page, const struct fit_answer *answer) {
    const struct fit_run *run = answer->run;
    char unreached[1000];
    print_wrapped(page, "Exact",
                  "sizes and order of requests, allocator behaviour; from published tables: memory of the context and libraries");
    char text[2000];
    const char *went_on = fit_went_on_text(run, text, sizeof text);
    if (went_on != NULL) print_wrapped(page, "Went on", went_on);
    if (fit_free_read(run) != NULL && !fit_serving_by_share(&answer->serving)) {
        (void)snprintf(
            text, sizeof text,
            "the program read how much of it there is, at %s: if that decides what it allocates, it needs another amount on another "
            "card (--each)",
            fit_site_short(fit_free_read(run)));
        print_wrapped(page, "Free memory", text);
    }
    print_names(page, "Not known", run->sizes, run->size_count, 4);
    print_names(page, "Not simulated", run->missing, run->missing_count, 4);
    fit_route_print(page, run);
    if (fit_unreached_text(run, false, unreached, sizeof unreached)) print_wrapped(page, "Not reached", unreached);
    print_reads(page, run);
    print_stake(page, answer);
}

// --- the whole ----------------------------------------------------------------------------------------------------------------------

static void print_peak(FILE *page, const struct fit_verdict *verdict) {
    const struct fit_holding *highest = verdict->highest;
    const uint64_t context = highest->outside_bytes - verdict->library_bytes;
    if (highest->process->whole_program)
        fprintf(page, "  Peak           %s allocated from the driver (%" PRIu64 " B)\n", SIZE(highest->allocated_bytes),
                highest->allocated_bytes);
    else
        fprintf(page, "  Peak           %s allocated (%" PRIu64 " B)\n                 %s reserved (%" PRIu64 " B)\n",
                SIZE(highest->allocated_bytes), highest->allocated_bytes, SIZE(highest->reserved_bytes), highest->reserved_bytes);
    if (highest->outside_bytes > 0)
        fprintf(page, "  In addition    %s context, %s libraries\n", SIZE(context), SIZE(verdict->library_bytes));
    if (verdict->others_count > 0)
        fprintf(page, "  On its device  %s of %zu other %s at the same time\n", SIZE(verdict->others_bytes), verdict->others_count,
                verdict->others_count == 1 ? "process" : "processes");
}

static bool is_near(uint64_t a, uint64_t b) { return a > b ? a - b <= b / 100 : b - a <= a / 100; }

// Tells the holdings of a run apart.
enum naming { BY_RANK, BY_DEVICE, BY_PROCESS };

static uint64_t number_of(const struct fit_holding *holding, enum naming naming) {
    return naming == BY_RANK ? holding->process->rank : naming == BY_DEVICE ? holding->ordinal : (uint64_t)holding->process->id;
}

// Returns how many different numbers the holdings have.
static size_t count_numbers(const struct fit_run *run, enum naming naming) {
    size_t count = 0;
    for (size_t i = 0; i < run->holding_count; i++) {
        bool counted = false;
        for (size_t j = 0; j < i; j++) counted = counted || number_of(&run->holdings[j], naming) == number_of(&run->holdings[i], naming);
        count += !counted;
    }
    return count;
}

static enum naming naming_of(const struct fit_run *run) {
    return count_numbers(run, BY_RANK) == run->holding_count     ? BY_RANK
           : count_numbers(run, BY_DEVICE) == run->holding_count ? BY_DEVICE
                                                                 : BY_PROCESS;
}

static const char *const naming_words[] = {[BY_RANK] = "rank", [BY_DEVICE] = "device"};

// Prints the ranks in order, grouping neighbours with nearly the same need: the ranks of one pipeline stage are neighbours.
static void print_stages(FILE *page, const struct fit_run *run, enum naming naming) {
    char text[1200];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    for (size_t i = 0, next; i < run->holding_count; i = next) {
        const struct fit_holding *first = &run->holdings[i];
        for (next = i + 1; next < run->holding_count && is_near(run->holdings[next].reserved_bytes, first->reserved_bytes); next++) {
        }
        const uint64_t from = number_of(first, naming), last = number_of(&run->holdings[next - 1], naming);
        vr_sink_printf(&sink, "%s%s", i == 0 ? "" : ", ", naming_words[naming]);
        if (last == from)
            vr_sink_printf(&sink, " %" PRIu64 " %s", last, SIZE(first->reserved_bytes));
        else
            vr_sink_printf(&sink, "s %" PRIu64 " to %" PRIu64 " %s", from, last, SIZE(first->reserved_bytes));
    }
    print_wrapped(page, "", text);
}

static void print_fold(FILE *page, const struct fit_fold *fold) {
    char text[600];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    const bool all = fold->running_count == fold->ranks;
    if (all)
        vr_sink_printf(&sink, "%" PRIu64 " on %" PRIu64 " machines; all ran on this one", fold->ranks, fold->launcher.machines);
    else
        vr_sink_printf(&sink, "%" PRIu64 ", of which %zu ran", fold->ranks, fold->running_count);
    for (size_t i = 0; !all && fold->kind_count == 0 && i < fold->running_count; i++)
        vr_sink_printf(&sink, "%s%" PRIu64, i == 0 ? " (" : ", ", fold->running[i]);
    if (!all)
        vr_sink_printf(&sink, "%s",
                       fold->kind_count == 0 ? "); the others are assumed to be like these (--fold)" : ": some of each kind (--fold)");
    print_wrapped(page, "Ranks", text);
}

static void print_processes(FILE *page, const struct fit_run *run) {
    const size_t processes = count_numbers(run, BY_PROCESS), devices = count_numbers(run, BY_DEVICE);
    fprintf(page, "  Ranks          %zu %s on %zu %s\n", processes, processes == 1 ? "process" : "processes", devices,
            devices == 1 ? "device" : "devices");
}

#define CONTEXTS_NAMED 3

// Prints the processes that have a context on a device and nothing else there. They count as others of that device.
static void print_contexts(FILE *page, const struct fit_run *run) {
    char text[400];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    if (run->context_count == 0) return;
    for (size_t i = 0; i < run->context_count && i < CONTEXTS_NAMED; i++)
        vr_sink_printf(&sink, "%srank %" PRIu64 " on device %" PRIu32 ", %s", i == 0 ? "" : "; ", run->contexts[i].process->rank,
                       run->contexts[i].ordinal, SIZE(run->contexts[i].outside_bytes));
    if (run->context_count > CONTEXTS_NAMED) vr_sink_printf(&sink, "; and %zu more", run->context_count - CONTEXTS_NAMED);
    vr_sink_printf(&sink, ": without an allocation, counted on that device");
    print_wrapped(page, "Contexts", text);
}

static void print_ranks(FILE *page, const struct fit_answer *answer) {
    const struct fit_run *run = answer->run;
    const struct fit_fold *fold = answer->fold;
    const struct fit_holding *low = run->holdings, *high = low;
    for (size_t i = 1; i < run->holding_count; i++) {
        if (run->holdings[i].reserved_bytes < low->reserved_bytes) low = &run->holdings[i];
        if (run->holdings[i].reserved_bytes > high->reserved_bytes) high = &run->holdings[i];
    }
    char text[200];
    const char *range = fit_launcher_range_text(&fold->launcher, text, sizeof text);
    if (range != NULL) print_wrapped(page, "Machines", range);
    if (fold->ranks != 0) print_fold(page, fold);
    fit_kinds_print(page, answer);
    if (run->holding_count < 2) return;
    const enum naming naming = naming_of(run);
    if (fold->ranks == 0) print_processes(page, run);
    fprintf(page, "                 reserved %s", SIZE(low->reserved_bytes));
    if (low->reserved_bytes == high->reserved_bytes) {
        fprintf(page, " each\n");
        return;
    }
    if (naming == BY_PROCESS) // process ids differ from run to run
        fprintf(page, " to %s\n", SIZE(high->reserved_bytes));
    else
        fprintf(page, " (%s %" PRIu64 ") to %s (%s %" PRIu64 ")\n", naming_words[naming], number_of(low, naming),
                SIZE(high->reserved_bytes), naming_words[naming], number_of(high, naming));
    if (is_near(low->reserved_bytes, high->reserved_bytes)) return;
    fprintf(page, "                 uneven: the highest reserves %.1f times the lowest\n",
            (double)high->reserved_bytes / (double)(low->reserved_bytes + 1));
    if (fold->kind_count == 0 && naming != BY_PROCESS) print_stages(page, run, naming);
}

static void print_ending(FILE *page, const struct fit_run *run) {
    const char *unseen = run->ending == FIT_READY || run->ending == FIT_SERVED ? "not covered: longer requests, or more concurrent requests"
                         : run->ending == FIT_PLAYED                           ? "not covered: other requests"
                         : fit_run_failed(run)                                 ? "not covered: the rest of the program"
                                               : "not covered: evaluation, checkpoints, longer batches later on";
    char text[300];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%.1f s, ", run->seconds);
    if (run->steps > 0) vr_sink_printf(&sink, "%" PRIu64 " %s; ", run->steps, run->steps == 1 ? "step" : "steps");
    vr_sink_printf(&sink, "%s", fit_ending_sentences[run->ending]);
    if (run->ending == FIT_FAILED) vr_sink_printf(&sink, " (exit code %d)", run->exit_code);
    print_wrapped(page, "Ran", text);
    if (run->ending != FIT_ENDED) print_wrapped(page, "", unseen);
}

// Prints what is certain, what is not, and what was not simulated.
static void print_certainty(FILE *page, const struct fit_answer *answer) {
    fprintf(page, "How sure\n");
    print_doubts(page, answer);
    fit_host_print(page, answer->run, answer->dummy_weights);
    print_ending(page, answer->run);
}

// Prints the least memory that suffices, and what would make the program fit.
static void print_cures(FILE *page, const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    fprintf(page, "  Smallest       completes in %s", SIZE(verdict->smallest_bytes));
    if (verdict->smallest_retries > 0)
        fprintf(page, " (%" PRIu64 " %s)", verdict->smallest_retries, verdict->smallest_retries == 1 ? "retry" : "retries");
    fprintf(page, "; smallest card: %s\n", verdict->smallest_card == NULL ? "none" : verdict->smallest_card->model.key);
    print_setting(page, &answer->setting, verdict);
    print_batch(page, &answer->batch);
    fit_remedies_print(page, &answer->remedies, answer->batch.known);
}

static void print_try(FILE *page, const struct fit_run *run) {
    char option[FIT_FRAME_CAPACITY + 60], site[2 * FIT_FRAME_CAPACITY + 20], text[sizeof option + sizeof site + 200];
    if (!fit_failure_try(run, option, sizeof option, site, sizeof site)) return;
    (void)snprintf(text, sizeof text, "%s: just before it failed, the program read a kernel's result at %s and got zeros", option,
                   fit_site_short(site));
    print_wrapped(page, "Try", text);
}

static void print_devices(FILE *page, const struct fit_run *run) {
    char text[200];
    const char *what = fit_devices_text(run, text, sizeof text);
    if (what != NULL) print_wrapped(page, "Try", what);
}

int fit_print_text(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    const bool failed = fit_run_failed(answer->run);
    struct fit_page whole;
    FILE *page = fit_page_open(&whole);
    print_headline(page, answer);
    if (failed) print_try(page, answer->run);
    print_devices(page, answer->run);
    print_peak(page, verdict);
    print_moment(page, verdict, answer->run);
    if (fit_is_general(answer->run)) print_cures(page, answer);
    print_cards(page, verdict, failed);
    fit_serving_print(page, &answer->serving, verdict);
    fit_played_print(page, &answer->run->played, &answer->serving, verdict);
    if (answer->unrunnable != NULL)
        fprintf(page, "                 This PyTorch has no kernels for %s: it ran on %s.\n", answer->unrunnable, verdict->ran_on.key);
    print_ranks(page, answer);
    print_contexts(page, answer->run);
    print_certainty(page, answer);
    fit_page_close(&whole);
    return CLI_OK;
}

void fit_print_nothing(const struct fit_run *run, const char *varied) {
    char text[2000];
    struct fit_page whole;
    FILE *page = fit_page_open(&whole);
    print_varied(page, varied);
    fit_failure_text(run, text, sizeof text);
    ui_wrap(page, text, 0, UINT_MAX);
    fprintf(page, "\n");
    print_devices(page, run);
    if (run->least_bytes > 0) fprintf(page, "At least %s reserved until the end of step %" PRIu64 "\n", SIZE(run->least_bytes), run->steps);
    fit_page_close(&whole);
}
