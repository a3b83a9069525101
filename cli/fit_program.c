#include "fit_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_cards.h"
#include "fit_engine_plan.h"
#include "fit_failure.h"
#include "fit_keep.h"
#include "fit_print.h"
#include "fit_remedies.h"
#include "fit_run.h"
#include "fit_search.h"
#include "fit_stake.h"
#include "output.h"
#include "ui.h"
#include "vram/sim.h"

#define USUAL_DEVICE "h100"
#define MORE_MEMORY  ((uint64_t)1 << 40) // of a device that never runs out of memory

static int usage_problem(const char *text) { return ui_usage("fit", "vram fit: %s", text); }

static bool all_fit(const struct fit_verdict *verdict, uint64_t limit_bytes) {
    if (limit_bytes != UINT64_MAX) return verdict->smallest_bytes <= limit_bytes;
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked && !verdict->cards[i].fits) return false;
    return true;
}

// Returns whether the answer is uncertain: the program failed, or it fits only without the data-dependent bytes.
static bool is_unsure(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    if (fit_run_failed(answer->run)) return true;
    if (answer->limit_bytes != UINT64_MAX && fit_adapts(answer->run)) return true;
    if (!answer->fits) return false;
    if (fit_part_failed(answer->run) || fit_lacks_rank(answer->run)) return true;
    if (answer->limit_bytes != UINT64_MAX) return verdict->smallest_bytes + answer->stake_bytes > answer->limit_bytes;
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked && verdict->cards[i].unsure) return true;
    return false;
}

// Finds the data-dependent bytes in a run whose memory cannot run out.
static void find_stake(const struct fit_question *question, const struct fit_plan *plan, const struct fit_run *run,
                       struct fit_stake *stake) {
    struct fit_plan larger = *plan;
    larger.sim.memory_bytes = MORE_MEMORY;
    fit_find_stake(&larger, run, question->values.nonzero != NULL, stake);
}

// Returns whether the card was asked for and is of another generation, for which the recording is only an approximation.
static bool is_other(const struct fit_verdict *verdict, const struct fit_card *card) {
    return card->asked && fit_is_old(&card->model) != fit_is_old(&verdict->ran_on);
}

// Judges the cards of `asked` by a run on `key`, the largest of them, and stores their rows in *verdict. Repeats the run with more memory
// if it runs out. Returns false if the run failed.
static bool judge_there(const struct fit_plan *there, const char *key, uint64_t asked, bool ran_out, struct fit_verdict *verdict) {
    struct fit_run run;
    struct fit_verdict judged;
    if (fit_run(there, &run) != CLI_OK) return false;
    if (run.ending == FIT_OUT_OF_MEMORY && !ran_out) {
        struct fit_plan more = *there;
        more.sim.memory_bytes = MORE_MEMORY;
        fit_run_release(&run);
        return judge_there(&more, key, asked, true, verdict);
    }
    const bool good = !fit_run_failed(&run) && run.holding_count > 0 && fit_judge(&run, key, asked, &judged) == CLI_OK;
    for (size_t i = 0; good && i < verdict->card_count; i++) {
        if (!judged.cards[i].asked) continue;
        if (ran_out && strcmp(judged.cards[i].model.key, key) == 0) judged.cards[i].fits = false;
        verdict->cards[i] = judged.cards[i];
    }
    if (good) fit_verdict_release(&judged);
    fit_run_release(&run);
    return good;
}

