// fit_json.c: the answer of `vram fit` as one JSON object. Keys: docs/reference/json.md.
#include <inttypes.h>
#include <stdio.h>

#include "fit_print.h"
#include "fit_unreached.h"
#include "ui.h"
#include "vram/roles.h"

// What is not sure is null.
static const char *truth(bool fits, bool unsure) { return unsure ? "null" : fits ? "true" : "false"; }

// The module with NVIDIA's runtime in it that found no device.
static void print_unreached(const struct fit_run *run) {
    const char *module = fit_unreached_module(run);
    printf(",\n \"not_reached\": ");
    if (module == NULL)
        printf("null");
    else
        ui_json_string(module);
}

static void print_oom(const struct fit_oom *oom) {
    if (!oom->known) {
        printf("null");
        return;
    }
    printf("{\"step\": %" PRIu64 ", \"requested_bytes\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64 ", \"cached_bytes\": %" PRIu64
           ", \"largest_free_bytes\": %" PRIu64 ", \"room_bytes\": %" PRIu64 ", \"site\": ",
           oom->step, oom->requested_bytes, oom->allocated_bytes, oom->cached_bytes, oom->largest_free_bytes, oom->room_bytes);
    ui_json_string(oom->site);
    printf("}");
}

static void print_card(const struct fit_card *card) {
    printf("{\"key\": \"%s\", \"name\": ", card->model.key);
    ui_json_string(card->model.name);
    printf(", \"asked\": %s, \"fits\": %s, \"by\": \"%s\", \"memory_bytes\": %" PRIu64
           ", \"memory_estimated\": %s, \"context_bytes\": %" PRIu64 ", \"room_bytes\": %" PRIu64 ", \"need_bytes\": %" PRIu64
           ", \"retries\": %" PRIu64 ", \"out_of_memory\": ",
           card->asked ? "true" : "false", truth(card->fits, card->unsure), fit_method_names[card->method], card->model.memory_bytes,
           fit_memory_is_estimated(&card->model) ? "true" : "false", card->model.context_bytes, card->room_bytes, card->need_bytes,
           card->retries);
    print_oom(&card->oom);
    printf("}");
}

static void print_holding(const struct fit_holding *holding) {
    printf("{\"rank\": %" PRIu64 ", \"device\": %" PRIu32 ", \"ordinal\": %" PRIu32 ", \"recorded_by\": \"%s\", \"torch\": ",
           holding->process->rank, holding->device, holding->ordinal, holding->process->whole_program ? "vram run" : "pytorch");
    ui_json_string(holding->process->torch);
    printf(", \"steps\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64 ", \"reserved_bytes\": %" PRIu64 ", \"outside_bytes\": %" PRIu64
           ", \"ooms\": %" PRIu64 ", \"retries\": %" PRIu64 "}",
           holding->process->steps, holding->allocated_bytes, holding->reserved_bytes, holding->outside_bytes, holding->ooms,
           holding->retries);
}

static void print_roles(const struct fit_verdict *verdict) {
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    printf(",\n \"roles\": ");
    if (verdict->highest->process->whole_program || vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) {
        printf("null");
        return;
    }
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++)
        printf("%s\"%s\": %" PRIu64, role == 0 ? "{" : ", ", vram_role_word(role), roles->at_peak[role].bytes);
    printf("}");
    vram_roles_destroy(roles);
}

static void print_setting(const struct fit_setting *setting, const struct fit_batch *batch, const struct fit_remedies *remedies) {
    printf(",\n \"smaller\": ");
    if (!setting->any) {
        printf("null");
        return;
    }
    printf("{\"card\": ");
    if (setting->card == NULL)
        printf("null");
    else
        ui_json_string(setting->card->model.key);
    printf(", \"room_bytes\": %" PRIu64 ", \"tried\": %s, \"conf\": ", setting->room_bytes, setting->tried ? "true" : "false");
    if (setting->found)
        ui_json_string(setting->conf);
    else
        printf("null");
    printf(", \"batch\": ");
    if (batch->known) {
        printf("{\"fixed_bytes\": %" PRIu64 ", \"varying_bytes\": %" PRIu64 ", \"share\": %.2f, \"argument\": ", batch->fixed_bytes,
               batch->varying_bytes, batch->share);
        ui_json_string(batch->argument);
        printf(", \"value\": %" PRIu64 ", \"about\": %" PRIu64 ", \"tried\": %s}", batch->value, batch->about,
               batch->tried ? "true" : "false");
    } else {
        printf("null");
    }
    fit_remedies_print_json(remedies);
    printf("}");
}

