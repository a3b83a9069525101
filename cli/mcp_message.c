#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/json.h"
#include "mcp.h"
#include "output.h"
#include "ui.h"
#include "vram/vram.h"

const char *mcp_text(const cJSON *arguments, const char *name, const char *otherwise) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    return cJSON_IsString(item) ? item->valuestring : otherwise;
}

bool mcp_count(const cJSON *arguments, const char *name, int64_t least, int64_t most, int64_t *number, struct mcp_answer *answer) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    if (item == NULL || cJSON_IsNull(item)) return true;
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value >= (double)least && value <= (double)most) || value != floor(value)) {
        mcp_fail(answer, "%s: expected a whole number from %lld to %lld", name, (long long)least, (long long)most);
        return false;
    }
    *number = (int64_t)value;
    return true;
}

bool mcp_size(const cJSON *arguments, const char *name, uint64_t *bytes, struct mcp_answer *answer) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    if (item == NULL || cJSON_IsNull(item)) return true;
    if (cJSON_IsString(item) && args_size(item->valuestring, bytes)) return true;
    if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p63) {
        *bytes = (uint64_t)item->valuedouble;
        return true;
    }
    mcp_fail(answer, "%s: expected a size such as 24GiB, or a number of bytes", name);
    return false;
}

// Bytes of the message around the text, with an id of 200 bytes.
#define ENVELOPE_BYTES 320
// "next: ", and the device if there are several.
#define DEVICE_BYTES 40
// Reserved for the last two lines.
#define KEPT_BYTES (sizeof(((struct mcp_answer *)NULL)->next) + 64 + DEVICE_BYTES)

// Returns the bytes of the text as a JSON string without quotes; SIZE_MAX if memory runs out.
static size_t cost_of(const char *line) {
    struct vr_text text = {.bytes = NULL};
    struct vr_json json;
    vr_json_init(&json, &text, false);
    vr_json_string(&json, NULL, line);
    const size_t cost = vr_text_status(&text) == VRAM_OK ? text.length - 2 : SIZE_MAX;
    vr_text_release(&text);
    return cost;
}

// Formats the line and makes control characters visible. The caller frees it. Returns NULL if memory runs out.
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

static bool append_line(struct mcp_answer *answer, const char *line, size_t kept) {
    const size_t length = strlen(line), text_cost = cost_of(line), cost = text_cost + 2; // with the newline
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
    // Drop all lines after the first that does not fit: a shorter one would appear out of order.
    if (line == NULL || answer->missed != 0 || !append_line(answer, line, KEPT_BYTES)) answer->missed++;
    free(line);
}

void mcp_next(struct mcp_answer *answer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *line = shown_line(format, arguments);
    va_end(arguments);
    (void)snprintf(answer->next, sizeof answer->next, "%s", line == NULL ? "" : line);
    // snprintf() may have cut the text inside a character.
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
    // A message longer than this quotes something absurd.
    if (line != NULL && strlen(line) > MCP_ANSWER_BYTES / 4) line[MCP_ANSWER_BYTES / 4] = '\0';
    (void)append_line(answer, line == NULL ? "not enough host memory" : line, 0);
    free(line);
}

void mcp_about(struct mcp_answer *answer, uint32_t device) { answer->about = (uint64_t)device + 1; }

// Finds the end of the file argument in the next question. Returns NULL if the tool takes no device, or the device is already given.
static const char *end_of_file(const char *next) {
    static const char file[] = "{\"file\": \"";
    const char *at = strstr(next, file);
    const bool whole = strncmp(next, "tune ", 5) == 0 || strncmp(next, "open ", 5) == 0;
    if (at == NULL || whole || strstr(next, "\"device\": ") != NULL) return NULL;
    at = strchr(at + sizeof file - 1, '"');
    return at == NULL ? NULL : at + 1;
}

// Writes 'next: why {"file": "r1", "device": 1} - ...'.
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
        (void)snprintf(line, sizeof line, "(%" PRIu64 " more lines left out)", answer->missed);
        (void)append_line(answer, line, 0);
    }
    if (answer->next[0] == '\0') return;
    put_next(answer, line, sizeof line);
    (void)append_line(answer, line, 0);
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

// Messages: JSON-RPC 2.0, one per line. An invalid message is answered with an error and changes nothing.

enum rpc_error { RPC_PARSE = -32700, RPC_INVALID = -32600, RPC_NO_METHOD = -32601, RPC_BAD_PARAMS = -32602, RPC_NO_MEMORY = -32603 };

// The newest version is first. A client that asks for an unknown version gets the newest and may disconnect.
static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};

// Begins a message with the id of its request, or null.
static struct vr_json *begin_message(struct answer_json *message, const cJSON *id) {
    *message = (struct answer_json){.text = {.bytes = NULL}};
    vr_json_init(&message->json, &message->text, false);
    vr_json_object(&message->json, NULL);
    vr_json_string(&message->json, "jsonrpc", "2.0");
    if (cJSON_IsNumber(id))
        vr_json_double(&message->json, "id", id->valuedouble);
    else
        vr_json_string(&message->json, "id", cJSON_IsString(id) ? id->valuestring : NULL);
    return &message->json;
}

// Sends the message as a line and releases it. Returns false if `out` cannot be written.
static bool end_message(struct answer_json *message, FILE *out) {
    vr_json_object_end(&message->json);
    vr_text_puts(&message->text, "\n");
    const bool sent = vr_text_status(&message->text) == VRAM_OK && fputs(vr_text_string(&message->text), out) >= 0 && fflush(out) == 0;
    vr_text_release(&message->text);
    return sent;
}

