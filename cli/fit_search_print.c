// Prints the answer of `vram fit --search`: the best variant, how far the search got, and all variants by what was found about them.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit_page.h"
#include "fit_search.h"
#include "output.h"
#include "base/text.h"
#include "ui.h"

enum { VALUE_MOST = 24 }; // characters of a value in the table

// --- words --------------------------------------------------------------------------------------------------------------------------

static const char *work_text(const struct fit_point *point, char text[UI_COUNT_CAPACITY]) {
    const double work = point->work;
    if (!point->has_work)
        (void)snprintf(text, UI_COUNT_CAPACITY, "-");
    else if (work >= 0 && work < 1e15 && floor(work) == work)
        (void)ui_count((uint64_t)work, text);
    else
        (void)snprintf(text, UI_COUNT_CAPACITY, "%.6g", work);
    return text;
}

static void print_titled(FILE *page, const char *title, const char *text) {
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, title);
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

// --- the best -----------------------------------------------------------------------------------------------------------------------

// Prints whether more work was ruled out, if not all variants ran.
static void print_proof(FILE *page, const struct fit_search *search, const struct fit_point *best) {
    size_t more = 0, equal = 0, unknown = 0;
    char text[300];
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_point *point = &search->points[i];
        if (point->outcome != FIT_NOT_RUN) continue;
        unknown += !point->has_work;
        more += point->has_work && point->work > best->work;
        equal += point->has_work && point->work == best->work;
    }
    if (fit_search_count(search, FIT_NOT_RUN) == 0) return;
    if (search->work == NULL && search->printed == NULL)
        (void)snprintf(text, sizeof text, "%zu of the variants did not run, and may need less memory", unknown);
    else if (more + unknown > 0)
        (void)snprintf(text, sizeof text, "%zu of the variants that did not run may do more work and fit", more + unknown);
    else
        (void)snprintf(text, sizeof text, "all variants with more work ran, and none of them fits%s",
                       equal > 0 ? "; one with the same work may need less memory" : "");
    print_titled(page, "", text);
}

static void print_checked(FILE *page, const struct fit_point *best) {
    char text[200];
    if (best->ranks_run >= best->ranks && !best->checked) return;
    if (best->checked)
        (void)snprintf(text, sizeof text, "ran again with all of its %" PRIu64 " ranks; the figures are from that run", best->ranks);
    else
        (void)snprintf(text, sizeof text, "%" PRIu64 " of its %" PRIu64 " ranks ran; the others are assumed to be like these (--fold)",
                       best->ranks_run, best->ranks);
    print_titled(page, "Ranks", text);
}

static void print_best(FILE *page, const struct fit_search *search, const struct fit_point *best, uint64_t cards) {
    char variant[2000], names[FIT_CARDS_CAPACITY], size[UI_SIZE_CAPACITY], work[UI_COUNT_CAPACITY], text[400];
    fprintf(page, "%s %s %s: ", best->has_work ? "Most work" : "Least memory", search->limit_bytes != UINT64_MAX ? "in" : "on",
            fit_search_cards(search, cards, names));
    ui_put(page, fit_variant_text(search->vary, best->variant, variant, sizeof variant));
    fprintf(page, "\n");
    (void)snprintf(text, sizeof text, "%s", ui_size(best->need_bytes, size));
    print_titled(page, "Needs", text);
    if (best->has_work && search->work != NULL)
        (void)snprintf(text, sizeof text, "%s (%.200s)", work_text(best, work), search->work);
    else
        (void)snprintf(text, sizeof text, "%s, as the program printed", work_text(best, work));
    if (best->has_work) print_titled(page, "Work", text);
    print_proof(page, search, best);
    print_checked(page, best);
}

// Prints the best on each card, one paragraph for cards with the same.
static void print_all_best(FILE *page, const struct fit_search *search) {
    uint64_t none = 0, printed = 0;
    char names[FIT_CARDS_CAPACITY];
    struct vram_sim_model model;
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) {
        const bool counts = search->limit_bytes != UINT64_MAX ? printed == 0 : (search->asked >> i & 1) != 0;
        if (!counts || (printed >> i & 1) != 0) continue;
        const struct fit_point *best = fit_search_best(search, i);
        uint64_t cards = UINT64_C(1) << i;
        for (uint32_t j = i + 1; best != NULL && j < 64 && search->limit_bytes == UINT64_MAX; j++)
            if ((search->asked >> j & 1) != 0 && fit_search_best(search, j) == best) cards |= UINT64_C(1) << j;
        printed |= cards;
        if (best == NULL)
            none |= cards;
        else
            print_best(page, search, best, cards);
        if (search->limit_bytes != UINT64_MAX) break;
    }
    if (none == 0) return;
    if (fit_search_count(search, FIT_WITHOUT_ANSWER) == search->count) {
        fprintf(page, search->count == 1 ? "The variant failed\n" : "All %zu variants failed\n", search->count);
        return;
    }
    const bool all = fit_search_count(search, FIT_NOT_RUN) == 0;
    fprintf(page, search->limit_bytes != UINT64_MAX ? "None of the variants%s fits in %s\n" : "None of the variants%s fits on %s\n",
            all ? "" : " that ran", fit_search_cards(search, none, names));
}

