#include "fit_serving.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_cards.h"
#include "fit_run.h"
#include "numbering.h"
#include "vram/recording.h"
#include "vram/roles.h"

// --- facts --------------------------------------------------------------------------------------------------------------------------

static bool number_fact(struct fit_served *served, const char *line) {
    const struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {{"tokens", &served->tokens},    {"blocks", &served->blocks},       {"block_tokens", &served->block_tokens},
                   {"length", &served->length},    {"sequences", &served->sequences}, {"cache_bytes", &served->cache_bytes},
                   {"dummy", &served->dummy},
#define FIT_ESTIMATE_ROW(member) {#member, &served->member##_bytes},
                   FIT_ESTIMATES(FIT_ESTIMATE_ROW)
#undef FIT_ESTIMATE_ROW
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const size_t length = strlen(numbers[i].name);
        if (strncmp(line, numbers[i].name, length) == 0 && line[length] == ' ')
            return sscanf(line + length, " %" SCNu64, numbers[i].to) == 1;
    }
    return false;
}

static void phase_fact(struct fit_served *served, const char *line) {
    struct fit_phase phase = {.name = ""};
    if (sscanf(line, "phase %15s %" SCNd64 " %" SCNd64, phase.name, &phase.begin_us, &phase.end_us) == 3 &&
        served->phase_count < FIT_PHASES)
        served->phases[served->phase_count++] = phase;
}

bool fit_served_fact(struct fit_served *served, struct fit_host *host, const char *line) {
    if (strncmp(line, "host ", 5) == 0) {
        struct fit_host read = {.begin_seconds = 0};
        if (sscanf(line, "host %lf %" SCNu64 " %" SCNu64 " %lf %" SCNu64 " %" SCNu64, &read.begin_seconds, &read.begin_bytes,
                   &read.most_bytes, &read.fill_seconds, &read.fill_bytes, &read.skipped_bytes) == 6)
            *host = read;
        return true;
    }
    if (strncmp(line, "phase ", 6) == 0) {
        phase_fact(served, line);
        return true;
    }
    if (strncmp(line, "serving ", 8) != 0) return false;
    line += 8;
    if (number_fact(served, line) || sscanf(line, "engine %15s", served->engine) == 1) return true;
    (void)sscanf(line, "share %47s %lf", served->share_option, &served->share);
    (void)sscanf(line, "graphs %" SCNu64 " %" SCNu64, &served->captures, &served->graph_bytes);
    return true;
}

// --- from the recording -----------------------------------------------------------------------------------------------------------------

struct walk {
    struct fit_serving *serving;
    const struct vram_roles *roles;
    struct numbering caches; // live blocks of the cache by address
    uint64_t live_bytes, cache_count;
    uint64_t last_bytes, growth_bytes; // the size of the cache's last request, and the smallest growth from one request to the next
    uint64_t steady_count;             // most cache blocks between requests
    bool loading;
    uint64_t before_bytes; // live bytes when loading began
};

static uint64_t *peak_of(struct fit_serving *serving, const char *phase) {
    return strcmp(phase, "loading") == 0     ? &serving->loading_bytes
           : strcmp(phase, "profiling") == 0 ? &serving->profiling_bytes
           : strcmp(phase, "cache") == 0     ? &serving->cache_peak_bytes
           : strcmp(phase, "capture") == 0   ? &serving->capture_bytes
                                             : NULL;
}

// Ends loading: the bytes that remain are the weights and the model's other buffers.
static void see_loaded(struct walk *walk) {
    if (!walk->loading) return;
    walk->serving->weight_bytes = walk->live_bytes - walk->before_bytes;
    walk->loading = false;
}

static bool is_within(const struct fit_phase *phase, int64_t time_us) { return time_us >= phase->begin_us && time_us <= phase->end_us; }

static void see_time(struct walk *walk, int64_t time_us) {
    for (size_t i = 0; i < walk->serving->served->phase_count; i++) {
        const struct fit_phase *phase = &walk->serving->served->phases[i];
        if (strcmp(phase->name, "loading") != 0) continue;
        if (!is_within(phase, time_us)) {
            see_loaded(walk);
        } else if (!walk->loading) {
            walk->loading = true;
            walk->before_bytes = walk->live_bytes;
        }
    }
}

static void see_phase(struct walk *walk, int64_t time_us) {
    for (size_t i = 0; i < walk->serving->served->phase_count; i++) {
        const struct fit_phase *phase = &walk->serving->served->phases[i];
        uint64_t *peak = is_within(phase, time_us) ? peak_of(walk->serving, phase->name) : NULL;
        if (peak != NULL && walk->live_bytes > *peak) *peak = walk->live_bytes;
    }
}

// Counts a cache block. A growing cache is reallocated layer by layer, each with one more token.
static bool see_cache(struct walk *walk, const struct vram_recorded_event *event) {
    if (walk->cache_count > walk->steady_count) walk->steady_count = walk->cache_count;
    const uint64_t more = event->size_bytes > walk->last_bytes && walk->last_bytes != 0 ? event->size_bytes - walk->last_bytes : 0;
    if (more != 0 && (walk->growth_bytes == 0 || more < walk->growth_bytes)) walk->growth_bytes = more;
    walk->last_bytes = event->size_bytes;
    if (!numbering_reserve(&walk->caches)) return false;
    (void)numbering_take(&walk->caches, event->address, 0);
    numbering_set(&walk->caches, event->address, 0, 1);
    walk->cache_count++;
    return true;
}

