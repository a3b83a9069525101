// Messages: JSON-RPC 2.0, one a line. What is not understood is answered with an error and changes nothing.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "mcp.h"
#include "vram/vram.h"

enum rpc_error { RPC_PARSE = -32700, RPC_INVALID = -32600, RPC_NO_METHOD = -32601, RPC_BAD_PARAMS = -32602, RPC_NO_MEMORY = -32603 };

// The newest first. A client that asks for another one is told the newest; it may go then.
static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};

// A message in the making, with the id of its request (null where it has none).
static struct vr_json *begin(struct answer_json *message, const cJSON *id) {
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

// Sends the message as a line and releases it. False when `out` took no more.
static bool end(struct answer_json *message, FILE *out) {
    vr_json_object_end(&message->json);
    vr_text_puts(&message->text, "\n");
    const bool sent = vr_text_status(&message->text) == VRAM_OK && fputs(vr_text_string(&message->text), out) >= 0 && fflush(out) == 0;
    vr_text_release(&message->text);
    return sent;
}

static bool send_error(FILE *out, const cJSON *id, enum rpc_error code, const char *text) {
    struct answer_json message;
    struct vr_json *json = begin(&message, id);
    vr_json_object(json, "error");
    vr_json_i64(json, "code", code);
    vr_json_string(json, "message", text);
    vr_json_object_end(json);
    return end(&message, out);
}

static bool send_nothing(FILE *out, const cJSON *id) {
    struct answer_json message;
    struct vr_json *json = begin(&message, id);
    vr_json_object(json, "result");
    vr_json_object_end(json);
    return end(&message, out);
}

static bool initialize(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *wanted = mcp_text(params, "protocolVersion", "");
    const char *version = versions[0];
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (strcmp(wanted, versions[i]) == 0) version = versions[i];
    }
    server->ready = true;
    struct answer_json message;
    struct vr_json *json = begin(&message, id);
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
    vr_json_string(json, "instructions",
                   "Questions about recordings of GPU memory (PyTorch memory snapshots and vram's own). Begin with open; after an out of "
                   "memory ask why, then cure; for who holds memory ask peak (by role, then by site, then by stack). Bytes are exact. "
                   "Every answer ends with the question that leads on.");
    vr_json_object_end(json);
    return end(&message, out);
}

static bool send_answer(FILE *out, const cJSON *id, const struct mcp_answer *answer) {
    struct answer_json message;
    struct vr_json *json = begin(&message, id);
    vr_json_object(json, "result");
    vr_json_array(json, "content");
    vr_json_object(json, NULL);
    vr_json_string(json, "type", "text");
    vr_json_string(json, "text", answer->text);
    vr_json_object_end(json);
    vr_json_array_end(json);
    vr_json_bool(json, "isError", answer->is_error);
    vr_json_object_end(json);
    return end(&message, out);
}

static bool call(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *name = mcp_text(params, "name", NULL);
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    if (name == NULL || (arguments != NULL && !cJSON_IsObject(arguments) && !cJSON_IsNull(arguments)))
        return send_error(out, id, RPC_BAD_PARAMS, "tools/call needs the name of a tool and an object of arguments");
    struct mcp_answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL) return send_error(out, id, RPC_NO_MEMORY, vram_status_text(VRAM_NO_HOST_MEMORY));
    server->calls++;
    const bool known = mcp_tools_call(server, name, arguments, answer);
    if (known) mcp_end(answer);
    const bool sent = known ? send_answer(out, id, answer) : send_error(out, id, RPC_BAD_PARAMS, "there is no such tool");
    free(answer);
    return sent;
}

static bool send_tools(const struct mcp_server *server, const cJSON *id, FILE *out) {
    struct answer_json message;
    struct vr_json *json = begin(&message, id);
    vr_json_object(json, "result");
    mcp_tools_list(server, json);
    vr_json_object_end(json);
    return end(&message, out);
}

static bool answer_request(struct mcp_server *server, const char *method, const cJSON *id, const cJSON *params, FILE *out) {
    if (strcmp(method, "initialize") == 0) return initialize(server, id, params, out);
    if (strcmp(method, "ping") == 0) return send_nothing(out, id);
    if (!server->ready) return send_error(out, id, RPC_INVALID, "the first message is initialize");
    if (strcmp(method, "tools/list") == 0) return send_tools(server, id, out);
    if (strcmp(method, "tools/call") == 0) return call(server, id, params, out);
    return send_error(out, id, RPC_NO_METHOD, "there is no such method");
}

bool mcp_message(struct mcp_server *server, const char *text, size_t length, FILE *out) {
    cJSON *message = cJSON_ParseWithLength(text, length);
    if (message == NULL) return send_error(out, NULL, RPC_PARSE, "this is no JSON");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(message, "id");
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(message, "method");
    const bool sound_id = id == NULL || cJSON_IsNumber(id) || (cJSON_IsString(id) && strlen(id->valuestring) <= 200);
    bool sent = true;
    if (cJSON_IsArray(message))
        sent = send_error(out, NULL, RPC_INVALID, "a message is one object, not an array");
    else if (!sound_id || !cJSON_IsString(method)) {
        // An answer to a request that was never made is nothing to answer.
        const bool is_answer = method == NULL && cJSON_IsObject(message) && id != NULL;
        if (!is_answer || !sound_id) sent = send_error(out, sound_id ? id : NULL, RPC_INVALID, "this is no request of JSON-RPC 2.0");
    } else if (id != NULL) {
        sent = answer_request(server, method->valuestring, id, cJSON_GetObjectItemCaseSensitive(message, "params"), out);
    }
    cJSON_Delete(message);
    return sent;
}

void mcp_server_end(struct mcp_server *server) {
    mcp_tuning_end(server);
    mcp_fit_end(server);
    for (size_t i = 0; i < MCP_OPEN_MOST; i++) {
        if (!server->open[i].held) mcp_close(&server->open[i]);
    }
}
