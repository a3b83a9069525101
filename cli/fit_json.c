// fit_json.c: the answer of `vram fit` as one JSON object. Keys: docs/reference/json.md.
#include <inttypes.h>
#include <stdio.h>

#include "fit_print.h"
#include "ui.h"

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
    printf(", \"asked\": %s, \"fits\": %s, \"by\": \"%s\", \"memory_bytes\": %" PRIu64 ", \"context_bytes\": %" PRIu64
           ", \"room_bytes\": %" PRIu64 ", \"need_bytes\": %" PRIu64 ", \"retries\": %" PRIu64 ", \"out_of_memory\": ",
           card->asked ? "true" : "false", card->fits ? "true" : "false", fit_method_names[card->method], card->model.memory_bytes,
           card->model.context_bytes, card->room_bytes, card->need_bytes, card->retries);
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

int fit_print_json(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    const struct fit_run *run = answer->run;
    printf("{\"fits\": %s, \"need_bytes\": %" PRIu64 ", \"allocated_bytes\": %" PRIu64 ", \"reserved_bytes\": %" PRIu64
           ", \"context_bytes\": %" PRIu64 ", \"library_bytes\": %" PRIu64 ", \"smallest_bytes\": %" PRIu64
           ", \"smallest_retries\": %" PRIu64,
           answer->fits ? "true" : "false", fit_need_bytes(verdict), verdict->highest->allocated_bytes, verdict->highest->reserved_bytes,
           verdict->highest->outside_bytes - verdict->library_bytes, verdict->library_bytes, verdict->smallest_bytes,
           verdict->smallest_retries);
    printf(", \"limit_bytes\": ");
    if (answer->limit_bytes == UINT64_MAX)
        printf("null");
    else
        printf("%" PRIu64, answer->limit_bytes);
    printf(", \"ran_on\": \"%s\", \"ended\": \"%s\", \"exit_code\": %d, \"steps\": %" PRIu64 ", \"seconds\": %.1f, \"smallest_card\": ",
           verdict->ran_on.key, fit_ending_names[run->ending], run->exit_code, run->steps, run->seconds);
    ui_json_string(verdict->smallest_card == NULL ? "" : verdict->smallest_card->model.key);
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
