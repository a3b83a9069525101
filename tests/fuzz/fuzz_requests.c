// Reads any bytes as a file of requests and as a shape: returns requests or a message, never a crash. The pieces of a prompt are no longer
// than it.
#define _POSIX_C_SOURCE 200809L // fmemopen
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/fit_requests.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct fit_requests *requests, bool good, const char *wrong) {
    if (!good && memchr(wrong, '\0', FIT_WRONG_CAPACITY) == NULL) __builtin_trap();
    for (size_t i = 0; i < requests->count; i++) {
        const struct fit_request *row = &requests->rows[i];
        uint64_t tokens = 0;
        if (row->prompt_tokens == 0 || row->output_tokens == 0 || row->first_piece + row->piece_count > requests->piece_count)
            __builtin_trap();
        for (size_t j = 0; j < row->piece_count; j++) tokens += requests->pieces[row->first_piece + j].tokens;
        if (tokens > row->prompt_tokens) __builtin_trap();
    }
    fit_requests_release(requests);
}

// Returns whether no number has more than five digits: a shape of millions of requests takes seconds.
static bool is_small(const char *text) {
    size_t digits = 0;
    for (; *text != '\0' && digits <= 5; text++) digits = *text >= '0' && *text <= '9' ? digits + 1 : 0;
    return digits <= 5;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), wrong[FIT_WRONG_CAPACITY] = "";
    struct fit_requests requests = {.rows = NULL};
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    FILE *file = size == 0 ? NULL : fmemopen(text, size, "r");
    if (file != NULL) {
        const bool good = fit_requests_rows(&requests, file, wrong);
        (void)fclose(file);
        check(&requests, good, wrong);
    }
    if (is_small(text) && size < 512) {
        const bool good = strlen(text) == size && fit_requests_shape(&requests, text, wrong);
        check(&requests, good, wrong);
    }
    free(text);
    return 0;
}
