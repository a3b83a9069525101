// fit_serving.h: the memory that a model's server needs (weights, cache of keys and values, graphs), the capacity of its cache, and the
// share of a device that it may take.
//
// An engine takes a share of the device. The part of the share that the cache does not get (`before`), and the use outside the share
// (`beyond`), are the same on every device. So a larger share is a larger cache: cache = share * memory - before, and the device's use is
// at most share * memory + beyond. The bytes come from the recording, by their roles; the engine reports which option sets the share and
// how many tokens the cache holds (adapters/fit).
#ifndef CLI_FIT_SERVING_H
#define CLI_FIT_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct vr_json;

#define FIT_PHASES 16

struct fit_phase {
    char name[16];
    int64_t begin_us, end_us; // by the recording's clock
};

// The measurements of an engine from which it sizes its cache. X(member)
#define FIT_ESTIMATES(X)                                                                                                                   \
    X(estimated_weight)                                                                                                                    \
    X(estimated_consumed)                                                                                                                  \
    X(estimated_outside)                                                                                                                   \
    X(estimated_activation)                                                                                                                \
    X(estimated_graph)                                                                                                                     \
    X(estimated_subtracted_graph)                                                                                                          \
    X(estimated_reserve)                                                                                                                   \
    X(taken_graph)                                                                                                                         \
    X(estimated_requested)                                                                                                                 \
    X(estimated_cache)

// Facts the program's engine wrote (adapters/fit/vram_fit_engines.py).
struct fit_served {
    char engine[16];       // "" if unknown
    char share_option[48]; // "" if the cache's size is set directly
    double share;          // of the device's memory
    uint64_t tokens, blocks, block_tokens, length, sequences;
    uint64_t cache_bytes;           // keys and values, without the engine's tables of them; 0: the engine does not report them
    uint64_t dummy;                 // 1: the engine uses dummy weights
    uint64_t captures, graph_bytes; // number of graphs, and bytes of their pools
#define FIT_ESTIMATE_MEMBER(member) uint64_t member##_bytes; // 0: unknown
    FIT_ESTIMATES(FIT_ESTIMATE_MEMBER)
#undef FIT_ESTIMATE_MEMBER
    struct fit_phase phases[FIT_PHASES];
    size_t phase_count;
};

// The host's cost until the first use of the device, and its peak.
struct fit_host {
    double begin_seconds, fill_seconds;
    uint64_t begin_bytes, most_bytes;
    uint64_t fill_bytes, skipped_bytes; // initialised on the CPU, and the part of it that was skipped for dummy weights
};

// Reads a line of facts. Returns false if it is about something else.
bool fit_served_fact(struct fit_served *served, struct fit_host *host, const char *line);

struct fit_verdict;
struct fit_run;
struct fit_card;

// The server's capacity on one card. All 0 if no cache fits.
struct fit_serving_card {
    double most_share;    // the highest share that the card can give
    uint64_t cache_bytes; // with the requested share, or with most_share if that is less
    uint64_t tokens;
    bool fits; // the share, and a sequence of full length
};

struct fit_serving {
    bool any;                                                                 // there is a cache of keys and values
    const struct fit_served *served;                                          // borrowed from the run
    uint64_t weight_bytes, cache_bytes;                                       // the peak of each
    uint64_t loading_bytes, profiling_bytes, cache_peak_bytes, capture_bytes; // live peak in each phase; 0: no such phase
    uint64_t token_bytes;                                                     // 0 if unknown
    int64_t before_bytes;                                                     // of the share, not used by the cache
    int64_t beyond_bytes;                                                     // in use beyond the share, on the device where it ran
    uint64_t held_bytes;                                                      // reserved peak, with activations as while profiling
};

// The most that the driver takes for kernels when they first run, in published start-up logs of one card (docs/fit.md): they print 0.03 to
// 0.25 GiB. Of that, 0.03 GiB is simulated; the rest is not, because no rule for it is known. An engine that measures the device counts
// it, so on a real card its cache is smaller by up to this much.
#define FIT_KERNEL_BYTES ((uint64_t)225 << 20)

// Fills *serving from the holding that needs the most.
void fit_serving_find(const struct fit_verdict *verdict, struct fit_serving *serving);
// Returns whether the engine sizes its cache by the device's memory. If so, this decides what fits.
bool fit_serving_by_share(const struct fit_serving *serving);
struct fit_serving_card fit_serving_on(const struct fit_serving *serving, const struct fit_verdict *verdict, const struct fit_card *card);
// Judges the cards again by what they can serve.
void fit_serving_judge(const struct fit_serving *serving, struct fit_verdict *verdict);
void fit_serving_print(FILE *page, const struct fit_serving *serving, const struct fit_verdict *verdict);
// Writes an object. There must be a cache of keys and values.
void fit_serving_json(struct vr_json *json, const char *name, const struct fit_serving *serving, const struct fit_verdict *verdict);
// dummy_weights: whether the option was given. A remedy is printed unless it was, or the engine itself uses dummy weights.
void fit_host_print(FILE *page, const struct fit_run *run, bool dummy_weights);

#endif
