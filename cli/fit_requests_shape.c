// Makes requests from a shape. Lengths are spread evenly over their range, and gaps between arrivals are exponential, as in the engines'
// own benchmarks. The same shape and seed give the same requests.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_requests.h"

#define SECOND_NS 1e9
#define MOST_NS   1e18

struct range {
    uint64_t least, most;
};

struct shape {
    double rate; // per second; 0: all at once
    struct range prompt, output;
    uint64_t count, prefix, prefixes, concurrency, seed;
};

// --- parsing ------------------------------------------------------------------------------------------------------------------------

static bool read_number(const char *text, uint64_t *number) {
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end != '\0') return false;
    *number = value;
    return true;
}

// Reads "512" or "512..4096".
static bool read_range(const char *text, struct range *range) {
    char least[32];
    const char *dots = strstr(text, "..");
    if (dots == NULL) {
        if (!read_number(text, &range->least)) return false;
        range->most = range->least;
        return true;
    }
    if ((size_t)(dots - text) >= sizeof least) return false;
    (void)snprintf(least, sizeof least, "%.*s", (int)(dots - text), text);
    return read_number(least, &range->least) && read_number(dots + 2, &range->most) && range->least <= range->most;
}

// Reads "8/s", "30/m", "1000/h", "8" (per second) or "inf".
static bool read_rate(const char *text, double *rate) {
    char *end;
    if (strcmp(text, "inf") == 0) return true;
    if (text[0] < '0' || text[0] > '9') return false;
    const double value = strtod(text, &end);
    const double seconds = strcmp(end, "") == 0 || strcmp(end, "/s") == 0 ? 1
                           : strcmp(end, "/m") == 0                       ? 60
                           : strcmp(end, "/h") == 0                       ? 3600
                                                                          : 0;
    if (seconds == 0 || !(value > 0) || value > 1e9) return false;
    *rate = value / seconds;
    return true;
}

static bool read_part(struct shape *shape, const char *name, const char *value) {
    const struct {
        const char *name;
        uint64_t *number;
        struct range *range;
    } parts[] = {{"prompt", NULL, &shape->prompt},    {"output", NULL, &shape->output},           {"count", &shape->count, NULL},
                 {"prefix", &shape->prefix, NULL},    {"concurrency", &shape->concurrency, NULL}, {"seed", &shape->seed, NULL},
                 {"prefixes", &shape->prefixes, NULL}};
    if (strcmp(name, "rate") == 0) return read_rate(value, &shape->rate);
    if (strcmp(name, "concurrency") == 0 && strspn(value, "0") == strlen(value)) return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(name, parts[i].name) != 0) continue;
        return parts[i].number != NULL ? read_number(value, parts[i].number) : read_range(value, parts[i].range);
    }
    return false;
}

// Returns whether an earlier part of `parts`, which has a zero byte after each name and value, has the name of this one.
static bool is_among(const char *parts, const char *part) {
    for (const char *at = parts; at < part; at += strlen(at) + 1, at += strlen(at) + 1)
        if (strcmp(at, part) == 0) return true;
    return false;
}

static bool read_shape(struct shape *shape, const char *text, char *wrong) {
    char copy[512], *rest = copy, *part;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "the shape is longer than %zu characters", sizeof copy - 1);
        return false;
    }
    while ((part = rest) != NULL) {
        if ((rest = strchr(part, ',')) != NULL) *rest++ = '\0';
        char *value = strchr(part, '=');
        char shown[200];
        (void)snprintf(shown, sizeof shown, "%.190s", part);
        if (value != NULL) *value++ = '\0';
        if (is_among(copy, part)) {
            (void)snprintf(wrong, FIT_WRONG_CAPACITY, "'%s' is given twice", shown);
            return false;
        }
        if (value != NULL && read_part(shape, part, value)) continue;
        (void)snprintf(wrong, FIT_WRONG_CAPACITY,
                       "'%s' is not one of rate=8/s (/m, /h, inf), prompt=512..4096, output=256, count=1000, concurrency=64, prefix=1024, "
                       "prefixes=10, seed=1",
                       shown);
        return false;
    }
    return true;
}

static const char *contradiction(const struct shape *shape) {
    return shape->prompt.least == 0 || shape->output.least == 0          ? "a shape needs prompt= and output=, of at least 1 token"
           : shape->prompt.most > FIT_TOKENS_MOST                        ? "prompt= takes at most 100000000 tokens"
           : shape->output.most > FIT_TOKENS_MOST                        ? "output= takes at most 100000000 tokens"
           : shape->count == 0 || shape->count > FIT_REQUESTS_MOST       ? "count= takes 1 to 10000000 requests"
           : shape->prefix > shape->prompt.least                         ? "prefix= is longer than the shortest prompt"
           : shape->concurrency > FIT_REQUESTS_MOST                      ? "concurrency= takes 1 to 10000000"
           : shape->prefixes == 0 || shape->prefixes > FIT_REQUESTS_MOST ? "prefixes= takes 1 to 10000000"
                                                                         : NULL;
}

// --- making -------------------------------------------------------------------------------------------------------------------------

// splitmix64
static uint64_t next(uint64_t *state) {
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static uint64_t within(uint64_t *state, const struct range *range) { return range->least + next(state) % (range->most - range->least + 1); }

static double gap_ns(uint64_t *state, double rate) {
    if (rate == 0) return 0;
    const double part = ((double)(next(state) >> 11) + 1) / 9007199254740992.0; // in (0, 1]
    return -log(part) / rate * SECOND_NS;
}

static bool make_requests(struct fit_requests *requests, const struct shape *shape) {
    uint64_t state = shape->seed;
    double at = 0;
    for (uint64_t i = 0; i < shape->count; i++) {
        const uint64_t prompt = within(&state, &shape->prompt), output = within(&state, &shape->output);
        const uint64_t id = next(&state) % shape->prefixes;
        if (shape->prefix != 0 && !fit_requests_add_piece(requests, id, shape->prefix)) return false;
        if (!fit_requests_add(requests, (uint64_t)at, prompt, output)) return false;
        at += gap_ns(&state, shape->rate);
        if (at > MOST_NS) at = MOST_NS;
    }
    return true;
}

bool fit_requests_shape(struct fit_requests *requests, const char *text, char wrong[FIT_WRONG_CAPACITY]) {
    struct shape shape = {.count = 1000, .prefixes = 1};
    if (!read_shape(&shape, text, wrong)) return false;
    const char *problem = contradiction(&shape);
    if (problem != NULL) {
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "%s", problem);
        return false;
    }
    requests->together = shape.concurrency;
    return make_requests(requests, &shape);
}
