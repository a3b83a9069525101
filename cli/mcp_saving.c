// What would have saved memory, in the report's words: paged memory and changes of the program. Parts of the answers of `why` and `cure`.
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "vram/demand.h"
#include "vram/replay.h"
#include "vram/report.h"

// Beside what the tool itself waits for.
#define PATIENCE_NS (MCP_PATIENCE_NS / 4 * 3)

#define BYTES(bytes) mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})

void mcp_say_remedies(struct mcp_answer *answer, const struct vram_report_demand *demand, size_t most) {
    if (demand == NULL) return;
    for (size_t i = 0; i < demand->remedy_count && i < most; i++) {
        const struct vram_report_remedy *remedy = &demand->remedies[i];
        mcp_line(answer, "%zu. %s", i + 1, remedy->text);
        mcp_line(answer, "   exactly %s less, %s in all; %s", BYTES(remedy->saved_bytes), BYTES(remedy->left_bytes), remedy->basis);
    }
}

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
