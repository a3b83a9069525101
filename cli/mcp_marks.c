// Named moments: marks, by the explorer's query of that name, with memory before the first event and after the last one of each.
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>

#include "mcp.h"
#include "vram/report.h"

#define BYTES(bytes)   mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})
#define NUMBER(number) mcp_number((number), (char[MCP_BYTES_CAPACITY]){0})

enum { SHOWN_MARKS = 12 };

// What was allocated when `event` was about to happen. False with a failed answer.
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
    mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"annotation\"} - what of each stage is live at the peak", open->id);
}
