// fit_serving_print.c: prints a server's capacity, as text and as JSON.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "fit_cards.h"
#include "fit_page.h"
#include "fit_print.h"
#include "fit_run.h"
#include "fit_serving.h"
#include "base/json_rows.h"
#include "base/text.h"
#include "ui.h"

#define SIZE(bytes) ui_size((bytes), (char[UI_SIZE_CAPACITY]){0})
#define LENGTHS     4 // of sequences listed

static void put_row(FILE *page, const char *title, const char *text) {
    fprintf(page, "    %-*s", FIT_TEXT_COLUMN - 4, title);
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

#define COUNT(number) ui_count((number), (char[UI_COUNT_CAPACITY]){0})

static void print_cache(FILE *page, const struct fit_serving *serving) {
    const struct fit_served *served = serving->served;
    char text[400];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%s", SIZE(serving->cache_bytes));
    if (served->tokens != 0 && served->blocks != 0 && served->block_tokens != 1)
        vr_sink_printf(&sink, ": %s blocks of %s = %s tokens", COUNT(served->blocks), COUNT(served->block_tokens), COUNT(served->tokens));
    else if (serving->token_bytes != 0)
        vr_sink_printf(&sink, ": %s tokens", COUNT(served->tokens != 0 ? served->tokens : serving->cache_bytes / serving->token_bytes));
    if (serving->token_bytes != 0) vr_sink_printf(&sink, ", %s per token", SIZE(serving->token_bytes));
    put_row(page, "KV cache", text);
    uint64_t length = served->length;
    sink = vr_sink_begin(text, sizeof text);
    for (int i = 0; i < LENGTHS && length >= 128 && served->tokens / length > 0; i++, length /= 4)
        vr_sink_printf(&sink, "%s%s at %s", i == 0 ? "concurrent sequences by length: " : ", ", COUNT(served->tokens / length),
                       COUNT(length));
    if (sink.length > 0) put_row(page, "", text);
    if (served->tokens != 0 && served->tokens < served->length) put_row(page, "", "less than one sequence of full length");
}

static void print_phases(FILE *page, const struct fit_serving *serving) {
    const struct fit_served *served = serving->served;
    char text[300];
    put_row(page, "Weights", SIZE(serving->weight_bytes));
    const uint64_t above =
        serving->profiling_bytes - (serving->weight_bytes < serving->profiling_bytes ? serving->weight_bytes : serving->profiling_bytes);
    if (serving->profiling_bytes != 0) {
        (void)snprintf(text, sizeof text, "at most %s live, %s above the weights (activations of the largest batch)",
                       SIZE(serving->profiling_bytes), SIZE(above));
        put_row(page, "Profiling", text);
    }
    print_cache(page, serving);
    if (served->captures != 0) {
        (void)snprintf(text, sizeof text, "%s captured, %s in their pools; at most %s live in warm-up and capture", COUNT(served->captures),
                       SIZE(served->graph_bytes), SIZE(serving->capture_bytes));
        if (serving->capture_bytes == 0) *strchr(text, ';') = '\0';
        put_row(page, "CUDA graphs", text);
    }
}

// Appends what the engine measured to size its cache. Engines, and their versions, keep different parts of it.
static void append_measured(struct vr_sink *sink, const struct fit_served *served) {
    const struct {
        uint64_t bytes;
        const char *what;
    } parts[] = {
        {served->estimated_weight_bytes, "weights"},
        {served->estimated_consumed_bytes, "with context and libraries"},
        {served->estimated_consumed_bytes == 0 ? served->estimated_outside_bytes : 0, "outside of PyTorch"},
        {served->estimated_activation_bytes, "activations"},
        {served->estimated_graph_bytes,
         served->estimated_subtracted_graph_bytes != 0 ? "for graphs" : "for graphs, not taken from the cache"},
        {served->estimated_reserve_bytes, "left free for activations and graphs"},
        {served->taken_graph_bytes, "taken by graphs"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].bytes != 0) vr_sink_printf(sink, "%s%s %s", sink->length == 0 ? "" : ", ", SIZE(parts[i].bytes), parts[i].what);
}

// Prints the engine's measurements, and how far its later use differed from them. An engine that measures no activations leaves memory
// free for them.
static void print_estimate(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    const struct fit_served *served = serving->served;
    const uint64_t need = fit_need_bytes(verdict), memory = verdict->ran_memory_bytes, asked = served->estimated_requested_bytes;
    char text[500];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    if (asked == 0) return;
    append_measured(&sink, served);
    if (served->estimated_reserve_bytes != 0)
        vr_sink_printf(&sink, "; %s %s", SIZE(memory > need ? memory - need : need - memory),
                       memory > need ? "stayed free" : "were missing");
    else
        vr_sink_printf(&sink, "; it asked for %s, and used %s %s", SIZE(asked), SIZE(need > asked ? need - asked : asked - need),
                       need > asked ? "more" : "less");
    put_row(page, "Its estimate", text);
}

static void print_card(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict, const struct fit_card *card) {
    const struct fit_serving_card on = fit_serving_on(serving, verdict, card);
    char text[300];
    const double share = on.most_share < serving->served->share ? on.most_share : serving->served->share;
    // Round down, so that the share is available.
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "up to %.3f of %s", (double)(int64_t)(on.most_share * 1000) / 1000, SIZE(card->model.memory_bytes));
    if (on.cache_bytes == 0)
        vr_sink_printf(&sink, "; no memory is left for a cache");
    else
        vr_sink_printf(&sink, "; at %.3g: %s of cache, %s tokens%s", share, SIZE(on.cache_bytes), COUNT(on.tokens),
                       on.tokens < serving->served->length ? ": less than one sequence" : "");
    put_row(page, card->model.key, text);
}

