// What paged memory would have saved, in the report's words: a part of the answers of `why` and `cure`.
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "vram/replay.h"
#include "vram/report.h"

// Beside what the tool itself waits for.
#define PATIENCE_NS (MCP_PATIENCE_NS / 4 * 3)

static bool keep(void *user, const char *bytes, size_t length) {
    char *text = user;
    const size_t used = strlen(text), room = MCP_ANSWER_BYTES / 2 - used - 1, kept = length < room ? length : room;
    memcpy(text + used, bytes, kept);
    text[used + kept] = '\0';
    return true;
}

static void say(struct mcp_answer *answer, const struct vram_paged_saving *saving) {
    char text[MCP_ANSWER_BYTES / 2] = "";
    if (vram_paged_saving_text(saving, keep, text) == VRAM_OK && text[0] != '\0') mcp_line(answer, "%s", text);
}

void mcp_say_saving(struct mcp_answer *answer, const struct mcp_recording *open, int64_t device) {
    struct vram_paged_savings *savings = NULL;
    const size_t devices = open->report->device_count == 0 ? 1 : open->report->device_count;
    if (vram_paged_savings_find(open->recording, open->report, PATIENCE_NS / devices, &savings, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < savings->count; i++) {
        if (device < 0 || savings->savings[i].device == device) say(answer, &savings->savings[i]);
    }
    vram_paged_savings_destroy(savings);
}
