#include "fit_search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fit_failure.h"
#include "base/text.h"
#include "ui.h"

const char *const fit_outcome_names[FIT_OUTCOME_COUNT] = {
#define FIT_OUTCOME(constant, name) #name,
    FIT_OUTCOMES(FIT_OUTCOME)
#undef FIT_OUTCOME
};

static double seconds_since(const struct timespec *begin) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

// --- before the runs ----------------------------------------------------------------------------------------------------------------

// Returns whether the work depends on what the program prints.
static bool work_is_printed(const struct fit_search *search) {
    return search->printed != NULL && (search->work == NULL || fit_expression_names(search->work, strlen(search->work), FIT_PRINTED_NAME));
}

// Computes the work of a variant, of which `printed` is a part if it is not NULL. Returns false, with the reason in `why`.
static bool work_of(const struct fit_search *search, const struct fit_variant *variant, const double *printed, double *work,
                    char why[FIT_EXPRESSION_WRONG]) {
    struct fit_name names[FIT_VARY_MOST + 2];
    struct fit_value value = {.number = printed == NULL ? 0 : *printed};
    size_t count = fit_variant_names(search->vary, variant, names);
    if (printed != NULL) names[count++] = (struct fit_name){FIT_PRINTED_NAME, value};
    if (search->work != NULL && !fit_expression(search->work, strlen(search->work), names, count, &value, why)) return false;
    if (value.text != NULL) (void)snprintf(why, FIT_EXPRESSION_WRONG, "it is a text, not a number");
    *work = value.number;
    return value.text == NULL;
}

// Checks --work, and computes it if it does not depend on what the program prints.
static bool plan_work(const struct fit_search *search, struct fit_point *point, char wrong[FIT_VARY_WRONG]) {
    struct fit_name names[FIT_VARY_MOST + 2];
    char why[FIT_EXPRESSION_WRONG];
    bool good = true;
    if (search->work == NULL) return true;
    if (work_is_printed(search)) {
        size_t count = fit_variant_names(search->vary, point->variant, names);
        names[count++] = (struct fit_name){FIT_PRINTED_NAME, {.number = 0}};
        good = fit_expression_check(search->work, strlen(search->work), names, count, why);
    } else {
        good = point->has_work = work_of(search, point->variant, NULL, &point->work, why);
    }
    if (!good) (void)snprintf(wrong, FIT_VARY_WRONG, "--work '%.100s': %s", search->work, why);
    return good;
}

// More work first; the order of --vary if it is equal or not known.
static int by_work(const void *a, const void *b) {
    const struct fit_point *one = a, *other = b;
    if (one->work != other->work) return one->work > other->work ? -1 : 1;
    return one->variant < other->variant ? -1 : one->variant > other->variant;
}

// Finds, for each point, the first with the same command line.
static void find_same(struct fit_search *search) {
    for (size_t i = 1; i < search->count; i++)
        for (size_t j = 0; j < i && search->points[i].same == NULL; j++)
            if (search->points[j].same == NULL && fit_variant_is_same(search->points[i].variant, search->points[j].variant))
                search->points[i].same = &search->points[j];
}

bool fit_search_begin(struct fit_search *search, char wrong[FIT_VARY_WRONG]) {
    (void)clock_gettime(CLOCK_MONOTONIC, &search->begin);
    search->points = calloc(search->variants->count, sizeof *search->points);
    if (search->points == NULL) {
        (void)snprintf(wrong, FIT_VARY_WRONG, "not enough host memory");
        return false;
    }
    search->count = search->variants->count;
    bool good = true;
    for (size_t i = 0; i < search->count && good; i++) {
        search->points[i].variant = &search->variants->rows[i];
        good = plan_work(search, &search->points[i], wrong);
    }
    if (!good) {
        fit_search_release(search);
        return false;
    }
    qsort(search->points, search->count, sizeof *search->points, by_work);
    find_same(search);
    return true;
}

void fit_search_release(struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        if (search->points[i].same != NULL) continue; // these belong to another
        free(search->points[i].failure);
        free(search->points[i].noted);
    }
    free(search->points);
    search->points = NULL;
    search->count = 0;
}

double fit_search_passed(const struct fit_search *search) { return seconds_since(&search->begin); }

uint64_t fit_search_left(const struct fit_search *search) {
    const double passed = fit_search_passed(search), budget = (double)search->budget_seconds;
    if (search->budget_seconds == 0) return UINT64_MAX;
    return passed >= budget ? 0 : (uint64_t)(budget - passed);
}

