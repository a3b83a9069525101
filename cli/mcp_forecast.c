// Tool forecast: predicts the peak of another size, from the command's JSON.
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "mcp.h"
#include "vram/profile.h"

#define BYTES(bytes) mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})

// Adds a run given as "16=run.pickle" or "16=r1".
static bool add_run(struct mcp_server *server, const cJSON *operand, struct vram_forecast *forecast, struct mcp_answer *answer) {
    const char *text = cJSON_IsString(operand) ? operand->valuestring : "";
    char *end;
    const double size = strtod(text, &end);
    if (end == text || *end != '=') {
        mcp_fail(answer, "runs: '%s' is not SIZE=FILE, e.g. 16=run.pickle", text);
        return false;
    }
    const struct mcp_recording *open = mcp_recording_of(server, end + 1, "runs", answer);
    if (open == NULL) return false;
    forecast->recording[forecast->count] = open->recording;
    forecast->title[forecast->count] = input_base_name(open->path);
    forecast->size[forecast->count++] = size;
    return true;
}

static void say_sum(struct mcp_answer *answer, const char *what, const cJSON *json, const char *const names[3]) {
    const uint64_t bytes = mcp_whole(json, names[0]), low = mcp_whole(json, names[1]), high = mcp_whole(json, names[2]);
    if (bytes == 0) return;
    mcp_line(answer, "  %s %s, from %s to %s", what, BYTES(bytes), BYTES(low), BYTES(high));
}

static double size_of(const cJSON *object) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "size");
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void say_group(struct mcp_answer *answer, const cJSON *group) {
    const cJSON *bytes;
    char before[3 * MCP_BYTES_CAPACITY] = "";
    size_t length = 0;
    cJSON_ArrayForEach(bytes, cJSON_GetObjectItemCaseSensitive(group, "bytes")) {
        const int added = snprintf(before + length, sizeof before - length, "%s%s", length == 0 ? "" : ", ",
                                   BYTES(cJSON_IsNumber(bytes) ? (uint64_t)bytes->valuedouble : 0));
        if (added > 0 && (size_t)added < sizeof before - length) length += (size_t)added;
    }
    mcp_line(answer, "  %s -> %s, %s: %s", before, BYTES(mcp_whole(group, "forecast_bytes")), mcp_text(group, "curve", ""),
             mcp_text(group, "name", ""));
}

static void say_moment(struct mcp_answer *answer, const cJSON *json) {
    const char *site = mcp_text(json, "moment", "");
    const cJSON *run;
    if (site[0] != '\0') mcp_line(answer, "the peak is where %s allocates", site);
    cJSON_ArrayForEach(run, cJSON_GetObjectItemCaseSensitive(json, "runs")) {
        const uint64_t bytes = mcp_whole(run, "moment_bytes");
        if (site[0] == '\0' || mcp_whole(run, "moment_event") == mcp_whole(run, "event")) continue;
        mcp_line(answer, "  at %g the peak is at another point; this point holds %s", size_of(run), BYTES(bytes));
    }
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "peaks_followed")))
        mcp_line(answer, "one run peaks at a point that another run does not reach, so that peak cannot be extrapolated");
    const uint64_t odd = mcp_whole(json, "not_in_every_run_bytes");
    if (odd != 0) mcp_line(answer, "%s of the largest run is in groups that another run does not have at that point", BYTES(odd));
}

static void say_forecast(struct mcp_answer *answer, const cJSON *json, const struct vram_forecast *forecast) {
    static const char *const allocated[] = {"allocated_bytes", "allocated_low_bytes", "allocated_high_bytes"};
    static const char *const reserved[] = {"reserved_bytes", "reserved_low_bytes", "reserved_high_bytes"};
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "runs"))
        mcp_line(answer, "at %g: %s allocated, %s reserved at the peak of %s", size_of(item), BYTES(mcp_whole(item, "allocated_bytes")),
                 BYTES(mcp_whole(item, "reserved_bytes")), mcp_text(item, "file", ""));
    mcp_line(answer, "forecast at %g:", forecast->wanted);
    say_sum(answer, "allocated", json, allocated);
    say_sum(answer, "reserved", json, reserved);
    if (forecast->count == 2)
        mcp_line(answer, "two sizes cannot show a curve: growth is assumed to be linear; a third recording would show its shape");
    say_moment(answer, json);
    mcp_line(answer, "by %s, bytes in the runs -> forecast:", mcp_text(json, "by", ""));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "groups")) say_group(answer, item);
}

void mcp_tool_forecast(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    char at[32], device[32];
    struct vram_forecast forecast = {.options = {.device = -1}};
    struct vram_error error = {.status = VRAM_OK};
    struct mcp_kept kept = {.bytes = NULL};
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(arguments, "runs"), *size = cJSON_GetObjectItemCaseSensitive(arguments, "size");
    const int count = cJSON_GetArraySize(runs);
    if (count < 2 || count > VRAM_FORECAST_MOST) {
        mcp_fail(answer, "runs: two or three recordings are required, each SIZE=FILE");
        return;
    }
    const cJSON *run;
    cJSON_ArrayForEach(run, runs) {
        if (!add_run(server, run, &forecast, answer)) return;
    }
    forecast.wanted = size->valuedouble;
    if (!mcp_moment(arguments, at, device, &forecast.options, answer)) return;
    const enum vram_status status = vram_forecast_json(&forecast, mcp_keep, &kept, NULL, &error);
    cJSON *json = mcp_parsed(status, &kept, &error, answer);
    if (json == NULL) return;
    say_forecast(answer, json, &forecast);
    cJSON_Delete(json);
    mcp_next(answer, "fit {\"command\": [...]} - the program itself at that size, on simulated GPUs; or forecast by role");
}