// Prints bytes that the share does not cover.
static void print_beyond(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    const struct fit_holding *highest = verdict->highest;
    char text[400];
    (void)snprintf(text, sizeof text, "%s: the allocator's %s%s, %s context, %s libraries, minus the share of %s",
                   SIZE((uint64_t)(serving->beyond_bytes > 0 ? serving->beyond_bytes : 0)), SIZE(serving->held_bytes),
                   serving->profiling_bytes != 0 ? " with activations as in profiling" : "",
                   SIZE(highest->outside_bytes - verdict->library_bytes), SIZE(verdict->library_bytes),
                   SIZE((uint64_t)(serving->served->share * (double)verdict->ran_memory_bytes)));
    put_row(page, "Beyond it", text);
}

static void print_unknown(FILE *page, const struct fit_serving *serving) {
    char text[300];
    (void)snprintf(
        text, sizeof text,
        "what the driver takes for kernels when they first run: up to %s in published logs of one card, so the cache may be up to %s "
        "tokens smaller",
        SIZE(FIT_KERNEL_BYTES), COUNT(FIT_KERNEL_BYTES / serving->token_bytes));
    put_row(page, "Not known", text);
}

static void print_growth(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    for (size_t i = 0; i < verdict->card_count; i++) {
        const struct fit_card *card = &verdict->cards[i];
        char text[200];
        if (!card->asked || card->need_bytes > card->model.memory_bytes || serving->token_bytes == 0) continue;
        (void)snprintf(text, sizeof text, "about %s more tokens would fit if nothing else grows",
                       COUNT((card->model.memory_bytes - card->need_bytes) / serving->token_bytes));
        put_row(page, card->model.key, text);
    }
}

