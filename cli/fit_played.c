#include "fit_played.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_rows.h"
#include "fit_cards.h"
#include "fit_page.h"
#include "fit_serving.h"
#include "base/text.h"
#include "ui.h"

#define COUNT(number) ui_count((number), (char[UI_COUNT_CAPACITY]){0})
#define SECONDS(ns)   ((double)(ns) / 1e9)

// --- the player's file ----------------------------------------------------------------------------------------------------------------

static void take_fact(struct fit_played *played, const char *name, uint64_t value) {
#define FIT_PLAYED_TAKE(type, member, absent, sentence)                                                                                    \
    if (strcmp(name, #member) == 0) played->member = value;
    FIT_PLAYED_FACTS(FIT_PLAYED_TAKE)
#undef FIT_PLAYED_TAKE
}

bool fit_played_read(struct fit_played *played, const char *path) {
    char name[48];
    uint64_t value;
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    *played = (struct fit_played){.any = true};
    while (fscanf(file, "%47s %" SCNu64, name, &value) == 2) take_fact(played, name, value);
    (void)fclose(file);
    return true;
}

// Returns the most sequences that are never preempted in a cache with this many blocks for requests. 0: not known.
static uint64_t safe_in(const struct fit_played *played, const struct fit_serving *serving, uint64_t pool_blocks) {
    const uint64_t most = serving->served->sequences;
    if (played->request_blocks == 0) return 0;
    const uint64_t safe = pool_blocks / played->request_blocks;
    return most != 0 && safe > most ? most : safe;
}

uint64_t fit_played_safe_sequences(const struct fit_played *played, const struct fit_serving *serving) {
    return safe_in(played, serving, played->pool_blocks);
}

// The capacity of a card for the requests that were played.
struct played_card {
    uint64_t safe_sequences; // 0: not known, or the server does not fit
    uint64_t replicas;       // 0: not known, or no number is enough
};

static struct played_card played_on(const struct fit_played *played, const struct fit_serving *serving, const struct fit_verdict *verdict,
                                    const struct fit_card *card) {
    struct played_card it = {.safe_sequences = 0};
    const struct fit_serving_card on = fit_serving_on(serving, verdict, card);
    const struct fit_served *served = serving->served;
    const uint64_t own_blocks = served->blocks > played->pool_blocks ? served->blocks - played->pool_blocks : 0; // the engine's own
    const uint64_t blocks = (uint64_t)((double)served->blocks * ((double)on.cache_bytes / (double)serving->cache_bytes));
    if (on.fits && blocks > own_blocks) it.safe_sequences = safe_in(played, serving, blocks - own_blocks);
    if (it.safe_sequences != 0) it.replicas = (played->concurrency + it.safe_sequences - 1) / it.safe_sequences;
    return it;
}

// --- text ---------------------------------------------------------------------------------------------------------------------------

static void put_row(FILE *page, const char *title, const char *text) { fprintf(page, "    %-*s%s\n", FIT_TEXT_COLUMN - 4, title, text); }

static double percent(uint64_t part, uint64_t whole) { return whole == 0 ? 0 : (double)part * 100 / (double)whole; }

static void print_queues(FILE *page, const struct fit_played *played, const struct fit_serving *serving) {
    char text[300];
    (void)snprintf(text, sizeof text, "at most %s of %s %s in use (%.1f %%), at %.1f s", COUNT(played->blocks), COUNT(played->pool_blocks),
                   serving->served->block_tokens == 1 ? "tokens" : "blocks", percent(played->blocks, played->pool_blocks),
                   SECONDS(played->blocks_at_ns));
    put_row(page, "KV cache", text);
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "at most %s, at %.1f s; ", COUNT(played->running), SECONDS(played->running_at_ns));
    if (played->waiting == 0)
        vr_sink_printf(&sink, "none waited");
    else
        vr_sink_printf(&sink, "at most %s waited, at %.1f s", COUNT(played->waiting), SECONDS(played->waiting_at_ns));
    put_row(page, "Running", text);
    if (played->preemptions == 0)
        (void)snprintf(text, sizeof text, "none");
    else
        (void)snprintf(text, sizeof text, "%s: the cache was full, and a running request was restarted", COUNT(played->preemptions));
    put_row(page, "Preemptions", text);
    if (played->prefix_queried_tokens == 0) return;
    (void)snprintf(text, sizeof text, "%s of %s prompt tokens found (%.1f %%)", COUNT(played->prefix_hit_tokens),
                   COUNT(played->prefix_queried_tokens), percent(played->prefix_hit_tokens, played->prefix_queried_tokens));
    put_row(page, "Prefix cache", text);
}

static void print_limits(FILE *page, const struct fit_played *played, const struct fit_serving *serving) {
    const struct fit_served *served = serving->served;
    const uint64_t safe = fit_played_safe_sequences(played, serving);
    char text[400];
    if (safe == 0) return;
    (void)snprintf(text, sizeof text,
                   "%s concurrent sequences are never preempted, even if all are as long as the longest served one (%s tokens)%s",
                   COUNT(safe), COUNT(played->longest_tokens), safe == served->sequences ? "; larger numbers were not tried" : "");
    put_row(page, "Safe", text);
    (void)snprintf(text, sizeof text, "sequences longer than %s tokens were not tried; the cache has room for %s", COUNT(served->length),
                   COUNT(served->tokens));
    if (served->length != 0 && served->tokens != 0) put_row(page, "", text);
}

// Prints how many servers of this kind serve all users at once without a preemption, for each given card.
static void print_replicas(FILE *page, const struct fit_played *played, const struct fit_serving *serving,
                           const struct fit_verdict *verdict) {
    char text[500];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "for %s users at once without a preemption:", COUNT(played->concurrency));
    const size_t begin = sink.length;
    if (played->concurrency == 0 || !fit_serving_by_share(serving)) return;
    for (size_t i = 0; i < verdict->card_count; i++) {
        const struct fit_card *card = &verdict->cards[i];
        const uint64_t replicas = played_on(played, serving, verdict, card).replicas;
        if (!card->asked || replicas == 0) continue;
        vr_sink_printf(&sink, "%s %s on %s", sink.length == begin ? "" : ",", COUNT(replicas), card->model.key);
    }
    if (sink.length == begin) return;
    fprintf(page, "    %-*s", FIT_TEXT_COLUMN - 4, "Replicas");
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

void fit_played_print(FILE *page, const struct fit_played *played, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    char text[300];
    if (!played->any) return;
    fprintf(page, "  Requests       ");
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%s of %s served, in %s steps", COUNT(played->served), COUNT(played->asked), COUNT(played->steps));
    if (played->refused > 0)
        vr_sink_printf(&sink, "; %s refused: the engine does not accept %s tokens or more", COUNT(played->refused),
                       COUNT(played->refused_tokens));
    fprintf(page, "%s\n", text);
    (void)snprintf(text, sizeof text, "%s in prompts, %s in outputs", COUNT(played->prompt_tokens), COUNT(played->output_tokens));
    put_row(page, "Tokens", text);
    print_queues(page, played, serving);
    print_limits(page, played, serving);
    print_replicas(page, played, serving, verdict);
    (void)snprintf(text, sizeof text, "%.1f s, as if the card ran at its peak rate; a real server is slower", SECONDS(played->lasted_ns));
    put_row(page, "Virtual time", text);
}

// --- JSON -----------------------------------------------------------------------------------------------------------------------------

#define FIT_PLAYED_LIMIT_FACTS(X)                                                                                                          \
    X(U64, "safe_sequences", fit_played_safe_sequences(it, serving), NULL_IF_EMPTY,                                                        \
      "number of concurrent sequences that are never preempted, even if all are as long as the longest served one; null: not known")       \
    X(ARRAY, "cards", put_cards(json, key, it, serving, verdict), ALWAYS,                                                                  \
      "the given cards (see below); empty: the cache is not a share of the card")

#define FIT_PLAYED_CARD_FACTS(X)                                                                                                           \
    X(TEXT, "key", card->model.key, ALWAYS, "name, as in `--card`")                                                                        \
    X(U64, "safe_sequences", it.safe_sequences, NULL_IF_EMPTY, "as above, on this card; null: not known, or the server does not fit")      \
    X(U64, "replicas", it.replicas, NULL_IF_EMPTY,                                                                                         \
      "number of such servers that serve `concurrency` requests at once without a preemption; null: not known, or not limited")

static void put_cards(struct vr_json *json, const char *name, const struct fit_played *played, const struct fit_serving *serving,
                      const struct fit_verdict *verdict) {
    vr_json_array(json, name);
    for (size_t i = 0; fit_serving_by_share(serving) && i < verdict->card_count; i++) {
        const struct fit_card *card = &verdict->cards[i];
        if (!card->asked) continue;
        const struct played_card it = played_on(played, serving, verdict, card);
        vr_json_object(json, NULL);
        FIT_PLAYED_CARD_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

void fit_played_json(struct vr_json *json, const char *name, const struct fit_played *it, const struct fit_serving *serving,
                     const struct fit_verdict *verdict) {
    vr_json_object(json, name);
    FIT_PLAYED_FACTS(VR_MEMBER_JSON)
    FIT_PLAYED_LIMIT_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}
