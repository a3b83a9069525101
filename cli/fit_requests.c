#include "fit_requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool reserve(void **rows, size_t *capacity, size_t count, size_t row_bytes) {
    if (count < *capacity) return true;
    const size_t more = *capacity == 0 ? 64 : 2 * *capacity;
    void *moved = realloc(*rows, more * row_bytes);
    if (moved == NULL) return false;
    *rows = moved;
    *capacity = more;
    return true;
}

bool fit_requests_add_piece(struct fit_requests *requests, uint64_t id, uint64_t tokens) {
    void *pieces = requests->pieces;
    if (!reserve(&pieces, &requests->piece_capacity, requests->piece_count, sizeof *requests->pieces)) return false;
    requests->pieces = pieces;
    requests->pieces[requests->piece_count++] = (struct fit_piece){.id = id, .tokens = tokens};
    return true;
}

bool fit_requests_add(struct fit_requests *requests, uint64_t arrival_ns, uint64_t prompt_tokens, uint64_t output_tokens) {
    void *rows = requests->rows;
    if (!reserve(&rows, &requests->capacity, requests->count, sizeof *requests->rows)) return false;
    requests->rows = rows;
    const struct fit_request *last = requests->count == 0 ? NULL : &requests->rows[requests->count - 1];
    const size_t first = last == NULL ? 0 : last->first_piece + last->piece_count;
    requests->rows[requests->count++] = (struct fit_request){.arrival_ns = arrival_ns,
                                                             .prompt_tokens = prompt_tokens,
                                                             .output_tokens = output_tokens,
                                                             .first_piece = first,
                                                             .piece_count = requests->piece_count - first};
    return true;
}

void fit_requests_release(struct fit_requests *requests) {
    free(requests->rows);
    free(requests->pieces);
    *requests = (struct fit_requests){.rows = NULL};
}

// Requests that arrive together keep their order, which is that of their pieces.
static int by_arrival(const void *a, const void *b) {
    const struct fit_request *one = a, *other = b;
    if (one->arrival_ns != other->arrival_ns) return one->arrival_ns < other->arrival_ns ? -1 : 1;
    if (one->first_piece != other->first_piece) return one->first_piece < other->first_piece ? -1 : 1;
    return 0;
}

bool fit_requests_open(struct fit_requests *requests, const char *text, char wrong[FIT_WRONG_CAPACITY]) {
    *requests = (struct fit_requests){.rows = NULL};
    wrong[0] = '\0';
    bool good = false;
    if (access(text, F_OK) == 0)
        good = fit_requests_file(requests, text, wrong);
    else if (strchr(text, '=') != NULL)
        good = fit_requests_shape(requests, text, wrong);
    else
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "'%.200s' is neither a file nor a shape: rate=8/s,prompt=512..4096,output=256,count=1000",
                       text);
    if (good && requests->count == 0) {
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "'%.200s' has no requests", text);
        good = false;
    }
    if (!good && wrong[0] == '\0') (void)snprintf(wrong, FIT_WRONG_CAPACITY, "host memory ran out");
    if (!good) fit_requests_release(requests);
    if (good) qsort(requests->rows, requests->count, sizeof *requests->rows, by_arrival);
    return good;
}

static bool write_row(const struct fit_requests *requests, const struct fit_request *row, vram_write write, void *user) {
    char text[64];
    int length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, row->arrival_ns, row->prompt_tokens, row->output_tokens);
    bool good = write(user, text, (size_t)length);
    for (size_t i = 0; i < row->piece_count && good; i++) {
        const struct fit_piece *piece = &requests->pieces[row->first_piece + i];
        length = snprintf(text, sizeof text, " %" PRIu64 ":%" PRIu64, piece->id, piece->tokens);
        good = write(user, text, (size_t)length);
    }
    return good && write(user, "\n", 1);
}

bool fit_requests_write(const struct fit_requests *requests, vram_write write, void *user) {
    char text[64];
    for (size_t i = 0; i < requests->count; i++)
        if (!write_row(requests, &requests->rows[i], write, user)) return false;
    const int length = snprintf(text, sizeof text, "together %" PRIu64 "\n", requests->together);
    return write(user, text, (size_t)length);
}