void fit_serving_print(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    const struct fit_served *served = serving->served;
    if (!serving->any) return;
    fprintf(page, "  Serving        %s", served->engine[0] != '\0' ? served->engine : "a model, with a KV cache");
    if (served->sequences != 0) fprintf(page, ", at most %s sequences", COUNT(served->sequences));
    if (served->length != 0) fprintf(page, " of %s tokens", COUNT(served->length));
    fprintf(page, "\n");
    print_phases(page, serving);
    if (!fit_serving_by_share(serving)) {
        print_growth(page, serving, verdict);
        return;
    }
    print_estimate(page, serving, verdict);
    fprintf(page, "  Share          %s %.3g\n", served->share_option, served->share);
    print_beyond(page, serving, verdict);
    print_unknown(page, serving);
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked) print_card(page, serving, verdict, &verdict->cards[i]);
}

// --- JSON -----------------------------------------------------------------------------------------------------------------------------

#define FIT_SERVED_CARD_FACTS(X)                                                                                                           \
    X(TEXT, "key", card->model.key, ALWAYS, "name, as in `--card`")                                                                        \
    X(NUMBER, "most_share", answer_json_decimal(json, key, it.most_share, 4), ALWAYS, "largest share that the card can provide")           \
    X(U64, "cache_bytes", it.cache_bytes, ALWAYS,                                                                                          \
      "cache with the share that the program asks for, or with the largest share if that is smaller")                                      \
    X(U64, "tokens", it.tokens, ALWAYS, "tokens in that cache")                                                                            \
    X(BOOL, "fits", it.fits, ALWAYS, "the share fits, and so does a sequence of full length")

