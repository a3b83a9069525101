#include <cjson/cJSON.h>
#include <string.h>

#include "base/json.h"
#include "mcp.h"

static const struct tool {
    const char *name, *title, *about;
    mcp_tool *run;
    bool runs_programs;
} tools[] = {
#define MCP_TOOL(name, title, about, runs_programs) {#name, title, about, mcp_tool_##name, runs_programs},
#define MCP_ARGUMENT(...)
#include "mcp_tools.def"
#undef MCP_TOOL
#undef MCP_ARGUMENT
};

static const struct argument {
    const char *tool, *name, *type, *about;
    bool required;
} arguments_of[] = {
#define MCP_TOOL(...)
#define MCP_ARGUMENT(tool, name, type, required, about) {#tool, #name, type, about, required},
#include "mcp_tools.def"
#undef MCP_TOOL
#undef MCP_ARGUMENT
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static bool is_offered(const struct mcp_server *server, const struct tool *tool) { return !tool->runs_programs || !server->no_programs; }

static void put_argument(struct vr_json *json, const struct argument *argument) {
    vr_json_object(json, argument->name);
    vr_json_string(json, "type", argument->type);
    if (strcmp(argument->type, "array") == 0) {
        vr_json_object(json, "items");
        vr_json_string(json, "type", "string");
        vr_json_object_end(json);
    }
    vr_json_string(json, "description", argument->about);
    vr_json_object_end(json);
}

// Writes a JSON Schema of the tool's arguments.
static void put_schema(struct vr_json *json, const struct tool *tool) {
    vr_json_object(json, "inputSchema");
    vr_json_string(json, "type", "object");
    vr_json_object(json, "properties");
    for (size_t i = 0; i < COUNT(arguments_of); i++)
        if (strcmp(arguments_of[i].tool, tool->name) == 0) put_argument(json, &arguments_of[i]);
    vr_json_object_end(json);
    vr_json_array(json, "required");
    for (size_t i = 0; i < COUNT(arguments_of); i++)
        if (strcmp(arguments_of[i].tool, tool->name) == 0 && arguments_of[i].required) vr_json_string(json, NULL, arguments_of[i].name);
    vr_json_array_end(json);
    vr_json_bool(json, "additionalProperties", false);
    vr_json_object_end(json);
}

static void put_tool(struct vr_json *json, const struct tool *tool) {
    vr_json_object(json, NULL);
    vr_json_string(json, "name", tool->name);
    vr_json_string(json, "title", tool->title);
    vr_json_string(json, "description", tool->about);
    put_schema(json, tool);
    vr_json_object(json, "annotations");
    vr_json_bool(json, "readOnlyHint", !tool->runs_programs);
    vr_json_bool(json, "destructiveHint", tool->runs_programs);
    vr_json_bool(json, "openWorldHint", tool->runs_programs);
    vr_json_object_end(json);
    vr_json_object_end(json);
}

void mcp_tools_list(const struct mcp_server *server, struct vr_json *json) {
    vr_json_array(json, "tools");
    for (size_t i = 0; i < COUNT(tools); i++)
        if (is_offered(server, &tools[i])) put_tool(json, &tools[i]);
    vr_json_array_end(json);
}

// Checks that every argument is known and has its type, and that no required one is missing. Failed answers explain the mistake.
static bool are_sound(const struct tool *tool, const cJSON *arguments, struct mcp_answer *answer) {
    const cJSON *item;
    cJSON_ArrayForEach(item, arguments) {
        size_t i = 0;
        while (i < COUNT(arguments_of) &&
               (strcmp(arguments_of[i].tool, tool->name) != 0 || strcmp(arguments_of[i].name, item->string) != 0))
            i++;
        if (i == COUNT(arguments_of)) {
            mcp_fail(answer, "%s has no argument %s", tool->name, item->string);
            return false;
        }
        // A size may also be a number, and "at" an event number.
        const char *type = arguments_of[i].type;
        const bool fits = cJSON_IsNull(item) || (strcmp(type, "array") == 0    ? cJSON_IsArray(item)
                                                 : strcmp(type, "string") == 0 ? cJSON_IsString(item) || cJSON_IsNumber(item)
                                                                               : cJSON_IsNumber(item));
        if (!fits) {
            mcp_fail(answer, "%s: %s must be %s %s", tool->name, item->string, type[0] == 'a' || type[0] == 'i' ? "an" : "a", type);
            return false;
        }
    }
    for (size_t i = 0; i < COUNT(arguments_of); i++) {
        const struct argument *argument = &arguments_of[i];
        if (!argument->required || strcmp(argument->tool, tool->name) != 0) continue;
        item = cJSON_GetObjectItemCaseSensitive(arguments, argument->name);
        if (item != NULL && !cJSON_IsNull(item)) continue;
        mcp_fail(answer, "%s needs %s: %s", tool->name, argument->name, argument->about);
        return false;
    }
    return true;
}

bool mcp_tools_call(struct mcp_server *server, const char *name, const cJSON *arguments, struct mcp_answer *answer) {
    for (size_t i = 0; i < COUNT(tools); i++) {
        if (strcmp(tools[i].name, name) != 0 || !is_offered(server, &tools[i])) continue;
        if (are_sound(&tools[i], arguments, answer)) tools[i].run(server, arguments, answer);
        return true;
    }
    return false;
}
