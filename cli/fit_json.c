// fit_json.c: the answer of `vram fit` as one JSON object. Keys: docs/reference/json.md.
#include "output.h"
#include "fit_print.h"
#include "fit_failure.h"
#include "vram/roles.h"

// What is not sure is null.
static void put_truth(struct vr_json *json, const char *key, bool truth, bool unsure) {
    if (unsure)
        vr_json_null(json, key);
    else
        vr_json_bool(json, key, truth);
}

// "" is null.
static void put_text(struct vr_json *json, const char *key, const char *text) {
    vr_json_string(json, key, text == NULL || text[0] == '\0' ? NULL : text);
}

static void put_oom(struct vr_json *json, const struct fit_oom *oom) {
    if (!oom->known) {
        vr_json_null(json, "out_of_memory");
        return;
    }
    vr_json_object(json, "out_of_memory");
    vr_json_u64(json, "step", oom->step);
    vr_json_u64(json, "requested_bytes", oom->requested_bytes);
    vr_json_u64(json, "allocated_bytes", oom->allocated_bytes);
    vr_json_u64(json, "cached_bytes", oom->cached_bytes);
    vr_json_u64(json, "largest_free_bytes", oom->largest_free_bytes);
    vr_json_u64(json, "room_bytes", oom->room_bytes);
    vr_json_string(json, "site", oom->site);
    vr_json_object_end(json);
}

static void put_card(struct vr_json *json, const struct fit_card *card) {
    vr_json_object(json, NULL);
    vr_json_string(json, "key", card->model.key);
    vr_json_string(json, "name", card->model.name);
    vr_json_bool(json, "asked", card->asked);
    put_truth(json, "fits", card->fits, card->unsure);
    vr_json_string(json, "by", fit_method_names[card->method]);
    vr_json_u64(json, "memory_bytes", card->model.memory_bytes);
    vr_json_bool(json, "memory_estimated", fit_memory_is_estimated(&card->model));
    vr_json_u64(json, "context_bytes", card->model.context_bytes);
    vr_json_u64(json, "room_bytes", card->room_bytes);
    vr_json_u64(json, "need_bytes", card->need_bytes);
    vr_json_u64(json, "retries", card->retries);
    put_oom(json, &card->oom);
    vr_json_object_end(json);
}

static void put_holding(struct vr_json *json, const struct fit_holding *holding) {
    vr_json_object(json, NULL);
    vr_json_u64(json, "rank", holding->process->rank);
    vr_json_u64(json, "device", holding->device);
    vr_json_u64(json, "ordinal", holding->ordinal);
    vr_json_string(json, "recorded_by", holding->process->whole_program ? "vram run" : "pytorch");
    vr_json_string(json, "torch", holding->process->torch);
    vr_json_u64(json, "steps", holding->process->steps);
    vr_json_u64(json, "allocated_bytes", holding->allocated_bytes);
    vr_json_u64(json, "reserved_bytes", holding->reserved_bytes);
    vr_json_u64(json, "outside_bytes", holding->outside_bytes);
    vr_json_u64(json, "ooms", holding->ooms);
    vr_json_u64(json, "retries", holding->retries);
    vr_json_object_end(json);
}

static void put_roles(struct vr_json *json, const struct fit_verdict *verdict) {
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    if (verdict->highest->process->whole_program || vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) {
        vr_json_null(json, "roles");
        return;
    }
    vr_json_object(json, "roles");
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) vr_json_u64(json, vram_role_word(role), roles->at_peak[role].bytes);
    vr_json_object_end(json);
    vram_roles_destroy(roles);
}

static void put_batch(struct vr_json *json, const struct fit_batch *batch) {
    if (!batch->known) {
        vr_json_null(json, "batch");
        return;
    }
    vr_json_object(json, "batch");
    vr_json_u64(json, "fixed_bytes", batch->fixed_bytes);
    vr_json_u64(json, "varying_bytes", batch->varying_bytes);
    answer_json_decimal(json, "share", batch->share, 2);
    vr_json_string(json, "argument", batch->argument);
    vr_json_u64(json, "value", batch->value);
    vr_json_u64(json, "about", batch->about);
    vr_json_bool(json, "tried", batch->tried);
    vr_json_object_end(json);
}

static void put_setting(struct vr_json *json, const struct fit_setting *setting, const struct fit_batch *batch,
                        const struct fit_remedies *remedies) {
    if (!setting->any) {
        vr_json_null(json, "smaller");
        return;
    }
    vr_json_object(json, "smaller");
    vr_json_string(json, "card", setting->card == NULL ? NULL : setting->card->model.key);
    vr_json_u64(json, "room_bytes", setting->room_bytes);
    vr_json_bool(json, "tried", setting->tried);
    vr_json_string(json, "conf", setting->found ? setting->conf : NULL);
    put_batch(json, batch);
    fit_remedies_json(json, remedies);
    vr_json_object_end(json);
}

