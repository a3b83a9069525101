// fit_json.c: the answer of `vram fit` as one JSON object. Its lists of facts are those of docs/reference/json.md.
#include "output.h"
#include "fit_print.h"
#include "fit_doubt.h"
#include "fit_failure.h"
#include "fit_kinds.h"
#include "base/json_rows.h"
#include "vram/roles.h"

#define FIT_OOM_FACTS(X)                                                                                                                   \
    X(U64, "step", it->step, ALWAYS, "step, from 1; 0: no steps")                                                                          \
    X(U64, "requested_bytes", it->requested_bytes, ALWAYS, "bytes of the request that fails")                                              \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "bytes of blocks in use")                                                       \
    X(U64, "cached_bytes", it->cached_bytes, ALWAYS, "bytes of free blocks")                                                               \
    X(U64, "largest_free_bytes", it->largest_free_bytes, ALWAYS, "bytes of the largest of them")                                           \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "memory available to the allocator")                                                      \
    X(TEXT, "site", it->site, ALWAYS, "call site of the request")

static void put_oom(struct vr_json *json, const char *name, const struct fit_oom *it) {
    vr_json_object(json, name);
    FIT_OOM_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_CARD_FACTS(X)                                                                                                                  \
    X(TEXT, "key", it->model.key, ALWAYS, "name, as in `--card`")                                                                          \
    X(TEXT, "name", it->model.name, ALWAYS, "the vendor's name for it")                                                                    \
    X(BOOL, "asked", it->asked, ALWAYS, "given on the command line")                                                                       \
    X(BOOL, "fits", it->fits, NULL_UNLESS(!it->unsure), "it fits; null: not sure (`failure`, `unsure_because`)")                           \
    X(TEXT, "by", fit_method_names[it->method], ALWAYS,                                                                                    \
      "`run`, `peak`, `replay`, `share`; `other`: from a run on a card of another generation, because the program failed on this one; "    \
      "`no_kernels`: the "                                                                                                                 \
      "same, because the program's PyTorch has no kernels for this one")                                                                   \
    X(U64, "memory_bytes", it->model.memory_bytes, ALWAYS, "its memory")                                                                   \
    X(BOOL, "memory_estimated", fit_memory_is_estimated(&it->model), ALWAYS,                                                               \
      "true: the memory is estimated, not from a log of a real card")                                                                      \
    X(U64, "context_bytes", it->model.context_bytes, ALWAYS, "bytes of a program's context on this card")                                  \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "memory available to the allocator")                                                      \
    X(U64, "need_bytes", it->need_bytes, ALWAYS, "highest sum of reserved memory, context, libraries and other processes on the device")   \
    X(U64, "retries", it->retries, ALWAYS, "releases of the whole cache on this card")                                                     \
    X(OBJECT, "out_of_memory", put_oom(json, key, &it->oom), NULL_UNLESS(it->oom.known), "the out-of-memory error (see below)")

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
    X(U64, "ordinal", it->ordinal, ALWAYS, "number of the device in the process")                                                          \
    X(TEXT, "recorded_by", it->process->whole_program ? "vram run" : "pytorch", ALWAYS, "`pytorch` or `vram run`")                         \
    X(TEXT, "torch", it->process->torch, ALWAYS, "version of PyTorch")                                                                     \
    X(U64, "steps", it->process->steps, ALWAYS, "number of observed steps")                                                                \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "peak of blocks in use")                                                        \
    X(U64, "reserved_bytes", it->reserved_bytes, ALWAYS, "peak of reserved memory")                                                        \
    X(U64, "outside_bytes", it->outside_bytes, ALWAYS, "bytes of context and libraries")                                                   \
    X(U64, "ooms", it->ooms, ALWAYS, "number of failed requests")                                                                          \
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

#define FIT_CONTEXT_FACTS(X)                                                                                                               \
    X(U64, "rank", it->process->rank, ALWAYS, "rank of the process")                                                                       \
    X(U64, "ordinal", it->ordinal, ALWAYS, "number of the device in the simulator")                                                        \
    X(U64, "outside_bytes", it->outside_bytes, ALWAYS, "bytes of context and libraries")

