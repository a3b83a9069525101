// Questions to a recording's explorer (docs/reference/formats/queries.md).
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "mcp.h"
#include "vram/explorer.h"

enum { HEAD_BYTES = 8 }; // of an answer: the length of its JSON, where its columns begin

bool mcp_keep(void *user, const char *bytes, size_t length) {
    struct mcp_kept *kept = user;
    char *longer = realloc(kept->bytes, kept->length + length + 1);
    if (longer == NULL) return false;
    kept->bytes = longer;
    memcpy(kept->bytes + kept->length, bytes, length);
    kept->length += length;
    return true;
}

static bool explore(struct mcp_recording *open, struct vram_error *error) {
    if (open->explorer != NULL) return true;
    struct vram_explorer *explorer;
    if (vram_explorer_create(&explorer) != VRAM_OK) return false;
    if (vram_explorer_add(explorer, open->recording, input_base_name(open->path), open->bytes, error) != VRAM_OK) {
        vram_explorer_destroy(explorer);
        return false;
    }
    open->explorer = explorer;
    return true;
}

// The answer as it comes: its bytes are given to the caller. False with a failed answer.
static bool ask(struct mcp_recording *open, const char *query, struct mcp_kept *kept, struct mcp_answer *answer) {
    struct vram_error error = {.status = VRAM_NO_HOST_MEMORY, .message = "no host memory"};
    *kept = (struct mcp_kept){.bytes = NULL};
    if (explore(open, &error) && vram_explorer_ask(open->explorer, query, mcp_keep, kept, &error) == VRAM_OK && kept->length >= HEAD_BYTES)
        return true;
    mcp_fail(answer, "%s", error.message);
    free(kept->bytes);
    return false;
}

static uint32_t number_at(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static cJSON *json_of(const struct mcp_kept *kept) {
    const uint32_t length = number_at(kept->bytes);
    return length <= kept->length - HEAD_BYTES ? cJSON_ParseWithLength(kept->bytes + HEAD_BYTES, length) : NULL;
}

cJSON *mcp_ask(struct mcp_recording *open, struct mcp_answer *answer, const char *format, ...) {
    char query[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(query, sizeof query, format, arguments);
    va_end(arguments);
    struct mcp_kept kept;
    if (length < 0 || (size_t)length >= sizeof query) {
        mcp_fail(answer, "the question is too long");
        return NULL;
    }
    if (!ask(open, query, &kept, answer)) return NULL;
    cJSON *json = json_of(&kept);
    if (json == NULL) mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    free(kept.bytes);
    return json;
}

// The column of bits, a byte per eight rows, and its length; NULL where the answer has none.
static const unsigned char *bits_of(const struct mcp_kept *kept, const cJSON *json, const char *name, size_t *length) {
    const cJSON *column = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "columns"), name);
    const cJSON *offset = cJSON_GetObjectItemCaseSensitive(column, "offset"), *count = cJSON_GetObjectItemCaseSensitive(column, "count");
    if (!cJSON_IsNumber(offset) || !cJSON_IsNumber(count)) return NULL;
    const size_t at = (size_t)number_at(kept->bytes + 4) + (size_t)offset->valuedouble;
    *length = (size_t)count->valuedouble;
    return at <= kept->length && *length <= kept->length - at ? (const unsigned char *)kept->bytes + at : NULL;
}

bool mcp_search(struct mcp_recording *open, uint32_t device, const char *text, uint64_t *rows, size_t capacity, uint64_t *count,
                struct mcp_answer *answer) {
    char encoded[700], query[800];
    struct mcp_kept kept;
    mcp_encode(text, encoded, sizeof encoded);
    (void)snprintf(query, sizeof query, "search?device=%u&text=%s", (unsigned)device, encoded);
    if (!ask(open, query, &kept, answer)) return false;
    cJSON *json = json_of(&kept);
    size_t length = 0, found = 0;
    const unsigned char *bits = bits_of(&kept, json, "row_bits", &length);
    for (size_t i = 0; bits != NULL && i < 8 * length && found < capacity; i++) {
        if (bits[i / 8] >> (i % 8) & 1) rows[found++] = i;
    }
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(json, "allocations");
    *count = cJSON_IsNumber(all) ? (uint64_t)all->valuedouble : 0;
    cJSON_Delete(json);
    free(kept.bytes);
    return true;
}

void mcp_encode(const char *text, char *encoded, size_t capacity) {
    static const char digits[] = "0123456789ABCDEF";
    size_t at = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && at + 4 < capacity; c++) {
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')) {
            encoded[at++] = (char)*c;
        } else {
            encoded[at++] = '%';
            encoded[at++] = digits[*c >> 4];
            encoded[at++] = digits[*c & 15];
        }
    }
    encoded[at] = '\0';
}