// Judges the requested cards of other generations. Skips those that this PyTorch has no kernels for.
static void judge_others(const struct fit_question *question, const struct fit_plan *plan, const struct fit_run *run,
                         struct fit_verdict *verdict) {
    struct fit_plan there = *plan;
    const struct fit_card *largest = NULL;
    uint64_t asked = 0;
    for (size_t i = 0; i < verdict->card_count; i++) {
        struct fit_card *card = &verdict->cards[i];
        struct vram_sim_model model;
        uint32_t number;
        if (!is_other(verdict, card) || question->unrunnable[0] != '\0') continue;
        card->method = FIT_BY_DEFAULT;
        if (!fit_kernels_have(run->kernels, &card->model) || !fit_model(card->model.key, strlen(card->model.key), &model, &number))
            continue;
        card->method = FIT_BY_OTHER;
        asked |= UINT64_C(1) << number;
        largest = card;
    }
    if (largest == NULL || fit_run_failed(run)) return;
    ui_say("vram fit: running again on %s, whose kernels differ from those of %s", largest->model.key, verdict->ran_on.key);
    there.sim.models = largest->model.key;
    there.sim.memory_bytes = SIM_UNSET;
    if (!judge_there(&there, largest->model.key, asked, false, verdict))
        ui_say("vram fit: the program failed there; the answer is for %s", verdict->ran_on.key);
}

// Finds what would make the program fit, and how much more it may need.
static void complete_verdict(const struct fit_question *question, const struct fit_plan *plan, struct fit_verdict *verdict,
                             struct fit_answer *answer) {
    // A server sizes its cache by the device's memory, so other settings or a run with more memory would measure another cache.
    const bool by_share = fit_serving_by_share(&answer->serving);
    if (!by_share) find_stake(question, plan, answer->run, &answer->stake);
    if (!by_share) answer->stake_bytes = fit_stake_bytes(answer->run, &answer->stake, verdict->highest);
    const bool failed = fit_run_failed(answer->run) || fit_part_failed(answer->run) || fit_lacks_rank(answer->run);
    fit_doubt_cards(verdict, failed, !by_share && fit_adapts(answer->run), answer->stake_bytes);
    fit_find_smallest_card(verdict);
    answer->fits = all_fit(verdict, question->limit_bytes);
    answer->unsure = is_unsure(answer);
    if (by_share || !fit_is_general(answer->run) || question->point != NULL) return;
    fit_find_setting(verdict, question->limit_bytes, &answer->setting);
    fit_find_remedies(verdict, &answer->setting, &answer->remedies);
    if (fit_remedies_know_passes(&answer->remedies)) fit_find_batch(verdict, &answer->setting, &answer->batch);
    if (question->vary.count > 0) return; // the user varies the arguments
    struct fit_plan larger = *plan;
    larger.sim.memory_bytes = MORE_MEMORY;
    fit_try_batch(&larger, verdict, &answer->setting, &answer->batch);
}

static int give_answer(const struct fit_question *question, const struct fit_answer *answer) {
    if (question->point != NULL) {
        fit_point_take(question->point, answer, question->asked);
        return CLI_OK;
    }
    answers_expect(question->answers);
    if (question->json) return fit_json_answer(answer, question->answers);
    answers_begin(question->answers);
    return fit_print_text(answer);
}

static int answer_run(struct fit_question *question, const struct fit_plan *plan, const struct fit_run *run, const struct fit_run *failed) {
    struct fit_verdict verdict;
    int code = fit_judge(run, question->largest, question->asked, &verdict);
    if (code != CLI_OK) return code;
    for (size_t i = 0; failed != NULL && i < verdict.card_count; i++) {
        if (strcmp(verdict.cards[i].model.key, question->largest) != 0) continue;
        verdict.cards[i].fits = false;
        verdict.cards[i].method = FIT_BY_RUN;
    }
    judge_others(question, plan, run, &verdict);
    fit_find_smallest_card(&verdict);
    struct fit_answer answer = {.run = run,
                                .dummy_weights = question->dummy_weights,
                                .verdict = &verdict,
                                .failed = failed,
                                .varied = question->varied,
                                .fold = &question->fold,
                                .unrunnable = question->unrunnable[0] == '\0' ? NULL : question->unrunnable,
                                .limit_bytes = question->limit_bytes};
    fit_serving_find(&verdict, &answer.serving);
    fit_serving_judge(&answer.serving, &verdict);
    complete_verdict(question, plan, &verdict, &answer);
    code = give_answer(question, &answer);
    if (code == CLI_OK && question->output != NULL) code = fit_keep(&answer, question->output);
    if (code == CLI_OK && question->plan_folder != NULL) code = fit_engine_plan_keep(&answer, question->plan_folder);
    if (code == CLI_OK && (!answer.fits || answer.unsure)) code = CLI_FINDING;
    fit_remedies_release(&answer.remedies);
    fit_verdict_release(&verdict);
    return code;
}