static void print_progress(FILE *page, const struct fit_search *search) {
    char text[400], time[32];
    size_t same = 0;
    for (size_t i = 0; i < search->count; i++) same += search->points[i].same != NULL && search->points[i].outcome != FIT_NOT_RUN;
    const bool several = (search->asked & (search->asked - 1)) != 0 && search->limit_bytes == UINT64_MAX;
    const size_t fit = fit_search_count(search, FIT_SURELY), large = fit_search_count(search, FIT_TOO_LARGE);
    const size_t not_run = fit_search_count(search, FIT_NOT_RUN), unsure = fit_search_count(search, FIT_PERHAPS);
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%zu of %zu variants in %s: %zu %s%s, %zu %s not", search->count - not_run, search->count,
                   fit_search_time(search->seconds, time), fit, fit == 1 ? "fits" : "fit", several ? " on all cards" : "", large,
                   large == 1 ? "does" : "do");
    if (unsure > 0) vr_sink_printf(&sink, ", %zu not sure", unsure);
    vr_sink_printf(&sink, ", %zu failed", fit_search_count(search, FIT_WITHOUT_ANSWER));
    if (same > 0) vr_sink_printf(&sink, "; %zu %s the command line of another variant", same, same == 1 ? "has" : "have");
    if (not_run > 0)
        vr_sink_printf(&sink, "; then %s", search->interrupted ? "the search was interrupted" : "the time of --budget was over");
    print_titled(page, "Ran", text);
}

static void print_without_effect(FILE *page, const struct fit_search *search) {
    char text[600];
    for (size_t i = 0; i < search->vary->count; i++) {
        const struct fit_varied *one = &search->vary->arguments[i];
        if (!fit_search_lacks_effect(search, i)) continue;
        (void)snprintf(text, sizeof text, "%.*s: variants that differ only in it have the same peaks; does the program use it?",
                       (int)one->length, one->argument);
        print_titled(page, "No effect", text);
    }
}

// --- the table ----------------------------------------------------------------------------------------------------------------------

enum group { FRONTIER, OTHERS, UNSURE, TOO_LARGE, FAILED, NOT_RUN, GROUPS };

static enum group group_of(const struct fit_point *point) {
    if (point->outcome == FIT_NOT_RUN) return NOT_RUN;
    if (point->outcome == FIT_WITHOUT_ANSWER) return FAILED;
    if (point->is_frontier) return FRONTIER;
    if (point->outcome == FIT_SURELY || point->fits_on != 0) return OTHERS;
    return point->outcome == FIT_PERHAPS ? UNSURE : TOO_LARGE;
}

struct widths {
    int work, values[FIT_VARY_MOST];
    bool has_work, names_cards;
};

static const char *value_text(const struct fit_search *search, const struct fit_point *point, size_t argument, int *length) {
    const struct fit_varied *one = &search->vary->arguments[argument];
    const size_t place = point->variant->places[argument];
    static const char *const flags[] = {"no", "yes"};
    const char *text = one->is_flag ? flags[place] : one->texts[place];
    const size_t whole = one->is_flag ? strlen(text) : one->lengths[place];
    *length = (int)(whole < VALUE_MOST ? whole : VALUE_MOST);
    return text;
}

static struct widths find_widths(const struct fit_search *search) {
    struct widths widths = {.work = 4, .names_cards = (search->asked & (search->asked - 1)) != 0 && search->limit_bytes == UINT64_MAX};
    char text[UI_COUNT_CAPACITY];
    for (size_t j = 0; j < search->vary->count; j++) {
        const size_t length = strlen(search->vary->arguments[j].name);
        widths.values[j] = (int)(length < VALUE_MOST ? length : VALUE_MOST);
    }
    for (size_t i = 0; i < search->count; i++) {
        const int work = (int)strlen(work_text(&search->points[i], text));
        widths.has_work = widths.has_work || search->points[i].has_work;
        if (work > widths.work) widths.work = work;
        for (size_t j = 0; j < search->vary->count; j++) {
            int length;
            (void)value_text(search, &search->points[i], j, &length);
            if (length > widths.values[j]) widths.values[j] = length;
        }
    }
    return widths;
}

static void print_heads(FILE *page, const struct fit_search *search, const struct widths *widths, const char *title) {
    fprintf(page, "%s\n  ", title);
    if (widths->has_work) fprintf(page, "%*s  ", widths->work, "work");
    fprintf(page, "%11s", "needs");
    for (size_t j = 0; j < search->vary->count; j++)
        fprintf(page, "  %*.*s", widths->values[j], widths->values[j], search->vary->arguments[j].name);
    fprintf(page, widths->names_cards ? "  on\n" : "\n");
}