static void put_contexts(struct vr_json *json, const char *name, const struct fit_run *run) {
    vr_json_array(json, name);
    for (const struct fit_context *it = run->contexts; it < run->contexts + run->context_count; it++) {
        vr_json_object(json, NULL);
        FIT_CONTEXT_FACTS(VR_FACT_JSON)
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
    X(U64, "fixed_bytes", it->fixed_bytes, ALWAYS, "bytes of the peak that do not scale with the batch")                                   \
    X(U64, "varying_bytes", it->varying_bytes, ALWAYS, "bytes of the peak that scale with the batch")                                      \
    X(NUMBER, "share", answer_json_decimal(json, key, it->share, 2), ALWAYS, "fraction of the batch that fits")                            \
    X(TEXT, "argument", it->argument, ALWAYS, "program argument that changes the peak; empty: none")                                       \
    X(U64, "value", it->value, ALWAYS, "its value")                                                                                        \
    X(U64, "about", it->about, ALWAYS, "approximate value that may fit")                                                                   \
    X(BOOL, "tried", it->tried, ALWAYS, "found by running with half of the value")

static void put_batch(struct vr_json *json, const char *name, const struct fit_batch *it) {
    vr_json_object(json, name);
    FIT_BATCH_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static const char *card_key(const struct fit_card *card, const char *otherwise) { return card == NULL ? otherwise : card->model.key; }

#define FIT_SMALLER_FACTS(X)                                                                                                               \
    X(TEXT, "card", card_key(it->card, NULL), ALWAYS, "key of the card; null: the limit of `--memory`")                                    \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "memory available to the allocator")                                                      \
    X(BOOL, "tried", it->tried, ALWAYS, "true: settings were replayed")                                                                    \
    X(TEXT, "conf", it->conf, NULL_UNLESS(it->found), "the setting that makes it fit; null: no setting does")                              \
    X(OBJECT, "batch", put_batch(json, key, &answer->batch), NULL_UNLESS(answer->batch.known),                                             \
      "effect of a smaller batch, if no setting helps (see below)")                                                                        \
    X(ARRAY, "remedies", fit_remedies_json(json, key, &answer->remedies), NULL_UNLESS(answer->remedies.demand != NULL),                    \
      "changes to the program, if no setting helps, as in the report of the same peak (see below); null: not computed")

static void put_smaller(struct vr_json *json, const char *name, const struct fit_answer *answer) {
    const struct fit_setting *it = &answer->setting;
    vr_json_object(json, name);
    FIT_SMALLER_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_CALLED_FACTS(X)                                                                                                                \
    X(TEXT, "name", it->function, ALWAYS, "the function")                                                                                  \
    X(TEXT, "library", it->library, ALWAYS, "library of the function; for an assumed size, `size`")                                        \
    X(U64, "calls", it->count, ALWAYS, "number of calls")                                                                                  \
    X(U64, "stake_bytes", it->bytes, ALWAYS, "for an assumed size: its upper bound; 0: not known")

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
    X(U64, "calls", it->calls, ALWAYS, "number of these reads")                                                                            \
    X(TEXT, "place", it->text, ALWAYS, "stack frames, one per line")                                                                       \
    X(TEXT, "operation", it->operation, NULL_IF_EMPTY, "PyTorch's operation, such as `nonzero`; null: not known")

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
    X(U64, "reserved_bytes", it->reserved_bytes, ALWAYS, "reserved bytes in that run")                                                     \
    X(U64, "allocated_bytes", it->allocated_bytes, ALWAYS, "allocated bytes in that run")                                                  \
    X(BOOL, "finished", it->finished, ALWAYS, "true: it ended like the first run")

static void put_stake(struct vr_json *json, const char *name, const struct fit_stake *it) {
    vr_json_object(json, name);
    FIT_STAKE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define FIT_ENDING_FACTS(X)                                                                                                                \
    X(TEXT, "ended", fit_ending_names[it->ending], ALWAYS,                                                                                 \
      "`end`, `repeats`, `calls`, `ready`, `served`, `played`, `plateau` (no new peak), "                                                  \
      "`steps`, `until`, `time`, `oom`, `interrupted`, `refused` (it cannot run with some of its ranks only), `hangs` (a rank would wait " \
      "forever for another), `absent` (a rank ended before it joined the others) or `failed`")                                             \
    X(I64, "exit_code", it->exit_code, ALWAYS, "exit code of the program")                                                                 \
    X(U64, "steps", it->steps, ALWAYS, "number of observed steps")

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
    if (run->more_devices == 0)
        vr_json_null(json, "more_devices");
    else
        vr_json_u64(json, "more_devices", run->more_devices);
    vr_json_array(json, "cards");
    vr_json_array_end(json);
    vr_json_array(json, "holdings");
    vr_json_array_end(json);
    vr_json_object_end(json);
    return answer_json_end(&answer, answers);
}

#define FIT_NEED_FACTS(X)                                                                                                                  \
    X(BOOL, "fits", answer->fits, NULL_UNLESS(!answer->unsure),                                                                            \
      "fits on every given card; with `--memory`, within that limit; null: not sure (`failure`, `unsure_because`)")                        \
    X(TEXT, "unsure_because", fit_doubt_text(answer, (char[2000]){""}, 2000), ALWAYS,                                                      \
      "why it is not sure for one of the given cards; null: it is sure, or the program failed")                                            \
    X(U64, "need_bytes", fit_need_bytes(it), ALWAYS,                                                                                       \
      "memory needed on a device like the one of the run: highest sum of reserved memory, context, libraries and `others_bytes`; if the "  \
      "program failed: until then")                                                                                                        \
    X(U64, "need_most_bytes", fit_need_bytes(it) + answer->stake_bytes, ALWAYS, "the same including the data-dependent bytes")             \
    X(U64, "allocated_bytes", it->highest->allocated_bytes, ALWAYS,                                                                        \
      "allocated peak of the largest allocator; without PyTorch, peak of allocations from the driver")                                     \
    X(U64, "reserved_bytes", it->highest->reserved_bytes, ALWAYS, "peak of its reserved memory")                                           \
    X(U64, "context_bytes", it->highest->outside_bytes - it->library_bytes, ALWAYS, "the context")                                         \
    X(U64, "library_bytes", it->library_bytes, ALWAYS, "bytes held by libraries, and by the driver for graphs and large stacks")           \
    X(U64, "others_bytes", it->others_bytes, ALWAYS, "bytes of the device held by other processes at the same time")                       \
    X(TEXT, "went_on", fit_went_on_text(answer->run, (char[2000]){""}, 2000), ALWAYS,                                                      \
      "what the program went on after: a thread or process of it that failed, or memory errors that it caught; null: neither")             \
    X(TEXT, "free_memory_read", fit_free_read(answer->run), ALWAYS,                                                                        \
      "call site where the program first read how much memory is free: on other cards it may need another amount; null: none")             \
    X(U64, "smallest_bytes", it->smallest_bytes, NULL_UNLESS(fit_is_general(answer->run)),                                                 \
      "smallest device memory in which it completes, to 2 MiB; null: the program failed, `went_on` is not null, or a rank fell behind")    \
    X(U64, "smallest_retries", it->smallest_retries, NULL_UNLESS(fit_is_general(answer->run)), "releases of the cache in that memory")

static void put_need(struct vr_json *json, const struct fit_answer *answer) {
    const struct fit_verdict *it = answer->verdict;
    FIT_NEED_FACTS(VR_FACT_JSON)
}

#define FIT_RUN_FACTS(X)                                                                                                                   \
    X(U64, "limit_bytes", it->limit_bytes, NULL_UNLESS(it->limit_bytes != UINT64_MAX), "`--memory`; null without that option")             \
    X(TEXT, "ran_on", it->verdict->ran_on.key, ALWAYS, "the card of the run")

#define FIT_TIME_FACTS(X)                                                                                                                  \
    X(NUMBER, "seconds", answer_json_decimal(json, key, it->run->seconds, 1), ALWAYS, "time of the run")                                   \
    X(TEXT, "smallest_card", card_key(it->verdict->smallest_card, ""), ALWAYS, "key of the smallest card that fits, or empty")             \
    X(TEXT, "varied", it->varied, ALWAYS, "the argument in this run, or null")

#define FIT_ANSWER_FACTS(X)                                                                                                                \
    X(MAP, "roles", put_roles(json, key, verdict), ALWAYS, "requested bytes that were live at the peak, by role; null without PyTorch")    \
    X(OBJECT, "serving", fit_serving_json(json, key, &it->serving, verdict), NULL_UNLESS(it->serving.any),                                 \
      "facts about a served model (see below); null: no KV cache")                                                                         \
    X(OBJECT, "played", fit_played_json(json, key, &run->played, &it->serving, verdict), NULL_UNLESS(run->played.any),                     \
      "what the server did with the requests of `--requests` (see below); null: no requests were played")                                  \
    X(OBJECT, "smaller", put_smaller(json, key, it), NULL_UNLESS(it->setting.any),                                                         \
      "the largest given card that is too small, else the next smaller card (see below); null: it fits on all")                            \
    X(ARRAY, "not_known", put_called(json, key, run->sizes, run->size_count), ALWAYS, "sizes that were assumed (see below)")               \
    X(ARRAY, "not_simulated", put_called(json, key, run->missing, run->missing_count), ALWAYS,                                             \
      "functions that are not simulated (see below)")                                                                                      \
    X(TEXT, "not_reached", fit_unreached_module(run), ALWAYS,                                                                              \
      "file of a module that contains NVIDIA's runtime and therefore found no device, or null. Also set if the program left no recording") \
    X(ARRAY, "reads", put_reads(json, key, run), ALWAYS, "places where the program reads kernel results (see below)")                      \
    X(OBJECT, "at_stake", put_stake(json, key, &it->stake), NULL_UNLESS(it->stake.tried),                                                  \
      "a second run in which `nonzero()`, masks and `unique()` found all elements (see below); null: the program read no such values, or " \
      "`--nonzero` "                                                                                                                       \
      "set their number")                                                                                                                  \
    X(TEXT, "no_kernels", it->unrunnable, ALWAYS,                                                                                          \
      "requested card for which PyTorch has no kernels, so the program ran on `ran_on`; null: no such card")                               \
    X(U64, "ranks", it->fold->ranks == 0 ? (uint64_t)run->process_count : it->fold->ranks, ALWAYS,                                         \
      "number of ranks; more than in `holdings` if only some ran")                                                                         \
    X(TEXT, "machines_range", fit_launcher_range_text(&it->fold->launcher, (char[200]){""}, 200), ALWAYS,                                  \
      "which number of machines was taken of a range, such as torchrun's `--nnodes 1:4`; null: no range")                                  \
    X(OBJECT, "route", fit_route_json(json, key, run), NULL_UNLESS(fit_route_asked()),                                                     \
      "how `--route` chose experts (see below); null: the option was not given")                                                           \
    X(ARRAY, "kinds", fit_kinds_json(json, key, it), ALWAYS,                                                                               \
      "kinds of ranks that `--fold auto` found (see below); empty: no group whose members send messages")                                  \
    X(TEXT, "highest_kind", fit_kinds_text(it, (char[800]){""}, 800), ALWAYS,                                                              \
      "which kind needs the most, and what it holds at its peak that the smallest does not; null: not known")                              \
    X(ARRAY, "cards", put_cards(json, key, verdict), ALWAYS, "every known card, by memory (see below)")                                    \
    X(U64, "more_devices", run->more_devices, NULL_UNLESS(run->more_devices != 0),                                                         \
      "number of devices to try with `--devices`, because the job has more ranks than it saw devices; null: none")                         \
    X(ARRAY, "contexts", put_contexts(json, key, run), ALWAYS,                                                                             \
      "processes with a context on a device on which they allocated nothing; they count as others of that device (see below)")             \
    X(ARRAY, "holdings", put_holdings(json, key, run), ALWAYS, "one object per process and device (see below)")

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