static bool send_error(FILE *out, const cJSON *id, enum rpc_error code, const char *text) {
    struct answer_json message;
    struct vr_json *json = begin_message(&message, id);
    vr_json_object(json, "error");
    vr_json_i64(json, "code", code);
    vr_json_string(json, "message", text);
    vr_json_object_end(json);
    return end_message(&message, out);
}

static bool send_nothing(FILE *out, const cJSON *id) {
    struct answer_json message;
    struct vr_json *json = begin_message(&message, id);
    vr_json_object(json, "result");
    vr_json_object_end(json);
    return end_message(&message, out);
}

static bool initialize(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *wanted = mcp_text(params, "protocolVersion", "");
    const char *version = versions[0];
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (strcmp(wanted, versions[i]) == 0) version = versions[i];
    }
    server->ready = true;
    struct answer_json message;
    struct vr_json *json = begin_message(&message, id);
    vr_json_object(json, "result");
    vr_json_string(json, "protocolVersion", version);
    vr_json_object(json, "capabilities");
    vr_json_object(json, "tools");
    vr_json_object_end(json);
    vr_json_object_end(json);
    vr_json_object(json, "serverInfo");
    vr_json_string(json, "name", "vram");
    vr_json_string(json, "title", "vram: GPU memory, explained");
    vr_json_string(json, "version", vram_version());
    vr_json_object_end(json);
    vr_json_string(
        json, "instructions",
        "Answers questions about recordings of GPU memory (PyTorch memory snapshots and vram's own). Start with `open`. After an "
        "out-of-memory error, call `why`, then `cure`. To find what holds memory, call `peak` (by role, then site, then stack). "
        "Bytes are exact. Every answer suggests the next call.");
    vr_json_object_end(json);
    return end_message(&message, out);
}

static bool send_answer(FILE *out, const cJSON *id, const struct mcp_answer *answer) {
    struct answer_json message;
    struct vr_json *json = begin_message(&message, id);
    vr_json_object(json, "result");
    vr_json_array(json, "content");
    vr_json_object(json, NULL);
    vr_json_string(json, "type", "text");
    vr_json_string(json, "text", answer->text);
    vr_json_object_end(json);
    vr_json_array_end(json);
    vr_json_bool(json, "isError", answer->is_error);
    vr_json_object_end(json);
    return end_message(&message, out);
}

static bool call_tool(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *name = mcp_text(params, "name", NULL);
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    if (name == NULL || (arguments != NULL && !cJSON_IsObject(arguments) && !cJSON_IsNull(arguments)))
        return send_error(out, id, RPC_BAD_PARAMS, "tools/call needs the name of a tool and an object of arguments");
    struct mcp_answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL) return send_error(out, id, RPC_NO_MEMORY, vram_status_text(VRAM_NO_HOST_MEMORY));
    server->calls++;
    const bool known = mcp_tools_call(server, name, arguments, answer);
    if (known) mcp_end(answer);
    const bool sent = known ? send_answer(out, id, answer) : send_error(out, id, RPC_BAD_PARAMS, "unknown tool");
    free(answer);
    return sent;
}

static bool send_tools(const struct mcp_server *server, const cJSON *id, FILE *out) {
    struct answer_json message;
    struct vr_json *json = begin_message(&message, id);
    vr_json_object(json, "result");
    mcp_tools_list(server, json);
    vr_json_object_end(json);
    return end_message(&message, out);
}

static bool answer_request(struct mcp_server *server, const char *method, const cJSON *id, const cJSON *params, FILE *out) {
    if (strcmp(method, "initialize") == 0) return initialize(server, id, params, out);
    if (strcmp(method, "ping") == 0) return send_nothing(out, id);
    if (!server->ready) return send_error(out, id, RPC_INVALID, "the first message must be initialize");
    if (strcmp(method, "tools/list") == 0) return send_tools(server, id, out);
    if (strcmp(method, "tools/call") == 0) return call_tool(server, id, params, out);
    return send_error(out, id, RPC_NO_METHOD, "unknown method");
}

bool mcp_message(struct mcp_server *server, const char *text, size_t length, FILE *out) {
    cJSON *message = cJSON_ParseWithLength(text, length);
    if (message == NULL) return send_error(out, NULL, RPC_PARSE, "invalid JSON");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(message, "id");
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(message, "method");
    const bool sound_id = id == NULL || cJSON_IsNumber(id) || (cJSON_IsString(id) && strlen(id->valuestring) <= 200);
    bool sent = true;
    if (cJSON_IsArray(message))
        sent = send_error(out, NULL, RPC_INVALID, "a message must be one object, not an array");
    else if (!sound_id || !cJSON_IsString(method)) {
        // Ignore responses: this server sends no requests.
        const bool is_answer = method == NULL && cJSON_IsObject(message) && id != NULL;
        if (!is_answer || !sound_id) sent = send_error(out, sound_id ? id : NULL, RPC_INVALID, "not a JSON-RPC 2.0 request");
    } else if (id != NULL) {
        sent = answer_request(server, method->valuestring, id, cJSON_GetObjectItemCaseSensitive(message, "params"), out);
    }
    cJSON_Delete(message);
    return sent;
}

void mcp_server_end(struct mcp_server *server) {
    mcp_tuning_end(server);
    mcp_program_end(server);
    for (size_t i = 0; i < MCP_OPEN_MOST; i++) {
        if (!server->open[i].held) mcp_close(&server->open[i]);
    }
}
