// vram fit: determines whether a program fits, and on which devices.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "fit_cards.h"
#include "fit_program.h"
#include "fit_route.h"
#include "output.h"
#include "sim_environment.h"
#include "sim_settings.h"
#include "ui.h"
#include "vram/driver.h"
#include "vram/sim.h"

int cmd_fit(int argc, char **argv);

#define USUAL_DEVICE "h100"

static int usage_problem(const char *text) { return ui_usage("fit", "vram fit: %s", text); }

// --- settings -----------------------------------------------------------------------------------------------------------------------

static bool ask_for(struct fit_question *question, const char *key, size_t length, uint64_t *most) {
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
    question->asked |= UINT64_C(1) << number;
    if (model.memory_bytes > *most) {
        *most = model.memory_bytes;
        (void)snprintf(question->largest, sizeof question->largest, "%s", model.key);
    }
    return true;
}

static bool settle_devices(struct fit_question *question) {
    uint64_t most = 0;
    struct vram_sim_model model;
    for (size_t i = 0; i < question->devices.count; i++) {
        for (const char *at = question->devices.values[i];; at++) {
            const size_t length = strcspn(at, ",");
            if (!ask_for(question, at, length, &most)) return false;
            at += length;
            if (*at == '\0') break;
        }
    }
    // The program runs on a card that every current PyTorch has kernels for, with more memory if that card is too small.
    if (question->all && most == 0) most = UINT64_MAX - 1, (void)strcpy(question->largest, USUAL_DEVICE);
    for (uint32_t i = 0; question->all && vram_sim_model_at(i, &model); i++)
        if (!ask_for(question, model.key, strlen(model.key), &most)) return false;
    return question->asked != 0 || ask_for(question, USUAL_DEVICE, strlen(USUAL_DEVICE), &most);
}

// Parses "90", "90s", "2m" or "1h". Stores 0 without a text.
static bool settle_time(const char *text, uint64_t *seconds) {
    char *end;
    *seconds = 0;
    if (text == NULL) return true;
    const unsigned long long number = strtoull(text, &end, 10);
    const uint64_t unit = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1 : strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 0;
    *seconds = text[0] >= '0' && text[0] <= '9' && number < 1000000 ? number * unit : 0;
    return *seconds != 0;
}