// Answers for a program that left no recording.
static int answer_nothing(struct fit_question *question, const struct fit_run *run) {
    const bool failed = fit_run_failed(run) || (run->ending != FIT_UNTIL && (run->exit_code != 0 || run->signal != 0));
    char unreached[1000];
    answers_expect(question->answers);
    if (question->json) {
        (void)fit_json_nothing(run, question->varied, question->answers);
    } else if (failed) {
        answers_begin(question->answers);
        fit_print_nothing(run, question->varied);
    }
    if (fit_unreached_text(run, true, unreached, sizeof unreached))
        ui_say("vram fit: nothing was recorded: %s", unreached);
    else if (run->context_count > 0)
        ui_say("vram fit: nothing was recorded: the program made a context on a device and allocated nothing there");
    else if (run->began)
        ui_say("vram fit: nothing was recorded: the program ended before its recording was written");
    else if (run->ending == FIT_UNTIL)
        ui_say("vram fit: nothing was recorded: its output matched --until before the program used device memory");
    else if (run->ending == FIT_TIME)
        ui_say("vram fit: nothing was recorded: the time of --for was over before the program used device memory");
    else
        ui_say("vram fit: nothing was recorded: the program %s", failed ? "failed before it used device memory" : "used no device memory");
    return CLI_BAD_INPUT;
}

// Answers for a program that cannot run with some of its ranks only.
static int answer_refused(struct fit_question *question, const struct fit_run *run) {
    answers_expect(question->answers);
    if (question->json) (void)fit_json_nothing(run, question->varied, question->answers);
    ui_say("vram fit: %s", run->refused);
    return CLI_BAD_INPUT;
}

static int judge_run(struct fit_question *question, const struct fit_plan *plan, const struct fit_run *run, const struct fit_run *failed) {
    if (question->point != NULL && (fit_run_failed(run) || run->holding_count == 0)) {
        fit_point_take_failure(question->point, run, &question->fold);
        return CLI_BAD_INPUT;
    }
    if (run->ending == FIT_REFUSED) return answer_refused(question, run);
    if (run->holding_count == 0) return answer_nothing(question, run);
    const int code = answer_run(question, plan, run, failed);
    if (code > CLI_FINDING || !fit_run_failed(run)) return code;
    if (run->ending == FIT_ABSENT)
        ui_say("vram fit: the ranks of the job wait for one that ended; the answer covers only what ran before");
    else if (run->ending == FIT_INTERRUPTED)
        ui_say("vram fit: the program was interrupted; the answer covers only what ran before");
    else
        ui_say("vram fit: the program failed (exit code %d); the answer covers only what ran before", run->exit_code);
    return CLI_BAD_INPUT;
}

// Replaces a card that PyTorch has no kernels for: by the largest requested card of another generation, else by the usual card.
static bool choose_another(struct fit_question *question) {
    struct vram_sim_model failed, model;
    uint32_t number;
    uint64_t most = 0;
    if (question->unrunnable[0] != '\0' || !fit_model(question->largest, strlen(question->largest), &failed, &number)) return false;
    (void)snprintf(question->unrunnable, sizeof question->unrunnable, "%s", question->largest);
    (void)snprintf(question->largest, sizeof question->largest, "%s", USUAL_DEVICE);
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) {
        const bool asked = (question->asked >> i & 1) != 0 && model.compute_major != failed.compute_major;
        if (!asked || model.memory_bytes <= most) continue;
        most = model.memory_bytes;
        (void)snprintf(question->largest, sizeof question->largest, "%s", model.key);
    }
    return strcmp(question->largest, failed.key) != 0;
}

