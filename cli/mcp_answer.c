#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "mcp.h"
#include "ui.h"

// What the message has around the text, with an id of 200 bytes.
#define ENVELOPE_BYTES 320
// "next: ", and the device where the answer is about one of several.
#define DEVICE_BYTES 40
// For the last two lines.
#define KEPT_BYTES (sizeof(((struct mcp_answer *)NULL)->next) + 64 + DEVICE_BYTES)

// How long the text is as a string of JSON, without its quotes; SIZE_MAX without memory.
static size_t cost_of(const char *line) {
    struct vr_text text = {.bytes = NULL};
    struct vr_json json;
    vr_json_init(&json, &text, false);
    vr_json_string(&json, NULL, line);
    const size_t cost = vr_text_status(&text) == VRAM_OK ? text.length - 2 : SIZE_MAX;
    vr_text_release(&text);
    return cost;
}

// The line as it is shown; given to the caller. NULL without memory.
static char *shown_line(const char *format, va_list arguments) {
    char *plain = NULL, *shown = NULL;
    size_t length;
    FILE *file = open_memstream(&plain, &length);
    if (file == NULL) return NULL;
    (void)vfprintf(file, format, arguments);
    const bool made = fclose(file) == 0;
    file = made ? open_memstream(&shown, &length) : NULL;
    if (file != NULL) ui_put(file, plain);
    const bool whole = file != NULL && fclose(file) == 0;
    free(plain);
    if (whole) return shown;
    free(shown);
    return NULL;
}

static bool append(struct mcp_answer *answer, const char *line, size_t kept) {
    const size_t length = strlen(line), text_cost = cost_of(line), cost = text_cost + 2; // with the line's end
    if (text_cost == SIZE_MAX || answer->cost + cost + kept + ENVELOPE_BYTES > MCP_ANSWER_BYTES) return false;
    memcpy(answer->text + answer->length, line, length);
    answer->length += length;
    answer->text[answer->length++] = '\n';
    answer->text[answer->length] = '\0';
    answer->cost += cost;
    return true;
}

void mcp_line(struct mcp_answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *line = shown_line(format, arguments);
    va_end(arguments);
    // After the first line without room none may follow: a shorter one would stand in a wrong place.
    if (line == NULL || answer->missed != 0 || !append(answer, line, KEPT_BYTES)) answer->missed++;
    free(line);
}

void mcp_next(struct mcp_answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *line = shown_line(format, arguments);
    va_end(arguments);
    (void)snprintf(answer->next, sizeof answer->next, "%s", line == NULL ? "" : line);
    // A name may be cut inside of a character.
    size_t length = strlen(answer->next);
    while (length != 0 && length == sizeof answer->next - 1 && ((unsigned char)answer->next[length - 1] & 0xC0) == 0x80)
        answer->next[--length] = '\0';
    if (length == sizeof answer->next - 2 && ((unsigned char)answer->next[length - 1] & 0xC0) == 0xC0) answer->next[length - 1] = '\0';
    free(line);
}

void mcp_fail(struct mcp_answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *line = shown_line(format, arguments);
    va_end(arguments);
    *answer = (struct mcp_answer){.is_error = true};
    // A sentence that is longer than an answer names something absurd.
    if (line != NULL && strlen(line) > MCP_ANSWER_BYTES / 4) line[MCP_ANSWER_BYTES / 4] = '\0';
    (void)append(answer, line == NULL ? "no host memory" : line, 0);
    free(line);
}

void mcp_about(struct mcp_answer *answer, uint32_t device) { answer->about = (uint64_t)device + 1; }

// The file's argument of the call that comes next, up to its end; NULL where the tool takes no device, or the device is there.
static const char *end_of_file(const char *next) {
    static const char file[] = "{\"file\": \"";
    const char *at = strstr(next, file);
    const bool whole = strncmp(next, "tune ", 5) == 0 || strncmp(next, "open ", 5) == 0;
    if (at == NULL || whole || strstr(next, "\"device\": ") != NULL) return NULL;
    at = strchr(at + sizeof file - 1, '"');
    return at == NULL ? NULL : at + 1;
}

// "next: why {"file": "r1", "device": 1} - ..."
static void put_next(const struct mcp_answer *answer, char *line, size_t size) {
    const char *end = answer->about == 0 ? NULL : end_of_file(answer->next);
    if (end == NULL)
        (void)snprintf(line, size, "next: %s", answer->next);
    else
        (void)snprintf(line, size, "next: %.*s, \"device\": %" PRIu64 "%s", (int)(end - answer->next), answer->next, answer->about - 1,
                       end);
}

void mcp_end(struct mcp_answer *answer) {
    char line[sizeof answer->next + DEVICE_BYTES];
    if (answer->missed != 0) {
        (void)snprintf(line, sizeof line, "(%" PRIu64 " more lines had no room)", answer->missed);
        (void)append(answer, line, 0);
    }
    if (answer->next[0] == '\0') return;
    put_next(answer, line, sizeof line);
    (void)append(answer, line, 0);
}

const char *mcp_number(uint64_t number, char text[MCP_BYTES_CAPACITY]) {
    char digits[24];
    const size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *mcp_counted(uint64_t number, const char *noun, char text[MCP_BYTES_CAPACITY]) {
    const size_t length = strlen(mcp_number(number, text));
    (void)snprintf(text + length, MCP_BYTES_CAPACITY - length, " %s%s", noun, number == 1 ? "" : "s");
    return text;
}

const char *mcp_bytes(uint64_t bytes, char text[MCP_BYTES_CAPACITY]) {
    char size[UI_SIZE_CAPACITY];
    const size_t length = strlen(mcp_number(bytes, text));
    if (bytes < 1024)
        (void)snprintf(text + length, MCP_BYTES_CAPACITY - length, " B");
    else
        (void)snprintf(text + length, MCP_BYTES_CAPACITY - length, " B (%s)", ui_size(bytes, size));
    return text;
}
