// Messages: JSON-RPC 2.0, one a line. What is not understood is answered with an error and changes nothing.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "mcp.h"
#include "vram/vram.h"

enum rpc_error { RPC_PARSE = -32700, RPC_INVALID = -32600, RPC_NO_METHOD = -32601, RPC_BAD_PARAMS = -32602, RPC_NO_MEMORY = -32603 };

// The newest first. A client that asks for another one is told the newest; it may go then.
static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};

static bool send_line(FILE *out, const cJSON *message) {
    char *text = cJSON_PrintUnformatted(message);
    const bool sent = text != NULL && fputs(text, out) >= 0 && fputc('\n', out) != EOF && fflush(out) == 0;
    cJSON_free(text);
    return sent;
}

// A message with the id of the request (null where it has none). Given to the caller; NULL without memory.
static cJSON *begin(const cJSON *id) {
    cJSON *message = cJSON_CreateObject();
    cJSON_AddStringToObject(message, "jsonrpc", "2.0");
    cJSON_AddItemToObject(message, "id", id == NULL ? cJSON_CreateNull() : cJSON_Duplicate(id, false));
    return message;
}

static bool send_error(FILE *out, const cJSON *id, enum rpc_error code, const char *text) {
    cJSON *message = begin(id);
    cJSON *error = cJSON_AddObjectToObject(message, "error");
    cJSON_AddNumberToObject(error, "code", code);
    cJSON_AddStringToObject(error, "message", text);
    const bool sent = send_line(out, message);
    cJSON_Delete(message);
    return sent;
}

static bool send_result(FILE *out, const cJSON *id, cJSON *result) {
    cJSON *message = begin(id);
    cJSON_AddItemToObject(message, "result", result == NULL ? cJSON_CreateObject() : result);
    const bool sent = send_line(out, message);
    cJSON_Delete(message);
    return sent;
}

static bool initialize(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *wanted = mcp_text(params, "protocolVersion", "");
    const char *version = versions[0];
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (strcmp(wanted, versions[i]) == 0) version = versions[i];
    }
    server->ready = true;
    cJSON *result = cJSON_CreateObject();
    cJSON_AddStringToObject(result, "protocolVersion", version);
    cJSON_AddObjectToObject(cJSON_AddObjectToObject(result, "capabilities"), "tools");
    cJSON *info = cJSON_AddObjectToObject(result, "serverInfo");
    cJSON_AddStringToObject(info, "name", "vram");
    cJSON_AddStringToObject(info, "title", "vram: GPU memory, explained");
    cJSON_AddStringToObject(info, "version", vram_version());
    cJSON_AddStringToObject(
        result, "instructions",
        "Questions about recordings of GPU memory (PyTorch memory snapshots and vram's own). Begin with open; after an out of "
        "memory ask why, then cure; for who holds memory ask peak (by role, then by site, then by stack). Bytes are exact. "
        "Every answer ends with the question that leads on.");
    return send_result(out, id, result);
}

static bool call(struct mcp_server *server, const cJSON *id, const cJSON *params, FILE *out) {
    const char *name = mcp_text(params, "name", NULL);
    const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    if (name == NULL || (arguments != NULL && !cJSON_IsObject(arguments) && !cJSON_IsNull(arguments)))
        return send_error(out, id, RPC_BAD_PARAMS, "tools/call needs the name of a tool and an object of arguments");
    struct mcp_answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL) return send_error(out, id, RPC_NO_MEMORY, vram_status_text(VRAM_NO_HOST_MEMORY));
    server->calls++;
    if (!mcp_tools_call(server, name, arguments, answer)) {
        free(answer);
        return send_error(out, id, RPC_BAD_PARAMS, "there is no such tool");
    }
    mcp_end(answer);
    cJSON *result = cJSON_CreateObject();
    cJSON *text = cJSON_CreateObject();
    cJSON_AddStringToObject(text, "type", "text");
    cJSON_AddStringToObject(text, "text", answer->text);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(result, "content"), text);
    cJSON_AddBoolToObject(result, "isError", answer->is_error);
    free(answer);
    return send_result(out, id, result);
}

static bool answer_request(struct mcp_server *server, const char *method, const cJSON *id, const cJSON *params, FILE *out) {
    if (strcmp(method, "initialize") == 0) return initialize(server, id, params, out);
    if (strcmp(method, "ping") == 0) return send_result(out, id, NULL);
    if (!server->ready) return send_error(out, id, RPC_INVALID, "the first message is initialize");
    if (strcmp(method, "tools/list") == 0) {
        cJSON *result = cJSON_CreateObject();
        cJSON_AddItemToObject(result, "tools", mcp_tools_list(server));
        return send_result(out, id, result);
    }
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