static bool see_event(struct walk *walk, const struct vram_recorded_event *event, uint64_t number) {
    if (event->has_time) see_time(walk, event->time_us);
    if (strcmp(event->action, "alloc") == 0) {
        walk->live_bytes += event->size_bytes;
        if (event->has_time) see_phase(walk, event->time_us);
        return number >= walk->roles->event_count || walk->roles->of_event[number] != VRAM_ROLE_KV_CACHE || see_cache(walk, event);
    }
    if (strcmp(event->action, "free_requested") != 0) return true;
    walk->live_bytes -= event->size_bytes < walk->live_bytes ? event->size_bytes : walk->live_bytes;
    if (walk->cache_count > 0 && numbering_take(&walk->caches, event->address, 0) != NUMBERING_NONE) walk->cache_count--;
    return true;
}

static void walk_events(struct walk *walk, const struct vram_recording *recording, uint32_t device) {
    struct vram_recorded_event event;
    for (uint64_t i = 0; vram_recording_event(recording, device, i, &event) && see_event(walk, &event, i); i++) {
    }
    numbering_release(&walk->caches);
    if (walk->cache_count > walk->steady_count) walk->steady_count = walk->cache_count;
}

static void settle_budget(const struct fit_verdict *verdict, struct fit_serving *serving) {
    const struct fit_served *served = serving->served;
    const uint64_t working = serving->cache_bytes + serving->profiling_bytes + served->graph_bytes;
    serving->held_bytes = verdict->highest->reserved_bytes;
    if (serving->profiling_bytes != 0 && working > serving->held_bytes) serving->held_bytes = working;
    const int64_t share = (int64_t)(served->share * (double)verdict->ran_memory_bytes);
    serving->before_bytes = share - (int64_t)serving->cache_bytes;
    serving->beyond_bytes = (int64_t)(serving->held_bytes + verdict->highest->outside_bytes) - share;
}

void fit_serving_find(const struct fit_verdict *verdict, struct fit_serving *serving) {
    const struct fit_holding *highest = verdict->highest;
    const struct vram_roles_options options = {.device = highest->device};
    struct vram_roles *roles;
    *serving = (struct fit_serving){.served = &highest->process->served};
    if (vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) return;
    serving->cache_bytes = roles->highest[VRAM_ROLE_KV_CACHE].bytes;
    serving->weight_bytes = roles->highest[VRAM_ROLE_PARAMETERS].bytes;
    serving->any = serving->cache_bytes != 0 && highest->process->ended[0] != '\0' && roles->highest[VRAM_ROLE_OPTIMIZER_STATE].bytes == 0;
    struct walk walk = {.serving = serving, .roles = roles};
    if (serving->any) walk_events(&walk, verdict->recording, highest->device);
    vram_roles_destroy(roles);
    if (serving->served->cache_bytes != 0) serving->cache_bytes = serving->served->cache_bytes;
    serving->token_bytes =
        serving->served->tokens != 0 ? serving->cache_bytes / serving->served->tokens : walk.growth_bytes * walk.steady_count;
    settle_budget(verdict, serving);
}

// --- on a card ------------------------------------------------------------------------------------------------------------------------

bool fit_serving_by_share(const struct fit_serving *serving) {
    return serving->any && serving->served->share_option[0] != '\0' && serving->served->share > 0 && serving->token_bytes != 0;
}

struct fit_serving_card fit_serving_on(const struct fit_serving *serving, const struct fit_verdict *verdict, const struct fit_card *card) {
    struct fit_serving_card on = {.most_share = 0};
    const double memory = (double)card->model.memory_bytes;
    const double beyond = (double)serving->beyond_bytes + (double)card->model.context_bytes - (double)verdict->ran_on.context_bytes;
    on.most_share = (memory - (beyond > 0 ? beyond : 0)) / memory;
    if (on.most_share <= 0) return (struct fit_serving_card){.most_share = 0};
    const double share = serving->served->share < on.most_share ? serving->served->share : on.most_share;
    const double cache = share * memory - (double)serving->before_bytes;
    if (cache > 0) on.cache_bytes = (uint64_t)cache;
    on.tokens = on.cache_bytes / serving->token_bytes;
    on.fits = serving->served->share <= on.most_share && on.tokens > 0 && on.tokens >= serving->served->length;
    return on;
}

// Returns the bytes that the server takes of a card: of one that is too small, those of the smallest card that is not.
static uint64_t need_on(const struct fit_serving *serving, const struct fit_verdict *verdict, const struct fit_card *card) {
    const double taken = (double)serving->beyond_bytes + serving->served->share * (double)card->model.memory_bytes;
    const uint64_t need_bytes = taken > 0 ? (uint64_t)taken : 0;
    return card->fits || need_bytes > card->model.memory_bytes ? need_bytes : verdict->smallest_bytes;
}

void fit_serving_judge(const struct fit_serving *serving, struct fit_verdict *verdict) {
    if (!fit_serving_by_share(serving)) return;
    const double share = serving->served->share;
    // The share must have room for one sequence of full length and for what precedes the cache.
    const double needed =
        (double)serving->before_bytes + (double)serving->token_bytes * (double)(serving->served->length > 0 ? serving->served->length : 1);
    verdict->smallest_bytes = (uint64_t)(needed / share);
    verdict->smallest_retries = 0;
    verdict->smallest_card = NULL;
    for (size_t i = 0; i < verdict->card_count; i++) {
        struct fit_card *card = &verdict->cards[i];
        if (card->method != FIT_BY_RUN) {
            card->method = FIT_BY_SHARE, card->fits = fit_serving_on(serving, verdict, card).fits;
            card->oom = (struct fit_oom){.known = false}; // the cache of a replay has the size of another card's
        }
        card->need_bytes = need_on(serving, verdict, card);
        card->retries = 0;
        if (card->fits && verdict->smallest_card == NULL) verdict->smallest_card = card;
    }
}