static int run_where_it_can(struct fit_question *question, struct fit_plan *plan, struct fit_run *run) {
    const int code = fit_run(plan, run);
    if (code != CLI_OK || run->ending != FIT_FAILED || !run->no_kernels || !choose_another(question)) return code;
    ui_say("vram fit: this PyTorch has no kernels for %s: running again on %s", question->unrunnable, question->largest);
    fit_run_release(run);
    return fit_run(plan, run);
}

// Answers by a run in which the largest requested card was too small: by another with more memory, which says how much would have been
// enough. A search does without it.
static int answer_oom(struct fit_question *question, struct fit_plan *plan, const struct fit_run *run) {
    struct fit_run more;
    if (question->point != NULL && question->limit_bytes == UINT64_MAX) {
        struct vram_sim_model model = {.memory_bytes = 0};
        uint32_t number;
        (void)fit_model(question->largest, strlen(question->largest), &model, &number);
        fit_point_take_oom(question->point, run, &question->fold, model.memory_bytes);
        return CLI_FINDING;
    }
    ui_say("vram fit: memory ran out on %s: running again with more", question->largest);
    plan->sim.memory_bytes = MORE_MEMORY;
    int code = fit_run(plan, &more);
    if (code != CLI_OK) return code;
    code = judge_run(question, plan, &more, run);
    fit_run_release(&more);
    return code;
}

// Answers by a run, and releases it.
static int answer_one(struct fit_question *question, struct fit_plan *plan, struct fit_run *run) {
    int code = CLI_OK;
    if (!fit_search_cuts(question->search, run)) {
        code = run->ending == FIT_OUT_OF_MEMORY ? answer_oom(question, plan, run) : judge_run(question, plan, run, NULL);
        if (question->point != NULL) fit_search_measure(question->search, question->point, run);
    }
    fit_run_release(run);
    return code;
}

// Sets the time of the next run.
static void limit_time(const struct fit_question *question, struct fit_plan *plan) {
    const uint64_t left = question->search == NULL ? UINT64_MAX : fit_search_left(question->search);
    plan->most_seconds = question->most_seconds;
    if (left != UINT64_MAX && (plan->most_seconds == 0 || left < plan->most_seconds)) plan->most_seconds = left == 0 ? 1 : left;
}

// Answers if the run of one rank decides already: it failed before it used device memory, or a search's card is too small for it.
static bool scout_decides(struct fit_question *question, const struct fit_run *run) {
    if (fit_run_failed(run) && run->ending != FIT_REFUSED && run->holding_count == 0) return true;
    return question->point != NULL && (run->ending == FIT_OUT_OF_MEMORY || run->ending == FIT_INTERRUPTED || run->ending == FIT_TIME);
}

// Lets rank 0 run alone, to find out which ranks are alike and which have to run.
static int choose_ranks(struct fit_question *question, struct fit_plan *plan, bool *decided) {
    struct fit_run run;
    struct fit_plan scout = *plan;
    const char *wrong = fit_fold_scout(&question->fold);
    if (wrong != NULL) return usage_problem(wrong);
    if (question->point == NULL)
        ui_say("vram fit: rank 0 of %" PRIu64 " runs alone first, to find out which ranks are alike", question->fold.ranks);
    scout.quiet = true;
    limit_time(question, &scout);
    const int code = fit_run(&scout, &run);
    if (code != CLI_OK) return code;
    *decided = scout_decides(question, &run);
    if (*decided) return answer_one(question, plan, &run);
    char *noted = fit_fold_noted(run.folder);
    wrong = fit_fold_take_kinds(&question->fold, noted, false);
    if (question->point != NULL)
        fit_point_take_noted(question->point, noted);
    else
        free(noted);
    fit_run_release(&run);
    if (wrong != NULL) return usage_problem(wrong);
    if (question->devices_asked == 0) question->device_count = plan->sim.devices = fit_fold_devices(&question->fold);
    return CLI_OK;
}

static int run_ranks(struct fit_question *question, struct fit_plan *plan, struct fit_run *run) {
    limit_time(question, plan);
    const int code = run_where_it_can(question, plan, run);
    if (code == CLI_OK && run->exit_code == 137 && fit_run_failed(run) && run->ending != FIT_ABSENT)
        ui_say("vram fit: the program was killed (signal 9): this machine may have run out of memory");
    return code;
}

