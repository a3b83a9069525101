// fit_requests.h: the requests that `vram fit --requests` plays against a model server: read from a file, or made from a shape.
#ifndef CLI_FIT_REQUESTS_H
#define CLI_FIT_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vram/status.h"

// A part of a prompt that other requests have too: equal ids mean equal tokens.
struct fit_piece {
    uint64_t id, tokens;
};

struct fit_request {
    uint64_t arrival_ns; // after the first possible moment
    uint64_t prompt_tokens, output_tokens;
    size_t first_piece, piece_count; // the beginning of the prompt
};

struct fit_requests {
    struct fit_request *rows; // by arrival
    size_t count, capacity;
    struct fit_piece *pieces;
    size_t piece_count, piece_capacity;
    uint64_t together; // most in the engine at once; 0: any number
};

#define FIT_REQUESTS_MOST  10000000
#define FIT_TOKENS_MOST    UINT64_C(100000000) // of one request
#define FIT_WRONG_CAPACITY 600

// Reads the file `text`; if there is none, reads `text` as a shape: "rate=8/s,prompt=512..4096,output=256,count=1000". On failure returns
// false, with a message in `wrong` and an empty *requests. Release with fit_requests_release().
bool fit_requests_open(struct fit_requests *requests, const char *text, char wrong[FIT_WRONG_CAPACITY]);
void fit_requests_release(struct fit_requests *requests);
// Writes the lines that the engine's player reads (adapters/fit/vram_fit_requests.py). Returns false if `write` does.
bool fit_requests_write(const struct fit_requests *requests, vram_write write, void *user);

// Add requests from a shape, a file or an open file. Rows need not be in order.
bool fit_requests_shape(struct fit_requests *requests, const char *text, char wrong[FIT_WRONG_CAPACITY]);
bool fit_requests_file(struct fit_requests *requests, const char *path, char wrong[FIT_WRONG_CAPACITY]);
bool fit_requests_rows(struct fit_requests *requests, FILE *file, char wrong[FIT_WRONG_CAPACITY]); // of an open file
// Both return false if host memory runs out. A piece belongs to the row that is added next.
bool fit_requests_add_piece(struct fit_requests *requests, uint64_t id, uint64_t tokens);
bool fit_requests_add(struct fit_requests *requests, uint64_t arrival_ns, uint64_t prompt_tokens, uint64_t output_tokens);

#endif