static void print_names(const char *key, const struct sim_wanted *rows, size_t count) {
    printf(",\n \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        printf("%s{\"name\": ", i == 0 ? "" : ", ");
        ui_json_string(rows[i].function);
        printf(", \"library\": ");
        ui_json_string(rows[i].library);
        printf(", \"calls\": %" PRIu64 ", \"stake_bytes\": %" PRIu64 "}", rows[i].count, rows[i].bytes);
    }
    printf("]");
}

static void print_reads(const struct fit_run *run) {
    printf(",\n \"reads\": [");
    for (size_t i = 0; i < run->read_count; i++) {
        printf("%s{\"calls\": %" PRIu64 ", \"place\": ", i == 0 ? "" : ",\n  ", run->reads[i].calls);
        ui_json_string(run->reads[i].text);
        printf(", \"operation\": ");
        if (run->reads[i].operation[0] == '\0')
            printf("null");
        else
            ui_json_string(run->reads[i].operation);
        printf("}");
    }
    printf("]");
}

static void print_stake(const struct fit_stake *stake) {
    printf(",\n \"at_stake\": ");
    if (stake->tried)
        printf("{\"reserved_bytes\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64 ", \"finished\": %s}", stake->reserved_bytes,
               stake->allocated_bytes, stake->finished ? "true" : "false");
    else
        printf("null");
}

static void print_varied(const char *varied) {
    printf(", \"varied\": ");
    if (varied == NULL)
        printf("null");
    else
        ui_json_string(varied);
}

void fit_print_nothing_json(const struct fit_run *run, const char *varied) {
    printf("{\"fits\": null, \"need_bytes\": null, \"least_bytes\": %" PRIu64, run->least_bytes);
    fit_failure_print_json(run);
    printf(", \"ended\": \"%s\", \"exit_code\": %d, \"steps\": %" PRIu64, fit_ending_names[run->ending], run->exit_code, run->steps);
    print_varied(varied);
    print_unreached(run);
    printf(", \"cards\": [], \"holdings\": []}\n");
}

int fit_print_json(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    const struct fit_run *run = answer->run;
    printf("{\"fits\": %s, \"need_bytes\": %" PRIu64 ", \"need_most_bytes\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64
           ", \"reserved_bytes\": %" PRIu64 ", \"context_bytes\": %" PRIu64 ", \"library_bytes\": %" PRIu64,
           truth(answer->fits, answer->unsure), fit_need_bytes(verdict), fit_need_bytes(verdict) + answer->stake_bytes,
           verdict->highest->allocated_bytes, verdict->highest->reserved_bytes, verdict->highest->outside_bytes - verdict->library_bytes,
           verdict->library_bytes);
    if (fit_run_failed(run))
        printf(", \"smallest_bytes\": null, \"smallest_retries\": null");
    else
        printf(", \"smallest_bytes\": %" PRIu64 ", \"smallest_retries\": %" PRIu64, verdict->smallest_bytes, verdict->smallest_retries);
    fit_failure_print_json(run);
    printf(", \"limit_bytes\": ");
    if (answer->limit_bytes == UINT64_MAX)
        printf("null");
    else
        printf("%" PRIu64, answer->limit_bytes);
    printf(", \"ran_on\": \"%s\", \"ended\": \"%s\", \"exit_code\": %d, \"steps\": %" PRIu64 ", \"seconds\": %.1f, \"smallest_card\": ",
           verdict->ran_on.key, fit_ending_names[run->ending], run->exit_code, run->steps, run->seconds);
    ui_json_string(verdict->smallest_card == NULL ? "" : verdict->smallest_card->model.key);
    print_varied(answer->varied);
    print_roles(verdict);
    fit_serving_print_json(&answer->serving, verdict);
    print_setting(&answer->setting, &answer->batch, &answer->remedies);
    print_names("not_known", run->sizes, run->size_count);
    print_names("not_simulated", run->missing, run->missing_count);
    print_unreached(run);
    print_reads(run);
    print_stake(&answer->stake);
    printf(",\n \"no_kernels\": ");
    if (answer->unrunnable == NULL)
        printf("null");
    else
        ui_json_string(answer->unrunnable);
    printf(", \"ranks\": %" PRIu64, answer->fold->ranks == 0 ? (uint64_t)run->process_count : answer->fold->ranks);
    printf(",\n \"cards\": [");
    for (size_t i = 0; i < verdict->card_count; i++) {
        printf(i == 0 ? "\n  " : ",\n  ");
        print_card(&verdict->cards[i]);
    }
    printf("],\n \"holdings\": [");
    for (size_t i = 0; i < run->holding_count; i++) {
        printf(i == 0 ? "\n  " : ",\n  ");
        print_holding(&run->holdings[i]);
    }
    printf("]}\n");
    return CLI_OK;
}
