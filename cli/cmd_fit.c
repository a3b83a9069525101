// vram fit: determines whether a program fits, and on which devices.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "output.h"
#include "args.h"
#include "fit_cards.h"
#include "fit_engine_plan.h"
#include "fit_fold.h"
#include "fit_keep.h"
#include "fit_print.h"
#include "fit_run.h"
#include "fit_remedies.h"
#include "fit_requests.h"
#include "fit_stake.h"
#include "fit_failure.h"
#include "sim_settings.h"
#include "sim_environment.h"
#include "ui.h"
#include "vram/sim.h"

int cmd_fit(int argc, char **argv);

struct settings {
    struct args_list devices;
    bool all, each, json, quiet, dummy_weights;
    const char *steps, *until, *seconds, *output, *more;
    uint64_t limit_bytes;
    uint64_t asked;   // bit set of model numbers
    char largest[32]; // key of the largest model asked for
    uint64_t most_seconds;
    uint64_t device_count;
    bool counts_devices; // --devices was not used: one for each rank that runs
    const char *vary;    // "--name=A,B,C"; NULL if not given
    const char *varied;  // the argument of --vary, with its value in this run; NULL without --vary
    struct sim_values values;
    const char *traffic;          // --requests; NULL: none
    struct fit_requests requests; // read from it
    const char *plan_folder;      // --write-plan; NULL: none
    const char *folds;            // which ranks to run; NULL: all, or a few if there are very many
    struct fit_fold fold;
    char unrunnable[32];     // the first choice of `largest`, if another model replaced it; else ""
    struct answers *answers; // one, or several with --vary and --each
};

#define USUAL_DEVICE "h100"
#define MORE_MEMORY  ((uint64_t)1 << 40) // of a device that never runs out of memory

static int usage_problem(const char *text) { return ui_usage("fit", "vram fit: %s", text); }

// --- settings -----------------------------------------------------------------------------------------------------------------------

static bool ask_for(struct settings *settings, const char *key, size_t length, uint64_t *most) {
    struct vram_sim_model model;
    uint32_t number;
    if (!fit_model(key, length, &model, &number)) {
        char wrong[400];
        if (sim_card_maker_of(key, length) == SIM_CARD_AMD)
            (void)snprintf(wrong, sizeof wrong, "'%.*s' is an AMD card, which only 'vram sim --hip' simulates", (int)length, key);
        else
            sim_card_say_unknown(key, length, wrong, sizeof wrong);
        ui_say("vram fit: %s", wrong);
        sim_cards_say_known();
        return false;
    }
    settings->asked |= UINT64_C(1) << number;
    if (model.memory_bytes > *most) {
        *most = model.memory_bytes;
        (void)snprintf(settings->largest, sizeof settings->largest, "%s", model.key);
    }
    return true;
}

static bool settle_devices(struct settings *settings) {
    uint64_t most = 0;
    struct vram_sim_model model;
    for (size_t i = 0; i < settings->devices.count; i++) {
        for (const char *at = settings->devices.values[i];; at++) {
            const size_t length = strcspn(at, ",");
            if (!ask_for(settings, at, length, &most)) return false;
            at += length;
            if (*at == '\0') break;
        }
    }
    // The program runs on a card that every current PyTorch has kernels for, with more memory if that card is too small.
    if (settings->all && most == 0) most = UINT64_MAX - 1, (void)strcpy(settings->largest, USUAL_DEVICE);
    for (uint32_t i = 0; settings->all && vram_sim_model_at(i, &model); i++)
        if (!ask_for(settings, model.key, strlen(model.key), &most)) return false;
    return settings->asked != 0 || ask_for(settings, USUAL_DEVICE, strlen(USUAL_DEVICE), &most);
}

// Parses "90", "90s", "2m" or "1h".
static bool settle_time(struct settings *settings) {
    if (settings->seconds == NULL) return true;
    char *end;
    const unsigned long long number = strtoull(settings->seconds, &end, 10);
    const uint64_t unit = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1 : strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 0;
    settings->most_seconds = number > 0 && number < 1000000 ? number * unit : 0;
    return settings->most_seconds != 0;
}