static void put_cards(struct vr_json *json, const char *name, const struct fit_serving *serving, const struct fit_verdict *verdict) {
    vr_json_array(json, name);
    for (size_t i = 0; fit_serving_by_share(serving) && i < verdict->card_count; i++) {
        const struct fit_card *card = &verdict->cards[i];
        const struct fit_serving_card it = fit_serving_on(serving, verdict, card);
        if (!card->asked) continue;
        vr_json_object(json, NULL);
        FIT_SERVED_CARD_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FIT_SERVING_FACTS(X)                                                                                                               \
    X(TEXT, "engine", served->engine, ALWAYS, "the engine; empty: not known")                                                              \
    X(TEXT, "share_option", served->share_option, ALWAYS, "its option for the share of the device")                                        \
    X(NUMBER, "share", answer_json_decimal(json, key, served->share, 4), ALWAYS, "the share of the device")                                \
    X(U64, "weight_bytes", it->weight_bytes, ALWAYS, "weights")                                                                            \
    X(U64, "cache_bytes", it->cache_bytes, ALWAYS, "KV cache")                                                                             \
    X(U64, "tokens", served->tokens, ALWAYS, "number of tokens in the cache")                                                              \
    X(U64, "blocks", served->blocks, ALWAYS, "number of blocks in the cache")                                                              \
    X(U64, "block_tokens", served->block_tokens, ALWAYS, "tokens per block")                                                               \
    X(U64, "token_bytes", it->token_bytes, ALWAYS, "bytes per token; 0: not known")                                                        \
    X(U64, "length", served->length, ALWAYS, "tokens in the longest sequence")                                                             \
    X(U64, "sequences", served->sequences, ALWAYS, "concurrent sequences; 0: not known")                                                   \
    X(U64, "loading_bytes", it->loading_bytes, ALWAYS, "highest live bytes while loading; 0: no such phase")                               \
    X(U64, "profiling_bytes", it->profiling_bytes, ALWAYS, "highest live bytes while profiling; 0: no such phase")                         \
    X(U64, "capture_bytes", it->capture_bytes, ALWAYS, "highest live bytes while capturing graphs; 0: no such phase")                      \
    X(U64, "graphs", served->captures, ALWAYS, "number of captured CUDA graphs")                                                           \
    X(U64, "graph_bytes", served->graph_bytes, ALWAYS, "bytes in their pools")                                                             \
    X(U64, "estimated_weight_bytes", served->estimated_weight_bytes, NULL_IF_EMPTY, "weights, by the engine's own measure")                \
    X(U64, "estimated_consumed_bytes", served->estimated_consumed_bytes, NULL_IF_EMPTY, "the same with context and libraries")             \
    X(U64, "estimated_outside_bytes", served->estimated_outside_bytes, NULL_IF_EMPTY,                                                      \
      "memory outside of PyTorch that the engine saw while it measured")                                                                   \
    X(U64, "estimated_activation_bytes", served->estimated_activation_bytes, NULL_IF_EMPTY, "the engine's figure for activations")         \
    X(U64, "estimated_graph_bytes", served->estimated_graph_bytes, NULL_IF_EMPTY, "the engine's estimate for graphs")                      \
    X(U64, "estimated_subtracted_graph_bytes", served->estimated_subtracted_graph_bytes, NULL_IF_EMPTY,                                    \
      "the part of that estimate by which the engine made its cache smaller")                                                              \
    X(U64, "estimated_reserve_bytes", served->estimated_reserve_bytes, NULL_IF_EMPTY,                                                      \
      "what the engine leaves free for activations and graphs, without measuring them")                                                    \
    X(U64, "taken_graph_bytes", served->taken_graph_bytes, NULL_IF_EMPTY, "memory of the graphs, by the engine's own measure")             \
    X(U64, "estimated_requested_bytes", served->estimated_requested_bytes, NULL_IF_EMPTY, "the engine's share of the device")              \
    X(U64, "estimated_cache_bytes", served->estimated_cache_bytes, NULL_IF_EMPTY, "the part of that share that is left for the cache")     \
    X(U64, "held_bytes", it->held_bytes, ALWAYS, "highest reserved bytes, with activations as while profiling")                            \
    X(I64, "beyond_bytes", fit_serving_by_share(it) ? it->beyond_bytes : 0, ALWAYS, "bytes that the share does not cover")                 \
    X(U64, "unknown_bytes", fit_serving_by_share(it) ? FIT_KERNEL_BYTES : 0, ALWAYS,                                                       \
      "upper bound, from published logs, of what the driver takes for kernels when they first run; the cache may be smaller by it")        \
    X(ARRAY, "cards", put_cards(json, key, it, verdict), ALWAYS, "the given cards (see below)")

void fit_serving_json(struct vr_json *json, const char *name, const struct fit_serving *it, const struct fit_verdict *verdict) {
    const struct fit_served *served = it->served;
    vr_json_object(json, name);
    FIT_SERVING_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

// --- the host --------------------------------------------------------------------------------------------------------------------------

#define MUCH_SECONDS 10.0
#define MUCH_BYTES   ((uint64_t)4 << 30)

// If start-up took much time or memory, prints the reason and a remedy.
void fit_host_print(FILE *page, const struct fit_run *run, bool dummy_weights) {
    const struct fit_host *host = NULL;
    for (size_t i = 0; i < run->process_count; i++) {
        dummy_weights = dummy_weights || run->processes[i].served.dummy != 0;
        if (host == NULL || run->processes[i].host.most_bytes > host->most_bytes) host = &run->processes[i].host;
    }
    if (host == NULL || host->most_bytes == 0) return;
    char text[400];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    vr_sink_printf(&sink, "%.1f s until the program used the device; %s of host memory", host->begin_seconds, SIZE(host->most_bytes));
    const uint64_t filled = host->fill_bytes - host->skipped_bytes;
    if (filled > MUCH_BYTES / 8) vr_sink_printf(&sink, "; %s was initialised on the CPU in %.1f s", SIZE(filled), host->fill_seconds);
    if (host->skipped_bytes > 0) vr_sink_printf(&sink, "; %s of dummy weights was not initialised", SIZE(host->skipped_bytes));
    if (!dummy_weights && (host->fill_seconds > MUCH_SECONDS || host->most_bytes > MUCH_BYTES))
        vr_sink_printf(&sink, ": --dummy-weights avoids the cost of weights on the host");
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, "Host");
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}