static void print_point(FILE *page, const struct fit_search *search, const struct widths *widths, const struct fit_point *point) {
    char work[UI_COUNT_CAPACITY], size[UI_SIZE_CAPACITY], need[UI_SIZE_CAPACITY + 2] = "", names[FIT_CARDS_CAPACITY], value[VALUE_MOST + 1];
    const bool known = fit_point_is_known(point);
    if (known) (void)snprintf(need, sizeof need, "%s%s", point->ran_out ? "> " : "", ui_size(point->need_bytes, size));
    fprintf(page, "  ");
    if (widths->has_work) fprintf(page, "%*s  ", widths->work, work_text(point, work));
    fprintf(page, "%11s", need);
    for (size_t j = 0; j < search->vary->count; j++) {
        int length;
        const char *text = value_text(search, point, j, &length);
        (void)snprintf(value, sizeof value, "%.*s", length, text);
        fprintf(page, "  %*s", widths->values[j] - length, "");
        ui_put(page, value);
    }
    if (widths->names_cards && point->fits_on != 0) fprintf(page, "  %s", fit_search_cards(search, point->fits_on, names));
    fprintf(page, "\n");
}

// Prints the sentence of a failure once, after the last of the variants that failed in this way.
static void print_failure(FILE *page, const char *failure) {
    fprintf(page, "    ");
    ui_wrap(page, failure, 4, UINT_MAX);
    fprintf(page, "\n");
}

static bool failed_alike(const struct fit_point *one, const struct fit_point *other) {
    return one->failure != NULL && other->failure != NULL && strcmp(one->failure, other->failure) == 0;
}

// Prints the failed variants, those with the same failure together.
static void print_failed(FILE *page, const struct fit_search *search, const struct widths *widths) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_point *first = &search->points[i];
        bool earlier = false;
        if (first->outcome != FIT_WITHOUT_ANSWER) continue;
        for (size_t j = 0; j < i; j++)
            earlier = earlier || (search->points[j].outcome == FIT_WITHOUT_ANSWER && failed_alike(&search->points[j], first));
        if (earlier) continue;
        for (size_t j = i; j < search->count; j++)
            if (search->points[j].outcome == FIT_WITHOUT_ANSWER && (j == i || failed_alike(&search->points[j], first)))
                print_point(page, search, widths, &search->points[j]);
        print_failure(page, first->failure == NULL ? "The reason is not known" : first->failure);
    }
}

static void print_group(FILE *page, const struct fit_search *search, const struct widths *widths, enum group group,
                        const struct fit_point *const *sorted) {
    static const char *const titles[GROUPS] = {
        "Most work for its memory, or least memory for its work", "Fits", "Not sure", "Does not fit", "Failed", "Did not run"};
    bool begun = false;
    for (size_t i = 0; i < search->count; i++) {
        if (group_of(sorted[i]) != group) continue;
        if (!begun) print_heads(page, search, widths, titles[group]);
        begun = true;
        if (group != FAILED) print_point(page, search, widths, sorted[i]);
    }
    if (begun && group == FAILED) print_failed(page, search, widths);
}

static int by_order(const void *a, const void *b) {
    return fit_point_order(*(const struct fit_point *const *)a, *(const struct fit_point *const *)b);
}

// Returns whether the variant completes in less memory than it needs on the device of the run: its allocator then releases cached memory.
static bool fits_in_less(const struct fit_search *search, const struct fit_point *point) {
    struct vram_sim_model model;
    bool less = point->outcome == FIT_SURELY && point->need_bytes > search->limit_bytes;
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++)
        less = less || ((point->fits_on >> i & 1) != 0 && point->need_bytes > model.memory_bytes);
    return less;
}

// Explains why a need may be larger than the memory in which the variant fits.
static void print_need_note(FILE *page, const struct fit_search *search) {
    bool any = false;
    for (size_t i = 0; i < search->count; i++) any = any || fits_in_less(search, &search->points[i]);
    if (!any) return;
    fprintf(page, "  needs: if there is enough memory. With less, a variant\n  fits if it completes after the allocator has released\n"
                  "  cached memory.\n");
}

static void print_table(FILE *page, const struct fit_search *search) {
    const struct widths widths = find_widths(search);
    const struct fit_point **sorted = calloc(search->count, sizeof *sorted);
    if (sorted == NULL) return;
    for (size_t i = 0; i < search->count; i++) sorted[i] = &search->points[i];
    qsort(sorted, search->count, sizeof *sorted, by_order);
    for (enum group group = FRONTIER; group < GROUPS; group++) print_group(page, search, &widths, group, sorted);
    print_need_note(page, search);
    free(sorted);
}

int fit_search_print(const struct fit_search *search) {
    struct fit_page whole;
    FILE *page = fit_page_open(&whole);
    print_all_best(page, search);
    print_progress(page, search);
    print_without_effect(page, search);
    print_table(page, search);
    fit_page_close(&whole);
    return CLI_OK;
}