bool fit_search_cuts(struct fit_search *search, const struct fit_run *run) {
    if (search == NULL) return false;
    if (run->ending == FIT_INTERRUPTED) search->interrupted = true;
    return run->ending == FIT_INTERRUPTED || (run->ending == FIT_TIME && fit_search_left(search) == 0);
}

// --- which ranks are alike ----------------------------------------------------------------------------------------------------------

enum { COMPARED_MOST = 128 }; // earlier points

static bool agree(const struct fit_point *one, const struct fit_point *other, unsigned arguments) {
    for (size_t i = 0; i < FIT_VARY_MOST; i++)
        if ((arguments >> i & 1) != 0 && one->variant->places[i] != other->variant->places[i]) return false;
    return true;
}

// Returns whether points with the same values of these arguments have ranks that are alike in the same way.
static bool decide_kinds(const struct fit_point *const *points, size_t count, unsigned arguments) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (agree(points[i], points[j], arguments) && strcmp(points[i]->noted, points[j]->noted) != 0) return false;
    return true;
}

const char *fit_search_guess(const struct fit_search *search, const struct fit_point *point) {
    const struct fit_point *earlier[COMPARED_MOST];
    unsigned arguments = (1U << search->vary->count) - 1;
    size_t count = 0;
    for (const struct fit_point *one = point; one-- > search->points && count < COMPARED_MOST;)
        if (one->noted != NULL && one->same == NULL) earlier[count++] = one;
    for (size_t i = 0; i < search->vary->count; i++) // leave out those that did not matter so far
        if (decide_kinds(earlier, count, arguments & ~(1U << i))) arguments &= ~(1U << i);
    for (size_t i = 0; i < count; i++)
        if (agree(earlier[i], point, arguments)) return earlier[i]->noted;
    return NULL;
}

void fit_point_take_noted(struct fit_point *point, char *noted) {
    free(point->noted);
    point->noted = noted;
}

// --- answers ------------------------------------------------------------------------------------------------------------------------

static void take_run(struct fit_point *point, const struct fit_run *run, const struct fit_fold *fold) {
    free(point->failure);
    point->failure = NULL;
    point->seconds += run->seconds;
    point->ran_out = false;
    point->fits_on = 0;
    point->ranks = fold->ranks == 0 ? run->process_count : fold->ranks;
    point->ranks_run = fold->ranks == 0 ? run->process_count : fold->running_count;
}

void fit_point_take(struct fit_point *point, const struct fit_answer *answer, uint64_t asked) {
    const struct fit_verdict *verdict = answer->verdict;
    take_run(point, answer->run, answer->fold);
    point->outcome = answer->unsure ? FIT_PERHAPS : answer->fits ? FIT_SURELY : FIT_TOO_LARGE;
    point->need_bytes = fit_need_bytes(verdict);
    point->allocated_bytes = verdict->highest->allocated_bytes;
    point->reserved_bytes = verdict->highest->reserved_bytes;
    for (size_t i = 0; i < verdict->card_count && answer->limit_bytes == UINT64_MAX; i++) {
        const struct fit_card *card = &verdict->cards[i];
        struct vram_sim_model model;
        uint32_t number;
        if (card->asked && card->fits && !card->unsure && fit_model(card->model.key, strlen(card->model.key), &model, &number))
            point->fits_on |= asked & UINT64_C(1) << number;
    }
}

void fit_point_take_oom(struct fit_point *point, const struct fit_run *run, const struct fit_fold *fold, uint64_t card_bytes) {
    take_run(point, run, fold);
    point->outcome = FIT_TOO_LARGE;
    point->ran_out = true;
    point->need_bytes = card_bytes;
}

void fit_point_take_failure(struct fit_point *point, const struct fit_run *run, const struct fit_fold *fold) {
    char text[2000], unreached[1000];
    take_run(point, run, fold);
    point->outcome = FIT_WITHOUT_ANSWER;
    if (fit_run_failed(run) || run->ending == FIT_TIME)
        fit_failure_text(run, text, sizeof text);
    else
        (void)snprintf(text, sizeof text, "The program used no device memory");
    if (!fit_run_failed(run) && fit_unreached_text(run, true, unreached, sizeof unreached))
        (void)snprintf(text, sizeof text, "%s", unreached);
    point->failure = strdup(text);
}

void fit_search_measure(const struct fit_search *search, struct fit_point *point, const struct fit_run *run) {
    char why[FIT_EXPRESSION_WRONG];
    if (work_is_printed(search) && run->has_printed) point->has_work = work_of(search, point->variant, &run->printed, &point->work, why);
}