static void put_names(struct vr_json *json, const char *key, const struct sim_wanted *rows, size_t count) {
    vr_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        vr_json_object(json, NULL);
        vr_json_string(json, "name", rows[i].function);
        vr_json_string(json, "library", rows[i].library);
        vr_json_u64(json, "calls", rows[i].count);
        vr_json_u64(json, "stake_bytes", rows[i].bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_reads(struct vr_json *json, const struct fit_run *run) {
    vr_json_array(json, "reads");
    for (size_t i = 0; i < run->read_count; i++) {
        vr_json_object(json, NULL);
        vr_json_u64(json, "calls", run->reads[i].calls);
        vr_json_string(json, "place", run->reads[i].text);
        put_text(json, "operation", run->reads[i].operation);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_stake(struct vr_json *json, const struct fit_stake *stake) {
    if (!stake->tried) {
        vr_json_null(json, "at_stake");
        return;
    }
    vr_json_object(json, "at_stake");
    vr_json_u64(json, "reserved_bytes", stake->reserved_bytes);
    vr_json_u64(json, "allocated_bytes", stake->allocated_bytes);
    vr_json_bool(json, "finished", stake->finished);
    vr_json_object_end(json);
}

static void put_ending(struct vr_json *json, const struct fit_run *run) {
    vr_json_string(json, "ended", fit_ending_names[run->ending]);
    vr_json_i64(json, "exit_code", run->exit_code);
    vr_json_u64(json, "steps", run->steps);
}

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

static void put_need(struct vr_json *json, const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    put_truth(json, "fits", answer->fits, answer->unsure);
    vr_json_u64(json, "need_bytes", fit_need_bytes(verdict));
    vr_json_u64(json, "need_most_bytes", fit_need_bytes(verdict) + answer->stake_bytes);
    vr_json_u64(json, "allocated_bytes", verdict->highest->allocated_bytes);
    vr_json_u64(json, "reserved_bytes", verdict->highest->reserved_bytes);
    vr_json_u64(json, "context_bytes", verdict->highest->outside_bytes - verdict->library_bytes);
    vr_json_u64(json, "library_bytes", verdict->library_bytes);
    if (fit_run_failed(answer->run)) {
        vr_json_null(json, "smallest_bytes");
        vr_json_null(json, "smallest_retries");
        return;
    }
    vr_json_u64(json, "smallest_bytes", verdict->smallest_bytes);
    vr_json_u64(json, "smallest_retries", verdict->smallest_retries);
}

static void put_run(struct vr_json *json, const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    fit_failure_json(json, answer->run);
    if (answer->limit_bytes == UINT64_MAX)
        vr_json_null(json, "limit_bytes");
    else
        vr_json_u64(json, "limit_bytes", answer->limit_bytes);
    vr_json_string(json, "ran_on", verdict->ran_on.key);
    put_ending(json, answer->run);
    answer_json_decimal(json, "seconds", answer->run->seconds, 1);
    vr_json_string(json, "smallest_card", verdict->smallest_card == NULL ? "" : verdict->smallest_card->model.key);
    vr_json_string(json, "varied", answer->varied);
}

int fit_json_answer(const struct fit_answer *answer, struct answers *answers) {
    const struct fit_verdict *verdict = answer->verdict;
    const struct fit_run *run = answer->run;
    struct answer_json made;
    struct vr_json *json = answer_json_begin(&made);
    vr_json_object(json, NULL);
    put_need(json, answer);
    put_run(json, answer);
    put_roles(json, verdict);
    fit_serving_json(json, &answer->serving, verdict);
    put_setting(json, &answer->setting, &answer->batch, &answer->remedies);
    put_names(json, "not_known", run->sizes, run->size_count);
    put_names(json, "not_simulated", run->missing, run->missing_count);
    vr_json_string(json, "not_reached", fit_unreached_module(run));
    put_reads(json, run);
    put_stake(json, &answer->stake);
    vr_json_string(json, "no_kernels", answer->unrunnable);
    vr_json_u64(json, "ranks", answer->fold->ranks == 0 ? (uint64_t)run->process_count : answer->fold->ranks);
    vr_json_array(json, "cards");
    for (size_t i = 0; i < verdict->card_count; i++) put_card(json, &verdict->cards[i]);
    vr_json_array_end(json);
    vr_json_array(json, "holdings");
    for (size_t i = 0; i < run->holding_count; i++) put_holding(json, &run->holdings[i]);
    vr_json_array_end(json);
    vr_json_object_end(json);
    return answer_json_end(&made, answers);
}