static bool are_steps(const char *text) {
    const char *digits = text + strspn(text, "0");
    return strcmp(text, "auto") == 0 || strcmp(text, "all") == 0 || (digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0');
}

// Finds out whether the answer's files can be written, before the program runs.
static bool settle_files(const struct fit_question *question) {
    const char *output = question->output, *plan = question->plan_folder;
    char wrong[400];
    if (plan != NULL && plan[0] == '\0') return usage_problem("--write-plan takes a folder") == CLI_OK;
    if (output != NULL && !output_can_write(output, output_is_folder(output)))
        (void)snprintf(wrong, sizeof wrong, "--output: %.300s: %s", output, strerror(errno));
    else if (plan != NULL && !output_can_write(plan, true))
        (void)snprintf(wrong, sizeof wrong, "--write-plan: %.300s: %s", plan, strerror(errno));
    else
        return true;
    return usage_problem(wrong) == CLI_OK;
}

static bool settle_simulator(const struct fit_question *question) {
    const struct sim_settings settings = {
        .models = question->largest, .devices = SIM_UNSET, .memory_bytes = SIM_UNSET, .more = question->more};
    char text[4096], wrong[400];
    return sim_settings_text(&settings, text, sizeof text, wrong, sizeof wrong) || usage_problem(wrong) == CLI_OK;
}

// Reads --requests. The run then ends with the last request, not after a number of steps.
static bool settle_requests(struct fit_question *question) {
    char wrong[FIT_WRONG_CAPACITY];
    if (question->traffic == NULL && question->plan_folder != NULL) return usage_problem("--write-plan needs --requests") == CLI_OK;
    if (question->traffic == NULL) return true;
    if (strcmp(question->steps, "auto") != 0) return usage_problem("--requests and --steps cannot be used together") == CLI_OK;
    question->steps = "0";
    if (fit_requests_open(&question->requests, question->traffic, wrong)) return true;
    return ui_usage("fit", "vram fit: --requests: %s", wrong) == CLI_OK;
}

// Returns what is wrong with options that depend on each other; NULL if nothing is.
static const char *contradiction(const struct fit_question *question) {
    const bool searches = question->searches;
    return question->each && question->vary.count > 0               ? "--each and --vary cannot be used together"
           : searches && question->vary.count == 0                  ? "--search needs --vary, which says what to change"
           : question->where.count > 0 && question->vary.count == 0 ? "--where needs --vary"
           : !searches && question->work != NULL                    ? "--work needs --search"
           : !searches && question->printed != NULL                 ? "--printed needs --search"
           : !searches && question->budget != NULL                  ? "--budget needs --search; --for limits one run"
           : searches && question->output != NULL      ? "--search keeps no recording: run the best variant alone, with --output"
           : searches && question->plan_folder != NULL ? "--search writes no plan: run the best variant alone, with --write-plan"
                                                       : NULL;
}

static int answer_all(struct fit_question *question, char **program) {
    struct answers answers;
    answers_open(&answers, question->json, question->each || (question->vary.count > 0 && !question->searches), "\n");
    question->answers = &answers;
    const int code = question->each              ? fit_each_card(question, program)
                     : question->vary.count == 0 ? fit_program(question, program)
                                                 : fit_all_variants(question, program);
    answers_close(&answers);
    return code;
}

int cmd_fit(int argc, char **argv) {
    struct fit_question question = {
        .steps = "auto", .devices_asked = SIM_UNSET, .limit_bytes = UINT64_MAX, .values = {.compute_bytes = SIM_VALUES_COMPUTED}};
    const struct args_option options[] = {
        {.name = "card",
         .kind = ARGS_STRINGS,
         .value = "NAME,...",
         .help = "cards to judge: t4, a100-80, rtx4090, ... (default h100; vram sim --cards lists them)",
         .target = &question.devices,
         .also = "device gpu model"},
        {.name = "all", .letter = 'a', .kind = ARGS_FLAG, .help = "judge every known card", .target = &question.all},
        {.name = "devices",
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "number of devices (default: 1, or taken from the program's --nproc-per-node or similar)",
         .target = &question.devices_asked},
        {.name = "fold",
         .kind = ARGS_STRING,
         .value = "RANK,...|auto|none",
         .help = "run only these of the launcher's ranks and assume that the others are alike (default: all, or a few if there are more "
                 "than 16, or 3 with --search)",
         .target = &question.folds},
        {.name = "each",
         .kind = ARGS_FLAG,
         .help = "run the program once per card instead of judging all cards by one run",
         .target = &question.each,
         .also = "exact"},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory limit per device, including context and libraries, e.g. 22GiB: says whether the program completes in it",
         .target = &question.limit_bytes,
         .also = "limit vram"},
        {.name = "steps",
         .kind = ARGS_STRING,
         .value = "N|auto|all",
         .help = "stop the program after N optimizer steps; auto (default): after three alike in a row; all: never",
         .target = &question.steps},
        {.name = "until",
         .kind = ARGS_STRING,
         .value = "REGEX",
         .help = "stop the program when a line of its output matches",
         .target = &question.until},
        {.name = "for",
         .kind = ARGS_STRING,
         .value = "TIME",
         .help = "stop the program after this time: 90s, 5m",
         .target = &question.seconds,
         .also = "timeout time"},
        {.name = "vary",
         .kind = ARGS_STRINGS,
         .value = "ARGUMENT=A,B,C",
         .help = "run once for each value of a program argument, '--batch-size=16,8,4', or without and with a flag, '--compile'; given "
                 "again: for each combination. Exit code 0 if one fits",
         .target = &question.vary},
        {.name = "where",
         .kind = ARGS_STRINGS,
         .value = "EXPRESSION",
         .help = "only combinations of --vary for which this holds: 'tp*pp*dp == ranks'",
         .target = &question.where},
        {.name = "search",
         .kind = ARGS_FLAG,
         .help =
             "with --vary: one table of all combinations instead of an answer for each: which fit, and which of them does the most work",
         .target = &question.searches},
        {.name = "work",
         .kind = ARGS_STRING,
         .value = "EXPRESSION",
         .help = "with --search: the work of a combination, such as tokens per step: 'mbs*dp*4096'",
         .target = &question.work},
        {.name = "printed",
         .kind = ARGS_STRING,
         .value = "REGEX",
         .help = "with --search: the last number that the program prints for the group, 'tokens: ([0-9]+)', is the work, or `printed` in "
                 "--work",
         .target = &question.printed},
        {.name = "budget",
         .kind = ARGS_STRING,
         .value = "TIME",
         .help = "with --search: end after this time, and say how far the search got: 90s, 15m",
         .target = &question.budget},
        {.name = "requests",
         .kind = ARGS_STRING,
         .value = "FILE|SHAPE",
         .help = "play these requests against the model server: lengths in a file, or rate=8/s,prompt=512..4096,output=256,count=1000",
         .target = &question.traffic},
        {.name = "route",
         .kind = ARGS_STRING,
         .value = "balanced|worst|FILE",
         .help = "which experts a mixture of experts chooses: all alike, the first ones only, or by the shares in a file, EXPERT SHARE "
                 "in each line",
         .target = &question.route},
        {.name = "write-plan",
         .kind = ARGS_STRING,
         .value = "FOLDER",
         .help = "write a plan that the engine uses at its next start instead of measuring, if it served all of --requests",
         .target = &question.plan_folder},
        {.name = "dummy-weights",
         .kind = ARGS_FLAG,
         .help =
             "generate dummy weights, so that models of transformers and diffusers and GGUF files need only their configuration or header",
         .target = &question.dummy_weights},
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "keep the recording of the rank that needs the most memory (vram view FILE); in a folder, those of all ranks that ran",
         .target = &question.output},
        {.name = "set",
         .kind = ARGS_STRING,
         .value = "KEY=VALUE,...",
         .help = "further settings of the simulator (docs/guides/simulator.md)",
         .target = &question.more},
        SIM_VALUES_OPTIONS(&question.values),
        {.name = "quiet",
         .letter = 'q',
         .kind = ARGS_FLAG,
         .help = "show the program's output only if it fails",
         .target = &question.quiet},
        {.name = "json", .kind = ARGS_FLAG, .help = "one JSON object; keys in docs/reference/json.md", .target = &question.json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "fit",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary = "Says whether a program fits into a GPU's memory, without a GPU. The program runs on a simulated device, which "
                   "computes\nnothing but allocates the same memory as a real one, until its steps repeat. vram then shows how much memory "
                   "it needs,\nwhat holds it, on which cards it fits, and where it runs out on the others. The program's output goes to "
                   "standard error.\nExit code 1 if it does not fit on one of the given cards or if that is not sure, 3 if the program "
                   "fails for another reason.\nWith --vary: 0 if one of the variants fits, 1 if none does, 3 at the first run that fails; "
                   "--search "
                   "ends with 3 if all fail or it is interrupted.",
        .examples = "  vram fit -- python train.py\n"
                    "  vram fit --card rtx4090,a100-40 -- python train.py --batch-size 8\n"
                    "  vram fit --all --json -- torchrun --nproc-per-node 8 train.py\n"
                    "  vram fit --card rtx4090 --vary '--batch-size=16,8,4' -q -- python train.py --batch-size 16\n"
                    "  vram fit --search --vary --tp=1,2,4 --vary --mbs=1,2,4 --vary --ckpt --work 'mbs*4096' -- python train.py\n"
                    "  vram fit --requests rate=8/s,prompt=512..4096,output=256 -- vllm serve ./model\n"
                    "  vram fit --memory 22GiB -q -- python train.py   # in CI: exit code 1 when it needs more\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a program (after --)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!settle_devices(&question)) return CLI_USAGE;
    if (!settle_time(question.seconds, &question.most_seconds)) return usage_problem("--for takes a time: 90s, 5m, 1h");
    if (!settle_time(question.budget, &question.budget_seconds)) return usage_problem("--budget takes a time: 90s, 15m, 1h");
    if (!are_steps(question.steps)) return usage_problem("--steps takes a number from 1 on, auto or all");
    if (strcmp(question.steps, "all") == 0) question.steps = "0";
    code = sim_values_put("fit", &question.values);
    if (code != CLI_OK) return code;
    if (!sim_values_compute(&question.values)) ui_say("vram fit: cannot set the program's environment: %s", strerror(errno));
    argv[1 + count] = NULL;
    if (question.devices_asked == SIM_UNSET)
        question.devices_asked = 0;
    else if (question.devices_asked < 1 || question.devices_asked > VRAM_SIM_MOST_DEVICES)
        return usage_problem("--devices takes 1 to 64");
    if (question.limit_bytes < (uint64_t)1 << 20) return usage_problem("--memory takes 1MiB or more");
    const char *wrong = contradiction(&question);
    if (wrong != NULL) return usage_problem(wrong);
    if (!settle_simulator(&question) || !settle_files(&question)) return CLI_USAGE;
    if (!settle_requests(&question) || !fit_route_settle(question.route, getenv("VRAM_SIM_COMPUTE") != NULL)) return CLI_USAGE;
    code = answer_all(&question, argv + 1);
    fit_requests_release(&question.requests);
    return code;
}