static bool are_steps(const char *text) {
    return strcmp(text, "auto") == 0 || strcmp(text, "all") == 0 || (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0');
}

// Reads --requests. The run then ends with the last request, not after a number of steps.
static bool settle_requests(struct settings *settings) {
    char wrong[FIT_WRONG_CAPACITY];
    if (settings->traffic == NULL && settings->plan_folder != NULL) return usage_problem("--write-plan needs --requests") == CLI_OK;
    if (settings->traffic == NULL) return true;
    if (strcmp(settings->steps, "auto") != 0) return usage_problem("--requests and --steps cannot be used together") == CLI_OK;
    settings->steps = "0";
    if (fit_requests_open(&settings->requests, settings->traffic, wrong)) return true;
    return ui_usage("fit", "vram fit: --requests: %s", wrong) == CLI_OK;
}

// --- the work -----------------------------------------------------------------------------------------------------------------------

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
    if (!answer->fits) return false;
    if (answer->limit_bytes != UINT64_MAX) return verdict->smallest_bytes + answer->stake_bytes > answer->limit_bytes;
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked && verdict->cards[i].unsure) return true;
    return false;
}

// Finds the data-dependent bytes in a run whose memory cannot run out.
static void find_stake(const struct settings *settings, const struct fit_plan *plan, const struct fit_run *run, struct fit_stake *stake) {
    struct fit_plan larger = *plan;
    larger.sim.memory_bytes = MORE_MEMORY;
    fit_find_stake(&larger, run, settings->values.nonzero != NULL, stake);
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
static void judge_others(const struct settings *settings, const struct fit_plan *plan, const struct fit_run *run,
                         struct fit_verdict *verdict) {
    struct fit_plan there = *plan;
    const struct fit_card *largest = NULL;
    uint64_t asked = 0;
    for (size_t i = 0; i < verdict->card_count; i++) {
        struct fit_card *card = &verdict->cards[i];
        struct vram_sim_model model;
        uint32_t number;
        if (!is_other(verdict, card) || settings->unrunnable[0] != '\0') continue;
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
static void complete_verdict(const struct settings *settings, const struct fit_plan *plan, struct fit_verdict *verdict,
                             struct fit_answer *answer) {
    // A server sizes its cache by the device's memory, so other settings or a run with more memory would measure another cache.
    const bool by_share = fit_serving_by_share(&answer->serving);
    if (!by_share) find_stake(settings, plan, answer->run, &answer->stake);
    if (!by_share) answer->stake_bytes = fit_stake_bytes(answer->run, &answer->stake, verdict->highest);
    fit_doubt_cards(verdict, fit_run_failed(answer->run), answer->stake_bytes);
    fit_find_smallest_card(verdict);
    answer->fits = all_fit(verdict, settings->limit_bytes);
    answer->unsure = is_unsure(answer);
    if (by_share || fit_run_failed(answer->run)) return;
    fit_find_setting(verdict, settings->limit_bytes, &answer->setting);
    fit_find_remedies(verdict, &answer->setting, &answer->remedies);
    if (fit_remedies_know_passes(&answer->remedies)) fit_find_batch(verdict, &answer->setting, &answer->batch);
    if (settings->vary != NULL) return; // the user varies the arguments
    struct fit_plan larger = *plan;
    larger.sim.memory_bytes = MORE_MEMORY;
    fit_try_batch(&larger, verdict, &answer->setting, &answer->batch);
}

static int print_answer(const struct settings *settings, const struct fit_answer *answer) {
    answers_expect(settings->answers);
    if (settings->json) return fit_json_answer(answer, settings->answers);
    answers_begin(settings->answers);
    return fit_print_text(answer);
}

static int answer_run(struct settings *settings, const struct fit_plan *plan, const struct fit_run *run, const struct fit_run *failed) {
    struct fit_verdict verdict;
    int code = fit_judge(run, settings->largest, settings->asked, &verdict);
    if (code != CLI_OK) return code;
    for (size_t i = 0; failed != NULL && i < verdict.card_count; i++) {
        if (strcmp(verdict.cards[i].model.key, settings->largest) != 0) continue;
        verdict.cards[i].fits = false;
        verdict.cards[i].method = FIT_BY_RUN;
    }
    judge_others(settings, plan, run, &verdict);
    fit_find_smallest_card(&verdict);
    struct fit_answer answer = {.run = run,
                                .dummy_weights = settings->dummy_weights,
                                .verdict = &verdict,
                                .failed = failed,
                                .varied = settings->varied,
                                .fold = &settings->fold,
                                .unrunnable = settings->unrunnable[0] == '\0' ? NULL : settings->unrunnable,
                                .limit_bytes = settings->limit_bytes};
    fit_serving_find(&verdict, &answer.serving);
    fit_serving_judge(&answer.serving, &verdict);
    complete_verdict(settings, plan, &verdict, &answer);
    code = print_answer(settings, &answer);
    if (code == CLI_OK && settings->output != NULL) code = fit_keep(run, verdict.highest->process, settings->output);
    if (code == CLI_OK && settings->plan_folder != NULL) code = fit_engine_plan_keep(&answer, settings->plan_folder);
    if (code == CLI_OK && (!answer.fits || answer.unsure)) code = CLI_FINDING;
    fit_remedies_release(&answer.remedies);
    fit_verdict_release(&verdict);
    return code;
}

// Answers for a program that left no recording.
static int answer_nothing(struct settings *settings, const struct fit_run *run) {
    const bool failed = run->exit_code != 0 || run->signal != 0;
    char unreached[1000];
    answers_expect(settings->answers);
    if (settings->json) {
        (void)fit_json_nothing(run, settings->varied, settings->answers);
    } else if (failed) {
        answers_begin(settings->answers);
        fit_print_nothing(run, settings->varied);
    }
    if (fit_unreached_text(run, true, unreached, sizeof unreached))
        ui_say("vram fit: nothing was recorded: %s", unreached);
    else if (run->began)
        ui_say("vram fit: nothing was recorded: the program ended before its recording was written");
    else
        ui_say("vram fit: nothing was recorded: the program %s", failed ? "failed before it used device memory" : "used no device memory");
    return CLI_BAD_INPUT;
}

// Answers for a program that cannot run with some of its ranks only.
static int answer_refused(struct settings *settings, const struct fit_run *run) {
    answers_expect(settings->answers);
    if (settings->json) (void)fit_json_nothing(run, settings->varied, settings->answers);
    ui_say("vram fit: %s", run->refused);
    return CLI_BAD_INPUT;
}

static int judge_run(struct settings *settings, const struct fit_plan *plan, const struct fit_run *run, const struct fit_run *failed) {
    if (run->ending == FIT_REFUSED) return answer_refused(settings, run);
    if (run->holding_count == 0) return answer_nothing(settings, run);
    const int code = answer_run(settings, plan, run, failed);
    if (code > CLI_FINDING || !fit_run_failed(run)) return code;
    if (run->ending == FIT_INTERRUPTED)
        ui_say("vram fit: the program was interrupted; the answer covers only what ran before");
    else
        ui_say("vram fit: the program failed (exit code %d); the answer covers only what ran before", run->exit_code);
    return CLI_BAD_INPUT;
}

// Replaces a card that PyTorch has no kernels for: by the largest requested card of another generation, else by the usual card.
static bool choose_another(struct settings *settings) {
    struct vram_sim_model failed, model;
    uint32_t number;
    uint64_t most = 0;
    if (settings->unrunnable[0] != '\0' || !fit_model(settings->largest, strlen(settings->largest), &failed, &number)) return false;
    (void)snprintf(settings->unrunnable, sizeof settings->unrunnable, "%s", settings->largest);
    (void)snprintf(settings->largest, sizeof settings->largest, "%s", USUAL_DEVICE);
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) {
        const bool asked = (settings->asked >> i & 1) != 0 && model.compute_major != failed.compute_major;
        if (!asked || model.memory_bytes <= most) continue;
        most = model.memory_bytes;
        (void)snprintf(settings->largest, sizeof settings->largest, "%s", model.key);
    }
    return strcmp(settings->largest, failed.key) != 0;
}

static int run_where_it_can(struct settings *settings, struct fit_plan *plan, struct fit_run *run) {
    const int code = fit_run(plan, run);
    if (code != CLI_OK || run->ending != FIT_FAILED || !run->no_kernels || !choose_another(settings)) return code;
    ui_say("vram fit: this PyTorch has no kernels for %s: running again on %s", settings->unrunnable, settings->largest);
    fit_run_release(run);
    return fit_run(plan, run);
}

// Answers for a program that failed before its first rank used device memory: all ranks would.
static int answer_failed_scout(struct settings *settings, struct fit_run *run) {
    const int code = answer_nothing(settings, run);
    fit_run_release(run);
    return code;
}

// Lets rank 0 run alone, to find out which ranks are alike and which have to run.
static int choose_ranks(struct settings *settings, struct fit_plan *plan) {
    struct fit_run run;
    struct fit_plan scout = *plan;
    const char *wrong = fit_fold_scout(&settings->fold);
    if (wrong != NULL) return usage_problem(wrong);
    ui_say("vram fit: rank 0 of %" PRIu64 " runs alone first, to find out which ranks are alike", settings->fold.ranks);
    scout.quiet = true;
    const int code = fit_run(&scout, &run);
    if (code != CLI_OK) return code;
    if (fit_run_failed(&run) && run.ending != FIT_REFUSED && run.holding_count == 0) return answer_failed_scout(settings, &run);
    wrong = fit_fold_take_kinds(&settings->fold, run.folder);
    fit_run_release(&run);
    if (wrong != NULL) return usage_problem(wrong);
    if (settings->counts_devices) settings->device_count = plan->sim.devices = fit_count_devices(plan->program);
    return CLI_OK;
}

static int fit_program(struct settings *settings, char **program) {
    struct fit_run run, more;
    char set[2048];
    // The contents of large copies from the host are not needed and would take memory.
    if (snprintf(set, sizeof set, "bytes=none%s%s", settings->more == NULL ? "" : ",", settings->more == NULL ? "" : settings->more) >=
        (int)sizeof set)
        return usage_problem("--set is too long");
    struct fit_plan plan = {.sim = {.models = settings->largest, .devices = settings->device_count, .memory_bytes = SIM_UNSET, .more = set},
                            .program = program,
                            .steps = settings->steps,
                            .until = settings->until,
                            .most_seconds = settings->most_seconds,
                            .quiet = settings->quiet,
                            .dummy_weights = settings->dummy_weights,
                            .requests = settings->traffic == NULL ? NULL : &settings->requests,
                            .keeps_plan = settings->plan_folder != NULL,
                            .folds = settings->fold.ranks != 0};
    int code = settings->fold.scouts ? choose_ranks(settings, &plan) : CLI_OK;
    if (code != CLI_OK) return code;
    code = run_where_it_can(settings, &plan, &run);
    if (code != CLI_OK) return code;
    if (run.exit_code == 137) ui_say("vram fit: the program was killed (signal 9): this machine may have run out of memory");
    if (run.ending != FIT_OUT_OF_MEMORY) {
        code = judge_run(settings, &plan, &run, NULL);
        fit_run_release(&run);
        return code;
    }
    // Find how much memory would have been enough.
    plan.sim.memory_bytes = MORE_MEMORY;
    code = fit_run(&plan, &more);
    if (code == CLI_OK) {
        code = judge_run(settings, &plan, &more, &run);
        fit_run_release(&more);
    }
    fit_run_release(&run);
    return code;
}

// --- other arguments ----------------------------------------------------------------------------------------------------------------

// Finds "--name=..." or "--name VALUE" in the program's arguments. Returns the index of the argument that contains the value; 0 if absent.
static int find_argument(char **program, const char *name, size_t length, bool *joined) {
    for (int i = 1; program[i] != NULL; i++) {
        if (strncmp(program[i], name, length) != 0) continue;
        *joined = program[i][length] == '=';
        if (*joined) return i;
        if (program[i][length] == '\0' && program[i + 1] != NULL) return i + 1;
    }
    return 0;
}

static int run_on(struct settings *settings, const struct vram_sim_model *model, uint32_t number, char **program) {
    settings->asked = UINT64_C(1) << number;
    settings->unrunnable[0] = '\0';
    (void)snprintf(settings->largest, sizeof settings->largest, "%s", model->key);
    return fit_program(settings, program);
}

// Runs and answers once for each card.
static int fit_each(struct settings *settings, char **program) {
    const uint64_t asked = settings->asked;
    struct vram_sim_model model;
    int worst = CLI_OK;
    for (uint32_t i = 0; worst <= CLI_FINDING && vram_sim_model_at(i, &model); i++) {
        if ((asked >> i & 1) == 0) continue;
        const int code = run_on(settings, &model, i, program);
        if (code > worst) worst = code;
        (void)fflush(stdout);
    }
    return worst;
}

// Runs and answers once for each value. Returns 0 if any of them fits.
static int fit_varied(struct settings *settings, char **program) {
    const size_t length = strcspn(settings->vary, "=");
    bool joined = false;
    int place = find_argument(program, settings->vary, length, &joined);
    if (place == 0) {
        // The program uses the default. cmd_fit() left space for one more argument.
        while (program[place] != NULL) place++;
        joined = true;
        program[place + 1] = NULL;
    }
    int best = CLI_DEVICE;
    for (const char *at = settings->vary + length + 1; best != CLI_BAD_INPUT; at++) {
        char value[512], argument[600];
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, ","), at);
        (void)snprintf(argument, sizeof argument, "%.*s=%s", (int)length, settings->vary, value);
        program[place] = joined ? argument : value;
        settings->varied = argument;
        const int code = fit_program(settings, program);
        best = code > CLI_FINDING || code < best ? code : best;
        if (code > CLI_FINDING) break;
        (void)fflush(stdout);
        at += strcspn(at, ",");
        if (*at == '\0') break;
    }
    return best;
}

