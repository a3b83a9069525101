// Opens, finds and closes recordings.

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input.h"
#include "mcp.h"
#include "ui.h"
#include "vram/explorer.h"
#include "vram/recording.h"
#include "vram/report.h"

void mcp_close(struct mcp_recording *open) {
    vram_report_destroy(open->report);
    // The explorer owns the recording.
    if (open->explorer != NULL)
        vram_explorer_destroy(open->explorer);
    else
        vram_recording_destroy(open->recording);
    free(open->path);
    *open = (struct mcp_recording){.id = 0};
}

static void stamp_file(struct mcp_recording *open, const struct stat *facts) {
    open->stamp_ns = (uint64_t)facts->st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)facts->st_mtim.tv_nsec;
    open->file_bytes = (uint64_t)facts->st_size;
    open->inode = (uint64_t)facts->st_ino;
}

static bool has_changed(const struct mcp_recording *open) {
    struct stat facts;
    struct mcp_recording now = {.id = 0};
    if (stat(open->path, &facts) != 0) return false; // keep what was read from it
    stamp_file(&now, &facts);
    return now.stamp_ns != open->stamp_ns || now.file_bytes != open->file_bytes || now.inode != open->inode;
}

static struct mcp_recording *find_recording(struct mcp_server *server, const char *name) {
    unsigned id = 0;
    char end;
    const bool is_id = sscanf(name, "r%u%c", &id, &end) == 1;
    for (size_t i = 0; i < MCP_OPEN_MOST; i++) {
        struct mcp_recording *open = &server->open[i];
        if (open->id != 0 && ((is_id && open->id == id) || strcmp(open->path, name) == 0)) return open;
    }
    return NULL;
}

static struct mcp_recording *place_for_recording(struct mcp_server *server) {
    struct mcp_recording *oldest = NULL;
    for (size_t i = 0; i < MCP_OPEN_MOST; i++) {
        if (server->open[i].id == 0) return &server->open[i];
        if (!server->open[i].held && (oldest == NULL || server->open[i].asked < oldest->asked)) oldest = &server->open[i];
    }
    // At most one of the four is in use by a search.
    mcp_close(oldest);
    return oldest;
}

// Reads the file. If that fails, the commands' error message becomes the answer.
static bool load_recording(const char *path, struct mcp_recording *open, struct mcp_answer *answer) {
    char *complaint = NULL;
    size_t length;
    struct stat facts;
    struct input_facts input;
    struct vram_error error;
    FILE *file = open_memstream(&complaint, &length);
    if (file == NULL) {
        mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        return false;
    }
    if (stat(path, &facts) == 0) {
        stamp_file(open, &facts);
        if (!S_ISREG(facts.st_mode)) { // a pipe may never end
            (void)fclose(file);
            free(complaint);
            mcp_fail(answer, "vram: %s: not a regular file", path);
            return false;
        }
    }
    FILE *before = ui_says_to(file);
    int code = input_named_recording(path, &open->recording, &input);
    (void)ui_says_to(before);
    (void)fclose(file);
    if (code != CLI_OK) {
        if (complaint != NULL) complaint[strcspn(complaint, "\n")] = '\0';
        mcp_fail(answer, "%s", complaint == NULL || complaint[0] == '\0' ? "cannot read the recording" : complaint);
    } else if (vram_report_create(open->recording, &(struct vram_report_options){.top = 0}, &open->report, &error) != VRAM_OK) {
        mcp_fail(answer, "vram: %s: %s", path, error.message);
        code = CLI_BAD_INPUT;
    } else {
        open->bytes = input.bytes;
        open->path = strdup(path);
        if (open->path == NULL) mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    }
    free(complaint);
    return code == CLI_OK && open->path != NULL;
}

struct mcp_recording *mcp_recording(struct mcp_server *server, const cJSON *arguments, const char *name, struct mcp_answer *answer) {
    return mcp_recording_of(server, mcp_text(arguments, name, ""), name, answer);
}

