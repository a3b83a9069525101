// Runs a program once for each card (--each) or for each of its variants (--vary), and searches among these (--search).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fit_cards.h"
#include "fit_program.h"
#include "fit_search.h"
#include "fit_vary.h"
#include "output.h"
#include "ui.h"

enum { VARIANT_CAPACITY = 2000, CHECKED_RANKS_MOST = FIT_RANKS_RUN_MOST, CHECKS_MOST = 3 };

int fit_each_card(struct fit_question *question, char **program) {
    const uint64_t asked = question->asked;
    struct vram_sim_model model;
    int worst = CLI_OK;
    for (uint32_t i = 0; worst <= CLI_FINDING && vram_sim_model_at(i, &model); i++) {
        if ((asked >> i & 1) == 0) continue;
        question->asked = UINT64_C(1) << i;
        (void)snprintf(question->largest, sizeof question->largest, "%s", model.key);
        const int code = fit_program(question, program);
        if (code > worst) worst = code;
        (void)fflush(stdout);
    }
    return worst;
}

// Answers for one variant. The program may replace the card that it runs on; the next variant begins with the first choice again.
static int run_variant(struct fit_question *question, const struct fit_variant *variant) {
    char largest[sizeof question->largest];
    memcpy(largest, question->largest, sizeof largest);
    const int code = fit_program(question, variant->words);
    memcpy(question->largest, largest, sizeof largest);
    return code;
}

// Prints one answer for each variant. Returns 0 if one of them fits.
static int answer_all(struct fit_question *question, const struct fit_vary *vary, const struct fit_variants *variants) {
    char text[VARIANT_CAPACITY];
    int best = CLI_DEVICE;
    for (size_t i = 0; i < variants->count; i++) {
        question->varied = fit_variant_text(vary, &variants->rows[i], text, sizeof text);
        const int code = run_variant(question, &variants->rows[i]);
        best = code > CLI_FINDING || code < best ? code : best;
        if (code > CLI_FINDING) break;
        (void)fflush(stdout);
    }
    return best;
}

// --- search -------------------------------------------------------------------------------------------------------------------------

// Prints what was found about a point, and how far the search is.
static void say_point(const struct fit_search *search, const struct fit_point *point, size_t number) {
    static const char *const words[FIT_OUTCOME_COUNT] = {"did not end", "fits", "might not fit", "does not fit", "failed"};
    char variant[VARIANT_CAPACITY], size[UI_SIZE_CAPACITY], time[32], cards[FIT_CARDS_CAPACITY] = "";
    const bool known = fit_point_is_known(point), some = point->outcome != FIT_SURELY && point->fits_on != 0;
    (void)fit_variant_text(search->vary, point->variant, variant, sizeof variant);
    if (some) (void)fit_search_cards(search, point->fits_on, cards);
    ui_say("vram fit: %zu of %zu, %s: %s: %s%s%s%s", number, search->count, fit_search_time(fit_search_passed(search), time), variant,
           some ? "fits on " : words[point->outcome], cards,
           !known           ? ""
           : point->ran_out ? ", needs more than "
                            : ", needs ",
           known ? ui_size(point->need_bytes, size) : "");
}

// Runs the points in their order until the time runs out. Returns an exit code that ends the search, or CLI_OK.
static int run_points(struct fit_question *question, struct fit_search *search) {
    for (size_t i = 0; i < search->count && !search->interrupted && fit_search_left(search) > 0; i++) {
        struct fit_point *point = &search->points[i];
        if (point->same != NULL) continue;
        question->point = point;
        const int code = run_variant(question, point->variant);
        question->point = NULL;
        if (point->outcome == FIT_NOT_RUN && code != CLI_OK) return code; // it cannot be started: no variant can
        say_point(search, point, i + 1);
    }
    return CLI_OK;
}

// Runs the best points again with all of their ranks, if some ran for all. A point that needs more then may no longer be the best.
static void check_best(struct fit_question *question, struct fit_search *search) {
    const char *folds = question->folds;
    size_t checks = 0;
    question->folds = "none";
    for (uint32_t model = 0; model < 64 && !search->interrupted; model++) {
        if ((search->asked >> model & 1) == 0) continue;
        for (; checks < CHECKS_MOST; checks++) {
            struct fit_point *best = (struct fit_point *)(uintptr_t)fit_search_best(search, model);
            if (best == NULL || best->checked || best->ranks_run >= best->ranks || best->ranks > CHECKED_RANKS_MOST) break;
            if (fit_search_left(search) == 0) break;
            ui_say("vram fit: running the best again, with all of its %" PRIu64 " ranks", best->ranks);
            const struct fit_point before = *best;
            best->outcome = FIT_NOT_RUN;
            best->failure = NULL;
            question->point = best;
            (void)run_variant(question, best->variant);
            question->point = NULL;
            best->checked = best->outcome != FIT_NOT_RUN;
            if (!best->checked) {
                *best = before;
                break;
            }
        }
    }
    question->folds = folds;
}

// Returns 0 if a variant fits, 1 if none does, 3 if all failed or the search could not begin.
static int code_of(const struct fit_search *search) {
    bool any = false;
    for (size_t i = 0; i < search->count; i++) {
        if (search->points[i].outcome == FIT_SURELY) return CLI_OK;
        any = any || search->points[i].outcome == FIT_TOO_LARGE || search->points[i].outcome == FIT_PERHAPS;
    }
    return any ? CLI_FINDING : CLI_BAD_INPUT;
}

static int search_among(struct fit_question *question, const struct fit_vary *vary, const struct fit_variants *variants) {
    char wrong[FIT_VARY_WRONG];
    struct fit_search search = {.vary = vary,
                                .variants = variants,
                                .work = question->work,
                                .printed = question->printed,
                                .asked = question->asked,
                                .limit_bytes = question->limit_bytes,
                                .budget_seconds = question->budget_seconds};
    if (!fit_search_begin(&search, wrong)) return ui_usage("fit", "vram fit: %s", wrong);
    question->search = &search;
    int code = run_points(question, &search);
    if (code == CLI_OK) {
        check_best(question, &search);
        fit_search_end(&search);
        answers_expect(question->answers);
        if (!question->json) answers_begin(question->answers);
        code = question->json ? fit_search_json(&search, question->answers) : fit_search_print(&search);
        if (code == CLI_OK) code = search.interrupted ? CLI_BAD_INPUT : code_of(&search);
    }
    question->search = NULL;
    fit_search_release(&search);
    return code;
}

int fit_all_variants(struct fit_question *question, char **program) {
    struct fit_vary vary;
    struct fit_variants variants;
    char wrong[FIT_VARY_WRONG];
    if (!fit_vary_read(&vary, &question->vary, &question->where, wrong) || !fit_variants_make(&vary, program, &variants, wrong))
        return ui_usage("fit", "vram fit: %s", wrong);
    const int code = question->searches ? search_among(question, &vary, &variants) : answer_all(question, &vary, &variants);
    fit_variants_release(&variants);
    return code;
}