// Runs the ranks that ran for a similar variant of a search, without a run of rank 0 alone. Rank 0 notes which ranks are alike; if these
// are others, or the program failed, the run says nothing and *guessed is false.
static int run_guessed(struct fit_question *question, struct fit_plan *plan, struct fit_run *run, bool *guessed) {
    const char *guess = question->point == NULL ? NULL : fit_search_guess(question->search, question->point);
    *guessed = guess != NULL;
    if (!*guessed) return CLI_OK;
    const char *wrong = fit_fold_scout(&question->fold);
    if (wrong == NULL) wrong = fit_fold_take_kinds(&question->fold, guess, true);
    if (wrong != NULL) return usage_problem(wrong);
    if (question->devices_asked == 0) question->device_count = plan->sim.devices = fit_fold_devices(&question->fold);
    const int code = run_ranks(question, plan, run);
    if (code != CLI_OK) return code;
    char *noted = fit_fold_noted(run->folder);
    *guessed = fit_search_cuts(question->search, run) || (!fit_run_failed(run) && noted != NULL && strcmp(noted, guess) == 0);
    if (*guessed)
        fit_point_take_noted(question->point, noted);
    else
        free(noted);
    if (!*guessed) fit_run_release(run);
    return CLI_OK;
}

static int run_program(struct fit_question *question, struct fit_plan *plan) {
    struct fit_run run;
    bool decided = false, guessed = false;
    int code = question->fold.scouts ? run_guessed(question, plan, &run, &guessed) : CLI_OK;
    if (code == CLI_OK && question->fold.scouts && !guessed) code = choose_ranks(question, plan, &decided);
    if (code != CLI_OK || decided) return code;
    if (!guessed) code = run_ranks(question, plan, &run);
    return code != CLI_OK ? code : answer_one(question, plan, &run);
}

// Lets a copy of the program's words say how many ranks run.
static const char *begin_ranks(struct fit_question *question, char **words) {
    const bool has_devices = question->devices_asked != 0;
    const char *wrong = fit_fold_begin(&question->fold, question->folds, question->search != NULL, has_devices, words);
    const bool folds = wrong == NULL && question->fold.ranks != 0;
    question->device_count = has_devices ? question->devices_asked : folds ? fit_fold_devices(&question->fold) : fit_count_devices(words);
    return wrong;
}

static int run_words(struct fit_question *question, char **words) {
    char set[2048];
    const char *wrong = begin_ranks(question, words);
    if (wrong != NULL) return usage_problem(wrong);
    // The contents of large copies from the host are not needed and would take memory.
    if (snprintf(set, sizeof set, "bytes=none%s%s", question->more == NULL ? "" : ",", question->more == NULL ? "" : question->more) >=
        (int)sizeof set)
        return usage_problem("--set is too long");
    struct fit_plan plan = {.sim = {.models = question->largest, .devices = question->device_count, .memory_bytes = SIM_UNSET, .more = set},
                            .program = words,
                            .steps = question->steps,
                            .until = question->until,
                            .printed = question->printed,
                            .quiet = question->quiet,
                            .silent = question->point != NULL,
                            .dummy_weights = question->dummy_weights,
                            .requests = question->traffic == NULL ? NULL : &question->requests,
                            .keeps_plan = question->plan_folder != NULL,
                            .has_devices = question->devices_asked != 0,
                            .folds = question->fold.ranks != 0};
    const int code = run_program(question, &plan);
    fit_fold_end(&question->fold);
    return code;
}

int fit_program(struct fit_question *question, char **program) {
    size_t count = 0;
    while (program[count] != NULL) count++;
    char **words = calloc(count + 1, sizeof *words);
    if (words == NULL) return ui_usage("fit", "vram fit: not enough host memory");
    memcpy(words, program, count * sizeof *words);
    question->unrunnable[0] = '\0';
    const int code = run_words(question, words);
    free(words);
    return code;
}