struct mcp_recording *mcp_recording_of(struct mcp_server *server, const char *wanted, const char *name, struct mcp_answer *answer) {
    if (wanted[0] == '\0' || strcmp(wanted, "-") == 0) {
        mcp_fail(answer, "%s: expected the path of a recording", name);
        return NULL;
    }
    struct mcp_recording *found = find_recording(server, wanted);
    if (found != NULL && !found->held && has_changed(found)) {
        char *path = strdup(found->path);
        struct mcp_recording again = {.id = 0};
        const bool loaded = path != NULL && load_recording(path, &again, answer);
        free(path);
        if (!loaded) {
            mcp_close(&again);
            return NULL;
        }
        again.id = found->id;
        mcp_close(found);
        *found = again;
    }
    if (found == NULL) {
        struct mcp_recording fresh = {.id = 0};
        if (!load_recording(wanted, &fresh, answer)) {
            mcp_close(&fresh);
            return NULL;
        }
        found = place_for_recording(server);
        fresh.id = ++server->ids;
        *found = fresh;
    }
    // Make it the most recently used recording, even among those of this call.
    found->asked = ++server->calls;
    return found;
}

// States which of several devices the answer is about, and why if the call did not name one.
static void say_choice(struct mcp_answer *answer, const struct vram_report_device *device, bool by_rule) {
    const char *why = !by_rule ? "" : device->oom_count != 0 ? ", which ran out of memory" : ", which has the highest peak";
    if (device->is_host)
        mcp_line(answer, "pinned host memory");
    else
        mcp_line(answer, "device %u%s", (unsigned)device->device, why);
    mcp_about(answer, device->device);
}

const struct vram_report_device *mcp_device(const struct mcp_recording *open, const cJSON *arguments, struct mcp_answer *answer) {
    int64_t wanted = -1;
    if (!mcp_count(arguments, "device", 0, UINT32_MAX, &wanted, answer)) return NULL;
    const struct vram_report_device *found = wanted < 0 ? vram_report_worst_device(open->report) : NULL;
    for (size_t i = 0; wanted >= 0 && i < open->report->device_count; i++) {
        if (open->report->devices[i].device == wanted) found = &open->report->devices[i];
    }
    if (found == NULL && wanted >= 0)
        mcp_fail(answer, "the recording has no device %lld", (long long)wanted);
    else if (found == NULL)
        mcp_fail(answer, "the recording has no events and no segments");
    else if (open->report->device_count > 1)
        say_choice(answer, found, wanted < 0);
    return found;
}

// Queries of a recording's explorer (docs/reference/formats/queries.md).

enum { HEAD_BYTES = 8 }; // of an answer: the length of its JSON; the columns follow the JSON

bool mcp_keep(void *user, const char *bytes, size_t length) {
    struct mcp_kept *kept = user;
    char *longer = realloc(kept->bytes, kept->length + length + 1);
    if (longer == NULL) return false;
    kept->bytes = longer;
    memcpy(kept->bytes + kept->length, bytes, length);
    kept->length += length;
    return true;
}

static bool explore_recording(struct mcp_recording *open, struct vram_error *error) {
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

// Queries the explorer and collects the raw answer, which the caller frees. Returns false with a failed answer.
static bool ask_explorer(struct mcp_recording *open, const char *query, struct mcp_kept *kept, struct mcp_answer *answer) {
    struct vram_error error = {.status = VRAM_NO_HOST_MEMORY, .message = "not enough host memory"};
    *kept = (struct mcp_kept){.bytes = NULL};
    if (explore_recording(open, &error) && vram_explorer_ask(open->explorer, query, mcp_keep, kept, &error) == VRAM_OK &&
        kept->length >= HEAD_BYTES)
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
    if (!ask_explorer(open, query, &kept, answer)) return NULL;
    cJSON *json = json_of(&kept);
    if (json == NULL) mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    free(kept.bytes);
    return json;
}

// Returns a column of bits, one byte per eight rows, and its length; NULL if the answer does not have it.
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
    if (!ask_explorer(open, query, &kept, answer)) return false;
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