static int fit_all(struct settings *settings, char **program) {
    struct answers answers;
    answers_open(&answers, settings->json, settings->each || settings->vary != NULL, "\n");
    settings->answers = &answers;
    const int code = settings->each           ? fit_each(settings, program)
                     : settings->vary == NULL ? fit_program(settings, program)
                                              : fit_varied(settings, program);
    answers_close(&answers);
    return code;
}

int cmd_fit(int argc, char **argv) {
    struct settings settings = {.steps = "auto", .limit_bytes = UINT64_MAX, .values = {.compute_bytes = SIM_VALUES_COMPUTED}};
    const struct args_option options[] = {
        {.name = "card",
         .kind = ARGS_STRINGS,
         .value = "NAME,...",
         .help = "cards to judge: t4, a100-80, rtx4090, ... (default h100; vram sim --cards lists them)",
         .target = &settings.devices,
         .also = "device gpu model"},
        {.name = "all", .letter = 'a', .kind = ARGS_FLAG, .help = "judge every known card", .target = &settings.all},
        {.name = "devices",
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "number of devices (default: 1, or taken from the program's --nproc-per-node or similar)",
         .target = &settings.device_count},
        {.name = "fold",
         .kind = ARGS_STRING,
         .value = "RANK,...|auto|none",
         .help = "run only these of the launcher's ranks and assume that the others are alike (default: all, or a few if there are more "
                 "than 16)",
         .target = &settings.folds},
        {.name = "each",
         .kind = ARGS_FLAG,
         .help = "run the program once per card instead of judging all cards by one run",
         .target = &settings.each,
         .also = "exact"},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory limit per device, including context and libraries, e.g. 22GiB: says whether the program completes in it",
         .target = &settings.limit_bytes,
         .also = "limit vram"},
        {.name = "steps",
         .kind = ARGS_STRING,
         .value = "N|auto|all",
         .help = "stop the program after N optimizer steps; auto (default): after three alike in a row; all: never",
         .target = &settings.steps},
        {.name = "until",
         .kind = ARGS_STRING,
         .value = "REGEX",
         .help = "stop the program when a line of its output matches",
         .target = &settings.until},
        {.name = "for",
         .kind = ARGS_STRING,
         .value = "TIME",
         .help = "stop the program after this time: 90s, 5m",
         .target = &settings.seconds,
         .also = "timeout time"},
        {.name = "vary",
         .kind = ARGS_STRING,
         .value = "ARGUMENT=A,B,C",
         .help = "run once for each value of a program argument: '--batch-size=16,8,4'; exit code 0 if one fits",
         .target = &settings.vary},
        {.name = "requests",
         .kind = ARGS_STRING,
         .value = "FILE|SHAPE",
         .help = "play these requests against the model server: lengths in a file, or rate=8/s,prompt=512..4096,output=256,count=1000",
         .target = &settings.traffic},
        {.name = "write-plan",
         .kind = ARGS_STRING,
         .value = "FOLDER",
         .help = "write a plan that the engine uses at its next start instead of measuring, if it served all of --requests",
         .target = &settings.plan_folder},
        {.name = "dummy-weights",
         .kind = ARGS_FLAG,
         .help =
             "generate dummy weights, so that models of transformers and diffusers and GGUF files need only their configuration or header",
         .target = &settings.dummy_weights},
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "keep the recording of the rank that needs the most memory (vram view FILE); in a folder, those of all ranks that ran",
         .target = &settings.output},
        {.name = "set",
         .kind = ARGS_STRING,
         .value = "KEY=VALUE,...",
         .help = "further settings of the simulator (docs/guides/simulator.md)",
         .target = &settings.more},
        SIM_VALUES_OPTIONS(&settings.values),
        {.name = "quiet",
         .letter = 'q',
         .kind = ARGS_FLAG,
         .help = "show the program's output only if it fails",
         .target = &settings.quiet},
        {.name = "json", .kind = ARGS_FLAG, .help = "one JSON object; keys in docs/reference/json.md", .target = &settings.json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "fit",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary = "Says whether a program fits into a GPU's memory, without a GPU. The program runs on a simulated device, which "
                   "computes\nnothing but allocates the same memory as a real one, until its steps repeat. vram then shows how much memory "
                   "it needs,\nwhat holds it, on which cards it fits, and where it runs out on the others. The program's output goes to "
                   "standard error.\nExit code 1 if it does not fit on one of the given cards or if that is not sure, 3 if the program "
                   "fails for another reason.\nWith --vary: 0 if one of the values fits, 1 if none does, 3 at the first run that fails.",
        .examples = "  vram fit -- python train.py\n"
                    "  vram fit --card rtx4090,a100-40 -- python train.py --batch-size 8\n"
                    "  vram fit --all --json -- torchrun --nproc-per-node 8 train.py\n"
                    "  vram fit --card rtx4090 --vary '--batch-size=16,8,4' -q -- python train.py --batch-size 16\n"
                    "  vram fit --requests rate=8/s,prompt=512..4096,output=256 -- vllm serve ./model\n"
                    "  vram fit --memory 22GiB -q -- python train.py   # in CI: exit code 1 when it needs more\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a program (after --)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!settle_devices(&settings)) return CLI_USAGE;
    if (!settle_time(&settings)) return usage_problem("--for takes a time: 90s, 5m, 1h");
    if (!are_steps(settings.steps)) return usage_problem("--steps takes a number, auto or all");
    if (strcmp(settings.steps, "all") == 0) settings.steps = "0";
    code = sim_values_put("fit", &settings.values);
    if (code != CLI_OK) return code;
    if (!sim_values_compute(&settings.values)) ui_say("vram fit: cannot set the program's environment: %s", strerror(errno));
    argv[1 + count] = NULL;
    if (settings.device_count > VRAM_SIM_MOST_DEVICES) return usage_problem("--devices takes 1 to 64");
    const char *wrong = fit_fold_begin(&settings.fold, settings.folds, argv + 1);
    if (wrong != NULL) return usage_problem(wrong);
    settings.counts_devices = settings.device_count == 0;
    if (settings.counts_devices) settings.device_count = fit_count_devices(argv + 1);
    if (settings.vary != NULL && (settings.vary[0] == '=' || strchr(settings.vary, '=') == NULL))
        return usage_problem("--vary takes an argument of the program and values: '--batch-size=16,8,4'");
    if (settings.each && settings.vary != NULL) return usage_problem("--each and --vary cannot be used together");
    if (!settle_requests(&settings)) return CLI_USAGE;
    code = fit_all(&settings, argv + 1);
    fit_requests_release(&settings.requests);
    return code;
}
