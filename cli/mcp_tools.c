#include <cjson/cJSON.h>
#include <string.h>

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

// A JSON Schema of the tool's arguments.
static cJSON *schema_of(const struct tool *tool) {
    cJSON *schema = cJSON_CreateObject();
    cJSON_AddStringToObject(schema, "type", "object");
    cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
    cJSON *required = cJSON_CreateArray();
    for (size_t i = 0; i < COUNT(arguments_of); i++) {
        const struct argument *argument = &arguments_of[i];
        if (strcmp(argument->tool, tool->name) != 0) continue;
        cJSON *property = cJSON_AddObjectToObject(properties, argument->name);
        cJSON_AddStringToObject(property, "type", argument->type);
        if (strcmp(argument->type, "array") == 0) cJSON_AddStringToObject(cJSON_AddObjectToObject(property, "items"), "type", "string");
        cJSON_AddStringToObject(property, "description", argument->about);
        if (argument->required) cJSON_AddItemToArray(required, cJSON_CreateString(argument->name));
    }
    cJSON_AddItemToObject(schema, "required", required);
    cJSON_AddBoolToObject(schema, "additionalProperties", false);
    return schema;
}

cJSON *mcp_tools_list(const struct mcp_server *server) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < COUNT(tools); i++) {
        if (!is_offered(server, &tools[i])) continue;
        cJSON *tool = cJSON_CreateObject();
        cJSON_AddStringToObject(tool, "name", tools[i].name);
        cJSON_AddStringToObject(tool, "title", tools[i].title);
        cJSON_AddStringToObject(tool, "description", tools[i].about);
        cJSON_AddItemToObject(tool, "inputSchema", schema_of(&tools[i]));
        cJSON *hints = cJSON_AddObjectToObject(tool, "annotations");
        cJSON_AddBoolToObject(hints, "readOnlyHint", !tools[i].runs_programs);
        cJSON_AddBoolToObject(hints, "destructiveHint", tools[i].runs_programs);
        cJSON_AddBoolToObject(hints, "openWorldHint", tools[i].runs_programs);
        cJSON_AddItemToArray(list, tool);
    }
    return list;
}

// Every argument is one of the tool's, of its type, and those that must be there are. An agent that errs is told how.
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
        // A size may also be a number, and "at" the number of an event.
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