// --- the best -----------------------------------------------------------------------------------------------------------------------

size_t fit_search_count(const struct fit_search *search, enum fit_outcome outcome) {
    size_t count = 0;
    for (size_t i = 0; i < search->count; i++) count += search->points[i].outcome == outcome;
    return count;
}

// Returns whether two variants differ in this argument only.
static bool differ_in(const struct fit_search *search, const struct fit_point *one, const struct fit_point *other, size_t argument) {
    for (size_t i = 0; i < search->vary->count; i++)
        if ((one->variant->places[i] != other->variant->places[i]) != (i == argument)) return false;
    return true;
}

static bool has_peaks(const struct fit_point *point) { return fit_point_is_known(point) && !point->ran_out && point->same == NULL; }

bool fit_search_lacks_effect(const struct fit_search *search, size_t argument) {
    bool any = false;
    for (size_t i = 0; i < search->count; i++)
        for (size_t j = 0; j < i && has_peaks(&search->points[i]); j++) {
            const struct fit_point *one = &search->points[i], *other = &search->points[j];
            if (!has_peaks(other) || !differ_in(search, one, other, argument)) continue;
            if (one->allocated_bytes != other->allocated_bytes || one->reserved_bytes != other->reserved_bytes) return false;
            any = true;
        }
    return any;
}

bool fit_point_is_known(const struct fit_point *point) { return point->outcome != FIT_NOT_RUN && point->outcome != FIT_WITHOUT_ANSWER; }

static bool fits(const struct fit_point *point) { return point->outcome == FIT_SURELY || point->fits_on != 0; }

int fit_point_order(const struct fit_point *one, const struct fit_point *other) {
    if (one->has_work != other->has_work) return one->has_work ? -1 : 1;
    if (one->work != other->work) return one->work > other->work ? -1 : 1;
    if (one->need_bytes != other->need_bytes) return one->need_bytes < other->need_bytes ? -1 : 1;
    return one->variant < other->variant ? -1 : one->variant > other->variant;
}

const struct fit_point *fit_search_best(const struct fit_search *search, uint32_t model) {
    const struct fit_point *best = NULL;
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_point *point = &search->points[i];
        const bool good = search->limit_bytes != UINT64_MAX ? point->outcome == FIT_SURELY : (point->fits_on >> model & 1) != 0;
        if (good && point->same == NULL && (best == NULL || fit_point_order(point, best) < 0)) best = point;
    }
    return best;
}

static bool is_frontier(const struct fit_search *search, const struct fit_point *point) {
    if (!fits(point) || !point->has_work) return false;
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_point *other = &search->points[i];
        if (!fits(other) || !other->has_work || other->work < point->work || other->need_bytes > point->need_bytes) continue;
        if (other->work > point->work || other->need_bytes < point->need_bytes) return false;
    }
    return true;
}

static void copy_answer(struct fit_point *point) {
    const struct fit_point own = *point;
    *point = *own.same;
    point->variant = own.variant;
    point->same = own.same;
    point->seconds = 0;
    if (!own.has_work) return;
    point->has_work = true; // of its own names
    point->work = own.work;
}

void fit_search_end(struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++)
        if (search->points[i].same != NULL) copy_answer(&search->points[i]);
    for (size_t i = 0; i < search->count; i++) search->points[i].is_frontier = is_frontier(search, &search->points[i]);
    search->seconds = fit_search_passed(search);
}

// --- words --------------------------------------------------------------------------------------------------------------------------

const char *fit_search_cards(const struct fit_search *search, uint64_t cards, char text[FIT_CARDS_CAPACITY]) {
    struct vram_sim_model model;
    struct vr_sink sink = vr_sink_begin(text, FIT_CARDS_CAPACITY);
    if (search->limit_bytes != UINT64_MAX) {
        char size[UI_SIZE_CAPACITY];
        vr_sink_printf(&sink, "%s", ui_size(search->limit_bytes, size));
        return text;
    }
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++)
        if ((cards >> i & 1) != 0) vr_sink_printf(&sink, "%s%s", sink.length == 0 ? "" : ", ", model.key);
    return text;
}

const char *fit_search_time(double seconds, char text[32]) {
    const uint64_t whole = (uint64_t)(seconds + 0.5);
    if (whole < 60)
        (void)snprintf(text, 32, "%" PRIu64 " s", whole);
    else
        (void)snprintf(text, 32, "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
    return text;
}
