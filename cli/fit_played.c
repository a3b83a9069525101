#include "fit_played.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_rows.h"
#include "fit_page.h"
#include "fit_serving.h"
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

uint64_t fit_played_safe_sequences(const struct fit_played *played, const struct fit_serving *serving) {
    const uint64_t block_tokens = serving->served->block_tokens, most = serving->served->sequences;
    if (played->longest_tokens == 0 || block_tokens == 0) return 0;
    const uint64_t safe = played->pool_blocks / ((played->longest_tokens + block_tokens - 1) / block_tokens);
    return most != 0 && safe > most ? most : safe;
}

// --- text ---------------------------------------------------------------------------------------------------------------------------

static void put_row(FILE *page, const char *title, const char *text) { fprintf(page, "    %-*s%s\n", FIT_TEXT_COLUMN - 4, title, text); }

static double percent(uint64_t part, uint64_t whole) { return whole == 0 ? 0 : (double)part * 100 / (double)whole; }

static void print_queues(FILE *page, const struct fit_played *played) {
    char text[300];
    (void)snprintf(text, sizeof text, "at most %s of %s blocks in use (%.1f %%), at %.1f s", COUNT(played->blocks),
                   COUNT(played->pool_blocks), percent(played->blocks, played->pool_blocks), SECONDS(played->blocks_at_ns));
    put_row(page, "KV cache", text);
    int used = snprintf(text, sizeof text, "at most %s, at %.1f s; ", COUNT(played->running), SECONDS(played->running_at_ns));
    if (played->waiting == 0)
        (void)snprintf(text + used, sizeof text - (size_t)used, "none waited");
    else
        (void)snprintf(text + used, sizeof text - (size_t)used, "at most %s waited, at %.1f s", COUNT(played->waiting),
                       SECONDS(played->waiting_at_ns));
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

void fit_played_print(FILE *page, const struct fit_played *played, const struct fit_serving *serving) {
    char text[300];
    if (!played->any) return;
    fprintf(page, "  Requests       ");
    int used =
        snprintf(text, sizeof text, "%s of %s served, in %s steps", COUNT(played->served), COUNT(played->asked), COUNT(played->steps));
    if (played->refused > 0)
        (void)snprintf(text + used, sizeof text - (size_t)used, "; %s refused: the engine does not accept %s tokens or more",
                       COUNT(played->refused), COUNT(played->refused_tokens));
    fprintf(page, "%s\n", text);
    (void)snprintf(text, sizeof text, "%s in prompts, %s in outputs", COUNT(played->prompt_tokens), COUNT(played->output_tokens));
    put_row(page, "Tokens", text);
    print_queues(page, played);
    print_limits(page, played, serving);
    (void)snprintf(text, sizeof text, "%.1f s, as if the card ran at its peak rate; a real server is slower", SECONDS(played->lasted_ns));
    put_row(page, "Virtual time", text);
}

// --- JSON -----------------------------------------------------------------------------------------------------------------------------

#define FIT_PLAYED_LIMIT_FACTS(X)                                                                                                          \
    X(U64, "safe_sequences", fit_played_safe_sequences(it, serving), NULL_IF_EMPTY,                                                        \
      "number of concurrent sequences that are never preempted, even if all are as long as the longest served one; null: not known")

void fit_played_json(struct vr_json *json, const char *name, const struct fit_played *it, const struct fit_serving *serving) {
    vr_json_object(json, name);
    FIT_PLAYED_FACTS(VR_MEMBER_JSON)
    FIT_PLAYED_LIMIT_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}
