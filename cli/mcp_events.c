// Tools for moments and lifetimes: at, lifetimes.

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "mcp.h"
#include "vram/report.h"

#define BYTES(bytes)   mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})
#define NUMBER(number) mcp_number((number), (char[MCP_BYTES_CAPACITY]){0})

enum { FRAMES_OF_EVENT = 24, LIVES = 12 };

static double number_in(const cJSON *json, const char *name, double otherwise) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static uint64_t bytes_in(const cJSON *json, const char *name) {
    const double value = number_in(json, name, 0);
    return value > 0 ? (uint64_t)value : 0;
}

void mcp_frames(struct mcp_answer *answer, const cJSON *json, int most) {
    const cJSON *frames = cJSON_GetObjectItemCaseSensitive(json, "frames"), *frame;
    int shown = 0;
    cJSON_ArrayForEach(frame, frames) {
        const cJSON *name = cJSON_GetArrayItem(frame, 0), *file = cJSON_GetArrayItem(frame, 1), *line = cJSON_GetArrayItem(frame, 2);
        if (!cJSON_IsString(name) || !cJSON_IsString(file) || shown == most) break;
        if (cJSON_IsNumber(line) && line->valuedouble > 0)
            mcp_line(answer, "      %s:%.0f:%s", file->valuestring, line->valuedouble, name->valuestring);
        else
            mcp_line(answer, "      %s:%s", file->valuestring, name->valuestring);
        shown++;
    }
    if (cJSON_GetArraySize(frames) > shown) mcp_line(answer, "      and %d more frames", cJSON_GetArraySize(frames) - shown);
}

void mcp_tool_at(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    int64_t event = 0;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL) return;
    if (device->events == 0) {
        mcp_fail(answer, "device %u has no events: only its final state is recorded", (unsigned)device->device);
        return;
    }
    if (!mcp_count(arguments, "event", 0, (int64_t)device->events - 1, &event, answer)) return;
    cJSON *json = mcp_ask(open, answer, "event?device=%u&event=%" PRId64, (unsigned)device->device, event);
    if (json == NULL) return;
    mcp_line(answer, "event %" PRId64 " of %s: %s of %s%s%s on stream %.0f", event, NUMBER(device->events), mcp_text(json, "action", ""),
             BYTES(bytes_in(json, "bytes")), mcp_text(json, "label", NULL) == NULL ? "" : ", ", mcp_text(json, "label", ""),
             number_in(json, "stream", 0));
    mcp_line(answer, "after it: allocated %s, active %s, reserved %s", BYTES(bytes_in(json, "allocated_after")),
             BYTES(bytes_in(json, "active_after")), BYTES(bytes_in(json, "reserved_after")));
    if (cJSON_GetObjectItemCaseSensitive(json, "device_free_bytes") != NULL)
        mcp_line(answer, "free in the driver %s", BYTES(bytes_in(json, "device_free_bytes")));
    mcp_frames(answer, json, FRAMES_OF_EVENT);
    mcp_next(answer, "peak {\"file\": \"r%u\", \"at\": \"%" PRId64 "\"} - what held memory then", open->id, event);
    cJSON_Delete(json);
}

static void say_lives(struct mcp_answer *answer, const struct vram_report_live *live, int64_t top) {
    mcp_line(answer, "allocated and freed within the history: %s in %s allocations; allocated and kept: %s in %s",
             BYTES(live->born_and_freed.bytes), NUMBER(live->born_and_freed.count), BYTES(live->born_and_kept.bytes),
             NUMBER(live->born_and_kept.count));
    mcp_line(answer, "from before the history and freed: %s in %s; and kept: %s in %s", BYTES(live->inherited_and_freed.bytes),
             NUMBER(live->inherited_and_freed.count), BYTES(live->inherited_and_kept.bytes), NUMBER(live->inherited_and_kept.count));
    mcp_line(answer, "the largest allocation: %s; the longest lived of those freed:", BYTES(live->largest_bytes));
    for (size_t i = 0; i < live->longest_count && (int64_t)i < top; i++) {
        const struct vram_report_lifetime *life = &live->longest[i];
        char time[48] = "";
        if (life->has_time) (void)snprintf(time, sizeof time, ", %.6f s", (double)life->elapsed_us / 1e6);
        mcp_line(answer, "  %s at 0x%" PRIx64 ", events %" PRIu64 " to %" PRIu64 "%s: %s", BYTES(life->size_bytes), life->address,
                 life->birth_event, life->death_event, time, life->site == NULL ? "unknown" : life->site);
    }
}

