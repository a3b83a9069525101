// fit_json.c: the answer of `vram fit` as one JSON object. Its lists of facts are the tables of docs/reference/json.md.
#include "output.h"
#include "fit_print.h"
#include "fit_failure.h"
#include "base/json_rows.h"
#include "vram/roles.h"

#define FIT_OOM_FACTS(X)                                                                                                                   \
    X(U64, "step", it->step, ALWAYS, "from 1; 0: there are no steps")                                                                      \
    X(U64, "requested_bytes", it->requested_bytes, ALWAYS, "the request that fails")                                                       \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "blocks in use then")                                                           \
    X(U64, "cached_bytes", it->cached_bytes, ALWAYS, "free blocks then")                                                                   \
    X(U64, "largest_free_bytes", it->largest_free_bytes, ALWAYS, "the largest of them")                                                    \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "for the allocator")                                                                      \
    X(TEXT, "site", it->site, ALWAYS, "the call site of the request")

static void put_oom(struct vr_json *json, const char *name, const struct fit_oom *it) {
    vr_json_object(json, name);
    FIT_OOM_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_CARD_FACTS(X)                                                                                                                  \
    X(TEXT, "key", it->model.key, ALWAYS, "as `--card` has it")                                                                            \
    X(TEXT, "name", it->model.name, ALWAYS, "the vendor's name")                                                                           \
    X(BOOL, "asked", it->asked, ALWAYS, "asked for on the command line")                                                                   \
    X(BOOL, "fits", it->fits, NULL_UNLESS(!it->unsure), "it fits; null: not sure, for the program failed, or data-dependent sizes decide") \
    X(TEXT, "by", fit_method_names[it->method], ALWAYS,                                                                                    \
      "`run`, `peak`, `replay`, `share`; `other`: by a run on a card of another generation, for the program failed on this one; "          \
      "`no_kernels`: the "                                                                                                                 \
      "same, for the program's PyTorch has no kernels for this one")                                                                       \
    X(U64, "memory_bytes", it->model.memory_bytes, ALWAYS, "its memory")                                                                   \
    X(BOOL, "memory_estimated", fit_memory_is_estimated(&it->model), ALWAYS, "no log of a real card gives its memory")                     \
    X(U64, "context_bytes", it->model.context_bytes, ALWAYS, "the context of a program there")                                             \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "for the allocator")                                                                      \
    X(U64, "need_bytes", it->need_bytes, ALWAYS, "reserved, context and libraries at most")                                                \
    X(U64, "retries", it->retries, ALWAYS, "releases of the whole cache there")                                                            \
    X(OBJECT, "out_of_memory", put_oom(json, key, &it->oom), NULL_UNLESS(it->oom.known), "where memory runs out: below")

