// fit_played.h: what a model server did with the requests that `vram fit --requests` played, as its own scheduler counted.
#ifndef CLI_FIT_PLAYED_H
#define CLI_FIT_PLAYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/facts.h"

struct vr_json;
struct fit_serving;
struct fit_verdict;

// The facts of the player (adapters/fit/vram_fit_requests.py), by their names in its file: X(type, member, absent, "sentence")
#define FIT_PLAYED_FACTS(X)                                                                                                                \
    X(U64, asked, ALWAYS, "number of requests in the file or shape")                                                                       \
    X(U64, served, ALWAYS, "number of requests that got all their tokens")                                                                 \
    X(U64, refused, ALWAYS, "number of requests longer than the engine accepts")                                                           \
    X(U64, refused_tokens, NULL_IF_EMPTY, "tokens of the shortest refused request, prompt and output; null: none")                         \
    X(U64, steps, ALWAYS, "steps of the engine")                                                                                           \
    X(U64, lasted_ns, ALWAYS, "virtual time, as if the card ran at its peak rate")                                                         \
    X(U64, prompt_tokens, ALWAYS, "prompt tokens of the served requests")                                                                  \
    X(U64, output_tokens, ALWAYS, "output tokens of the served requests")                                                                  \
    X(U64, blocks, ALWAYS, "highest number of cache blocks in use")                                                                        \
    X(U64, blocks_at_ns, ALWAYS, "virtual time at which it was first reached")                                                             \
    X(U64, pool_blocks, ALWAYS, "number of cache blocks for requests")                                                                     \
    X(U64, running, ALWAYS, "highest number of running requests")                                                                          \
    X(U64, running_at_ns, ALWAYS, "virtual time at which it was first reached")                                                            \
    X(U64, waiting, ALWAYS, "highest number of waiting requests")                                                                          \
    X(U64, waiting_at_ns, ALWAYS, "virtual time at which it was first reached")                                                            \
    X(U64, preemptions, ALWAYS, "number of times a running request lost its blocks and was restarted")                                     \
    X(U64, prefix_queried_tokens, ALWAYS, "tokens looked up in the prefix cache, without those of preempted requests")                     \
    X(U64, prefix_hit_tokens, ALWAYS, "tokens found there")                                                                                \
    X(U64, longest_tokens, ALWAYS, "tokens of the longest served request, prompt and output")                                              \
    X(U64, request_blocks, NULL_IF_EMPTY, "highest number of cache blocks that one request held; null: not known")                         \
    X(U64, concurrency, NULL_IF_EMPTY, "highest number of requests at once that the shape asks for; null: not limited")

struct fit_played {
    bool any;
    FIT_PLAYED_FACTS(VRAM_FACT_MEMBER)
};

// Reads the player's file. Returns false, with *played unchanged, if there is none.
bool fit_played_read(struct fit_played *played, const char *path);
// Returns the most requests that can run at once without a preemption, even if all hold as many blocks as the largest one served; 0: not
// known.
uint64_t fit_played_safe_sequences(const struct fit_played *played, const struct fit_serving *serving);
void fit_played_print(FILE *page, const struct fit_played *played, const struct fit_serving *serving, const struct fit_verdict *verdict);
// Writes an object. Requests must have been played.
void fit_played_json(struct vr_json *json, const char *name, const struct fit_played *played, const struct fit_serving *serving,
                     const struct fit_verdict *verdict);

#endif