static void say_life(struct mcp_answer *answer, const cJSON *life) {
    const double birth = number_in(life, "birth_event", -1), death = number_in(life, "death_event", -1);
    char from[48], to[48];
    (void)snprintf(from, sizeof from, birth < 0 ? "from before the history" : "allocated by event %.0f", birth);
    (void)snprintf(to, sizeof to, death < 0 ? "never freed" : "freed by event %.0f", death);
    mcp_line(answer, "%s: %s on stream %.0f, %s, %s", mcp_text(life, "label", ""), BYTES(bytes_in(life, "bytes")),
             number_in(life, "stream", 0), from, to);
    mcp_frames(answer, life, LIVES);
}

void mcp_tool_lifetimes(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    int64_t top = LIVES;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL || !mcp_count(arguments, "top", 1, 1000, &top, answer)) return;
    const char *address = mcp_text(arguments, "address", "");
    if (address[0] == '\0') {
        say_lives(answer, &device->allocated, top);
        if (device->allocated.longest_count != 0)
            mcp_next(answer, "lifetimes {\"file\": \"r%u\", \"address\": \"0x%" PRIx64 "\"} - what else was at this address, with stacks",
                     open->id, device->allocated.longest[0].address);
        else
            mcp_next(answer, "peak {\"file\": \"r%u\"}", open->id);
        return;
    }
    uint64_t rows[LIVES], count;
    if (!mcp_search(open, device->device, address, rows, top < LIVES ? (size_t)top : LIVES, &count, answer)) return;
    mcp_line(answer, "allocations at %s: %s", address, NUMBER(count));
    for (size_t i = 0; i < count && i < LIVES && (int64_t)i < top; i++) {
        cJSON *life = mcp_ask(open, answer, "allocation?device=%u&row=%" PRIu64, (unsigned)device->device, rows[i]);
        if (life == NULL) return;
        say_life(answer, life);
        cJSON_Delete(life);
    }
    mcp_next(answer, "at {\"file\": \"r%u\", \"event\": N} - the state of memory when one of these was allocated or freed", open->id);
}

// Tool marks: the marks that the explorer finds, each with the memory before its first event and after its last.

enum { SHOWN_MARKS = 12 };

// Computes the allocated bytes just before `event`. Returns false with a failed answer.
static bool allocated_before(struct mcp_recording *open, const struct vram_report_device *device, uint64_t event, uint64_t *bytes,
                             struct mcp_answer *answer) {
    *bytes = device->allocated.start.bytes;
    if (event == 0) return true;
    const uint64_t last = device->events - 1, at = event - 1 < last ? event - 1 : last;
    cJSON *json = mcp_ask(open, answer, "event?device=%u&event=%" PRIu64, (unsigned)device->device, at);
    if (json == NULL) return false;
    *bytes = mcp_whole(json, "allocated_after");
    cJSON_Delete(json);
    return true;
}

static bool say_mark(struct mcp_recording *open, const struct vram_report_device *device, const cJSON *mark, struct mcp_answer *answer) {
    const uint64_t first = mcp_whole(mark, "event"), end = mcp_whole(mark, "end_event");
    uint64_t before, after;
    if (!allocated_before(open, device, first, &before, answer)) return false;
    if (cJSON_GetObjectItemCaseSensitive(mark, "end_event") == NULL) {
        mcp_line(answer, "  event %s, %s, %s: %s", NUMBER(first), mcp_text(mark, "kind", ""), BYTES(before), mcp_text(mark, "name", ""));
        return true;
    }
    if (!allocated_before(open, device, end, &after, answer)) return false;
    mcp_line(answer, "  events %s to %s, %s, %s -> %s: %s", NUMBER(first), NUMBER(end), mcp_text(mark, "kind", ""), BYTES(before),
             BYTES(after), mcp_text(mark, "name", ""));
    return true;
}

void mcp_tool_marks(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    int64_t top = SHOWN_MARKS;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL || !mcp_count(arguments, "top", 1, 1000, &top, answer)) return;
    const char *match = mcp_text(arguments, "match", "");
    cJSON *json = mcp_ask(open, answer, "marks?device=%u", (unsigned)device->device);
    if (json == NULL) return;
    const cJSON *mark;
    uint64_t found = 0, shown = 0;
    mcp_line(answer, "allocated at named moments, in the order of the recording:");
    cJSON_ArrayForEach(mark, cJSON_GetObjectItemCaseSensitive(json, "marks")) {
        if (strstr(mcp_text(mark, "name", ""), match) == NULL && strstr(mcp_text(mark, "kind", ""), match) == NULL) continue;
        if (found++ >= (uint64_t)top) continue;
        if (!say_mark(open, device, mark, answer)) break;
        shown++;
    }
    if (!answer->is_error && found > shown) mcp_line(answer, "  and %s more", NUMBER(found - shown));
    if (!answer->is_error && found == 0) mcp_line(answer, "  none%s", match[0] == '\0' ? " is recorded" : " of this name");
    cJSON_Delete(json);
    mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"annotation\"} - how much memory of each stage is live at the peak", open->id);
}