static void put_cards(struct vr_json *json, const char *name, const struct fit_verdict *verdict) {
    vr_json_array(json, name);
    for (size_t i = 0; i < verdict->card_count; i++) {
        const struct fit_card *it = &verdict->cards[i];
        vr_json_object(json, NULL);
        FIT_CARD_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FIT_HOLDING_FACTS(X)                                                                                                               \
    X(U64, "rank", it->process->rank, ALWAYS, "rank of the process")                                                                       \
    X(U64, "device", it->device, ALWAYS, "number of the device")                                                                           \
    X(U64, "ordinal", it->ordinal, ALWAYS, "its number in the process")                                                                    \
    X(TEXT, "recorded_by", it->process->whole_program ? "vram run" : "pytorch", ALWAYS, "`pytorch` or `vram run`")                         \
    X(TEXT, "torch", it->process->torch, ALWAYS, "version of PyTorch")                                                                     \
    X(U64, "steps", it->process->steps, ALWAYS, "steps seen")                                                                              \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "peak of blocks in use")                                                        \
    X(U64, "reserved_bytes", it->reserved_bytes, ALWAYS, "peak of memory held from the driver")                                            \
    X(U64, "outside_bytes", it->outside_bytes, ALWAYS, "context and libraries")                                                            \
    X(U64, "ooms", it->ooms, ALWAYS, "requests that failed")                                                                               \
    X(U64, "retries", it->retries, ALWAYS, "releases of the whole cache")

static void put_holdings(struct vr_json *json, const char *name, const struct fit_run *run) {
    vr_json_array(json, name);
    for (size_t i = 0; i < run->holding_count; i++) {
        const struct fit_holding *it = &run->holdings[i];
        vr_json_object(json, NULL);
        FIT_HOLDING_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_roles(struct vr_json *json, const char *key, const struct fit_verdict *verdict) {
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    if (verdict->highest->process->whole_program || vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) {
        vr_json_null(json, key);
        return;
    }
    vr_json_object(json, key);
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) vr_json_u64(json, vram_role_word(role), roles->at_peak[role].bytes);
    vr_json_object_end(json);
    vram_roles_destroy(roles);
}

#define FIT_BATCH_FACTS(X)                                                                                                                 \
    X(U64, "fixed_bytes", it->fixed_bytes, ALWAYS, "of the peak: what does not scale with the batch")                                      \
    X(U64, "varying_bytes", it->varying_bytes, ALWAYS, "of the peak: what scales with the batch")                                          \
    X(NUMBER, "share", answer_json_decimal(json, key, it->share, 2), ALWAYS, "of the batch for which there is room")                       \
    X(TEXT, "argument", it->argument, ALWAYS, "argument of the program that changes the peak; empty: none")                                \
    X(U64, "value", it->value, ALWAYS, "its value")                                                                                        \
    X(U64, "about", it->about, ALWAYS, "about what value may fit")                                                                         \
    X(BOOL, "tried", it->tried, ALWAYS, "found by runs with half of the value")

static void put_batch(struct vr_json *json, const char *name, const struct fit_batch *it) {
    vr_json_object(json, name);
    FIT_BATCH_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static const char *card_key(const struct fit_card *card, const char *otherwise) { return card == NULL ? otherwise : card->model.key; }

#define FIT_SMALLER_FACTS(X)                                                                                                               \
    X(TEXT, "card", card_key(it->card, NULL), ALWAYS, "key of the card; null: the limit")                                                  \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "for the allocator")                                                                      \
    X(BOOL, "tried", it->tried, ALWAYS, "settings were replayed")                                                                          \
    X(TEXT, "conf", it->conf, NULL_UNLESS(it->found), "the setting that makes it fit; null: none does")                                    \
    X(OBJECT, "batch", put_batch(json, key, &answer->batch), NULL_UNLESS(answer->batch.known),                                             \
      "what a smaller batch would do, where no setting helps: below")                                                                      \
    X(ARRAY, "remedies", fit_remedies_json(json, key, &answer->remedies), NULL_UNLESS(answer->remedies.demand != NULL),                    \
      "where no setting helps, what the program could change, as the report of the same peak has it: below; null: not asked")

static void put_smaller(struct vr_json *json, const char *name, const struct fit_answer *answer) {
    const struct fit_setting *it = &answer->setting;
    vr_json_object(json, name);
    FIT_SMALLER_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_CALLED_FACTS(X)                                                                                                                \
    X(TEXT, "name", it->function, ALWAYS, "the function")                                                                                  \
    X(TEXT, "library", it->library, ALWAYS, "its library; of a guessed size `size`")                                                       \
    X(U64, "calls", it->count, ALWAYS, "how often it was called")                                                                          \
    X(U64, "stake_bytes", it->bytes, ALWAYS, "what one of them may come to, as far as the library says; 0: not known")

static void put_called(struct vr_json *json, const char *name, const struct sim_wanted *rows, size_t count) {
    vr_json_array(json, name);
    for (const struct sim_wanted *it = rows; it < rows + count; it++) {
        vr_json_object(json, NULL);
        FIT_CALLED_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FIT_READ_FACTS(X)                                                                                                                  \
    X(U64, "calls", it->calls, ALWAYS, "how often")                                                                                        \
    X(TEXT, "place", it->text, ALWAYS, "frames, a line each")                                                                              \
    X(TEXT, "operation", it->operation, NULL_IF_EMPTY, "PyTorch's, as `nonzero`; null: none is known")

static void put_reads(struct vr_json *json, const char *name, const struct fit_run *run) {
    vr_json_array(json, name);
    for (size_t i = 0; i < run->read_count; i++) {
        const struct sim_read_place *it = &run->reads[i];
        vr_json_object(json, NULL);
        FIT_READ_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FIT_STAKE_FACTS(X)                                                                                                                 \
    X(U64, "reserved_bytes", it->reserved_bytes, ALWAYS, "held from the driver in that run")                                               \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "allocated in that run")                                                        \
    X(BOOL, "finished", it->finished, ALWAYS, "it ended as the first run did")

static void put_stake(struct vr_json *json, const char *name, const struct fit_stake *it) {
    vr_json_object(json, name);
    FIT_STAKE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_ENDING_FACTS(X)                                                                                                                \
    X(TEXT, "ended", fit_ending_names[it->ending], ALWAYS,                                                                                 \
      "`end`, `repeats`, `calls`, `ready`, `served`, `played`, `stands` (ten steps with the same peak, or 100 without a new one), "        \
      "`steps`, `until`, `time`, `oom`, "                                                                                                  \
      "`interrupted` or "                                                                                                                  \
      "`failed`")                                                                                                                          \
    X(I64, "exit_code", it->exit_code, ALWAYS, "of the program")                                                                           \
    X(U64, "steps", it->steps, ALWAYS, "steps seen")

static void put_ending(struct vr_json *json, const struct fit_run *it) { FIT_ENDING_FACTS(VR_FACT_JSON) }

int fit_json_nothing(const struct fit_run *run, const char *varied, struct answers *answers) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_null(json, "fits");
    vr_json_null(json, "need_bytes");
    vr_json_u64(json, "least_bytes", run->least_bytes);
    fit_failure_json(json, run);
    put_ending(json, run);
    vr_json_string(json, "varied", varied);
    vr_json_string(json, "not_reached", fit_unreached_module(run));
    vr_json_array(json, "cards");
    vr_json_array_end(json);
    vr_json_array(json, "holdings");
    vr_json_array_end(json);
    vr_json_object_end(json);
    return answer_json_end(&answer, answers);
}

#define FIT_NEED_FACTS(X)                                                                                                                  \
    X(BOOL, "fits", answer->fits, NULL_UNLESS(!answer->unsure),                                                                            \
      "on every card that was asked for; with `--memory`, within it; null: not sure, for the program failed, or data-dependent sizes "     \
      "decide")                                                                                                                            \
    X(U64, "need_bytes", fit_need_bytes(it), ALWAYS,                                                                                       \
      "of a device like the one it ran on: reserved, context and libraries at most; of a program that failed: until then")                 \
    X(U64, "need_most_bytes", fit_need_bytes(it) + answer->stake_bytes, ALWAYS, "the same with the data-dependent bytes")                  \
    X(U64, "allocated_bytes", it->highest->allocated_bytes, ALWAYS,                                                                        \
      "peak of the allocator that held the most; of a program without PyTorch what it allocated at the driver")                            \
    X(U64, "reserved_bytes", it->highest->reserved_bytes, ALWAYS, "peak of what it held from the driver")                                  \
    X(U64, "context_bytes", it->highest->outside_bytes - it->library_bytes, ALWAYS, "the context")                                         \
    X(U64, "library_bytes", it->library_bytes, ALWAYS, "what libraries held")                                                              \
    X(U64, "smallest_bytes", it->smallest_bytes, NULL_UNLESS(!fit_run_failed(answer->run)),                                                \
      "the least memory of a device in which it completes, to 2 MiB; null: the program failed")                                            \
    X(U64, "smallest_retries", it->smallest_retries, NULL_UNLESS(!fit_run_failed(answer->run)), "releases of the cache there")

static void put_need(struct vr_json *json, const struct fit_answer *answer) {
    const struct fit_verdict *it = answer->verdict;
    FIT_NEED_FACTS(VR_FACT_JSON)
}

#define FIT_RUN_FACTS(X)                                                                                                                   \
    X(U64, "limit_bytes", it->limit_bytes, NULL_UNLESS(it->limit_bytes != UINT64_MAX), "`--memory`; null without")                         \
    X(TEXT, "ran_on", it->verdict->ran_on.key, ALWAYS, "the card of the run")

#define FIT_TIME_FACTS(X)                                                                                                                  \
    X(NUMBER, "seconds", answer_json_decimal(json, key, it->run->seconds, 1), ALWAYS, "time of the run")                                   \
    X(TEXT, "smallest_card", card_key(it->verdict->smallest_card, ""), ALWAYS, "key of the smallest card that it fits, or empty")          \
    X(TEXT, "varied", it->varied, ALWAYS, "the argument as it was in this run, or null")

#define FIT_ANSWER_FACTS(X)                                                                                                                \
    X(MAP, "roles", put_roles(json, key, verdict), ALWAYS,                                                                                 \
      "bytes that the program asked for and that were live at the peak, by role; null without PyTorch")                                    \
    X(OBJECT, "serving", fit_serving_json(json, key, &it->serving, verdict), NULL_UNLESS(it->serving.any),                                 \
      "a model that is served: below; null: no KV cache")                                                                                  \
    X(OBJECT, "played", fit_played_json(json, key, &run->played, &it->serving), NULL_UNLESS(run->played.any),                              \
      "what the server did with the requests of `--requests`: below; null: no requests were played")                                       \
    X(OBJECT, "smaller", put_smaller(json, key, it), NULL_UNLESS(it->setting.any),                                                         \
      "the largest card asked for that is too small, else the next smaller one: below; null: it fits on all")                              \
    X(ARRAY, "not_known", put_called(json, key, run->sizes, run->size_count), ALWAYS, "sizes that were guessed: below")                    \
    X(ARRAY, "not_simulated", put_called(json, key, run->missing, run->missing_count), ALWAYS, "functions that are not simulated: below")  \
    X(TEXT, "not_reached", fit_unreached_module(run), ALWAYS,                                                                              \
      "the file of a module that has NVIDIA's runtime linked into it and so found no device, or null. Of a program that left no "          \
      "recording, too")                                                                                                                    \
    X(ARRAY, "reads", put_reads(json, key, run), ALWAYS, "where the program reads what a kernel would have computed: below")               \
    X(OBJECT, "at_stake", put_stake(json, key, &it->stake), NULL_UNLESS(it->stake.tried),                                                  \
      "of a second run, in which `nonzero()`, masks and `unique()` found all: below; null: nothing of the kind was read, or `--nonzero` "  \
      "set how many")                                                                                                                      \
    X(TEXT, "no_kernels", it->unrunnable, ALWAYS,                                                                                          \
      "a card on which it was to run, and for which PyTorch has no kernels: it ran on `ran_on`; null: none")                               \
    X(U64, "ranks", it->fold->ranks == 0 ? (uint64_t)run->process_count : it->fold->ranks, ALWAYS,                                         \
      "number of ranks; with `--fold` more than `holdings` has")                                                                           \
    X(ARRAY, "cards", put_cards(json, key, verdict), ALWAYS, "every known card, by memory: below")                                         \
    X(ARRAY, "holdings", put_holdings(json, key, run), ALWAYS, "one object per process and device: below")

int fit_json_answer(const struct fit_answer *it, struct answers *answers) {
    const struct fit_verdict *verdict = it->verdict;
    const struct fit_run *run = it->run;
    struct answer_json made;
    struct vr_json *json = answer_json_begin(&made);
    vr_json_object(json, NULL);
    put_need(json, it);
    fit_failure_json(json, run);
    FIT_RUN_FACTS(VR_FACT_JSON)
    put_ending(json, run);
    FIT_TIME_FACTS(VR_FACT_JSON)
    FIT_ANSWER_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
    return answer_json_end(&made, answers);
}
