// Tools that group memory by its user: peak, sites, diff, leaks. The sums are those of the commands report, diff and leaks.
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "mcp.h"
#include "shared_options.h"
#include "ui.h"
#include "vram/profile.h"
#include "vram/report.h"

#define BYTES(bytes)   mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})
#define NUMBER(number) mcp_number((number), (char[MCP_BYTES_CAPACITY]){0})
#define ROWS           12

enum { FRAMES_OF_GROUP = 8 };

cJSON *mcp_parsed(enum vram_status status, struct mcp_kept *kept, const struct vram_error *error, struct mcp_answer *answer) {
    cJSON *json = status == VRAM_OK ? cJSON_ParseWithLength(kept->bytes, kept->length) : NULL;
    if (status != VRAM_OK)
        mcp_fail(answer, "%s", error->message);
    else if (json == NULL)
        mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    free(kept->bytes);
    return json;
}

// The library's JSON has whole numbers, below 2^53 for all real memory.
uint64_t mcp_whole(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) && item->valuedouble > 0 ? (uint64_t)item->valuedouble : 0;
}

static const char *number_of(const cJSON *arguments, const char *name, char text[32]) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(arguments, name);
    if (cJSON_IsNumber(item)) (void)snprintf(text, 32, "%.0f", item->valuedouble);
    return cJSON_IsNumber(item) ? text : mcp_text(arguments, name, NULL);
}

bool mcp_moment(const cJSON *arguments, char at[32], char device[32], struct vram_profile_options *options, struct mcp_answer *answer) {
    int64_t top = ROWS;
    if (!mcp_count(arguments, "top", 1, 1000, &top, answer)) return false;
    const struct moment_settings settings = {.device = number_of(arguments, "device", device),
                                             .at = number_of(arguments, "at", at),
                                             .by = mcp_text(arguments, "by", NULL),
                                             .regex = mcp_text(arguments, "regex", NULL),
                                             .top = (uint64_t)top};
    char *complaint = NULL;
    size_t length;
    FILE *file = open_memstream(&complaint, &length);
    if (file == NULL) return false;
    FILE *before = ui_says_to(file);
    const bool sound = moment_options(&settings, options);
    (void)ui_says_to(before);
    (void)fclose(file);
    if (complaint != NULL) complaint[strcspn(complaint, "\n")] = '\0';
    if (!sound) mcp_fail(answer, "%s", complaint == NULL ? "" : complaint);
    free(complaint);
    return sound;
}

static const char *by_of(const cJSON *arguments) {
    return mcp_text(arguments, "regex", NULL) != NULL ? "match" : mcp_text(arguments, "by", "site");
}

// Suggests the next question for each grouping.
static void say_next(struct mcp_answer *answer, const char *by, unsigned id, const cJSON *first) {
    if (strcmp(by, "role") == 0)
        mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"module\"} or by site - which module or site these belong to", id);
    else if (strcmp(by, "stack") == 0)
        mcp_next(answer, "lifetimes {\"file\": \"r%u\"} - which of these live long", id);
    else if (first == NULL)
        mcp_next(answer, "summary {\"file\": \"r%u\"}", id);
    else
        mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"stack\"} - the full call stacks", id);
}

static void say_group(struct mcp_answer *answer, const cJSON *group, uint64_t total) {
    const uint64_t bytes = mcp_whole(group, "bytes");
    mcp_line(answer, "  %s, %.1f %%, %s x, the largest %s: %s", BYTES(bytes), total == 0 ? 0.0 : 100.0 * (double)bytes / (double)total,
             NUMBER(mcp_whole(group, "count")), BYTES(mcp_whole(group, "largest_bytes")), mcp_text(group, "name", ""));
}

// Adds the call stack of a group's largest allocation, innermost first.
static void say_frames(struct mcp_answer *answer, struct mcp_recording *open, uint32_t device, const cJSON *group) {
    cJSON *allocation = mcp_ask(open, answer, "allocation?device=%u&row=%" PRIu64, (unsigned)device, mcp_whole(group, "row"));
    if (allocation != NULL) mcp_frames(answer, allocation, FRAMES_OF_GROUP);
    cJSON_Delete(allocation);
}

static cJSON *stacks_at(struct mcp_recording *open, const cJSON *arguments, const struct vram_report_device *device, unsigned top,
                        struct mcp_answer *answer) {
    char number[32], at[64];
    mcp_encode(number_of(arguments, "at", number) == NULL ? "peak" : number_of(arguments, "at", number), at, sizeof at);
    return mcp_ask(open, answer, "groups?device=%u&by=stack&event=%s&top=%u", (unsigned)device->device, at, top);
}

static cJSON *groups_at(struct mcp_recording *open, const struct vram_profile_options *options, struct mcp_answer *answer) {
    struct vram_error error = {.status = VRAM_OK};
    struct mcp_kept kept = {.bytes = NULL};
    const enum vram_status status = vram_profile_json(open->recording, options, input_base_name(open->path), mcp_keep, &kept, &error);
    return mcp_parsed(status, &kept, &error, answer);
}

void mcp_tool_peak(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    char at[32], number[32];
    struct vram_profile_options options = {.device = -1};
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL || !mcp_moment(arguments, at, number, &options, answer)) return;
    options.device = device->device;
    const bool stacks = strcmp(by_of(arguments), "stack") == 0;
    cJSON *json = stacks ? stacks_at(open, arguments, device, options.top, answer) : groups_at(open, &options, answer);
    if (json == NULL) return;
    const uint64_t total = mcp_whole(json, "bytes");
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(json, "groups"), *group;
    mcp_line(answer, "live after event %s: %s in %s allocations, by %s (%s of them):", NUMBER(mcp_whole(json, "event")), BYTES(total),
             NUMBER(mcp_whole(json, "allocations")), by_of(arguments), NUMBER(mcp_whole(json, "distinct")));
    uint64_t shown = 0;
    cJSON_ArrayForEach(group, groups) {
        say_group(answer, group, total);
        if (stacks) say_frames(answer, open, device->device, group);
        shown += mcp_whole(group, "bytes");
    }
    if (shown < total) mcp_line(answer, "  %s: all others", BYTES(total - shown));
    say_next(answer, by_of(arguments), open->id, cJSON_GetArrayItem(groups, 0));
    cJSON_Delete(json);
}

static void say_matches(struct mcp_recording *open, uint32_t device, const char *match, struct mcp_answer *answer) {
    char text[700];
    mcp_encode(match, text, sizeof text);
    cJSON *found = mcp_ask(open, answer, "search?device=%u&text=%s", (unsigned)device, text);
    if (found == NULL) return;
    mcp_line(answer, "%s: %s in %s allocations of %s stacks, over the whole history", match, BYTES(mcp_whole(found, "bytes")),
             NUMBER(mcp_whole(found, "allocations")), NUMBER(mcp_whole(found, "stacks")));
    cJSON_Delete(found);
    mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"stack\"} - what is live at the peak, with full stacks", open->id);
}

void mcp_tool_sites(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    int64_t top = ROWS;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    const struct vram_report_device *device = open == NULL ? NULL : mcp_device(open, arguments, answer);
    if (device == NULL || !mcp_count(arguments, "top", 1, 1000, &top, answer)) return;
    const char *match = mcp_text(arguments, "match", "");
    if (match[0] != '\0') {
        say_matches(open, device->device, match, answer);
        return;
    }
    char by[64];
    mcp_encode(mcp_text(arguments, "by", "site"), by, sizeof by);
    cJSON *json = mcp_ask(open, answer, "groups?device=%u&made=1&by=%s&top=%d", (unsigned)device->device, by, (int)top);
    if (json == NULL) return;
    const uint64_t total = mcp_whole(json, "bytes");
    mcp_line(answer, "allocated over the whole history: %s in %s allocations, by %s (%s of them):", BYTES(total),
             NUMBER(mcp_whole(json, "allocations")), by_of(arguments), NUMBER(mcp_whole(json, "distinct")));
    const cJSON *group;
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(json, "groups")) say_group(answer, group, total);
    if (mcp_whole(json, "rest_count") != 0)
        mcp_line(answer, "  %s in %s allocations: all others", BYTES(mcp_whole(json, "rest_bytes")), NUMBER(mcp_whole(json, "rest_count")));
    cJSON_Delete(json);
    mcp_next(answer, "peak {\"file\": \"r%u\"} - which of these are live at the peak", open->id);
}

static void say_change(struct mcp_answer *answer, const cJSON *group) {
    const cJSON *change = cJSON_GetObjectItemCaseSensitive(group, "change_bytes");
    const double bytes = cJSON_IsNumber(change) ? change->valuedouble : 0;
    const char *remark = mcp_text(group, "remark", "");
    mcp_line(answer, "  %c%s (%s -> %s; %s -> %s allocations)%s%s: %s", bytes < 0 ? '-' : '+',
             BYTES((uint64_t)(bytes < 0 ? -bytes : bytes)), BYTES(mcp_whole(group, "before_bytes")), BYTES(mcp_whole(group, "after_bytes")),
             NUMBER(mcp_whole(group, "before_count")), NUMBER(mcp_whole(group, "after_count")), remark[0] == '\0' ? "" : " ", remark,
             mcp_text(group, "name", ""));
}

void mcp_tool_diff(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    char at[32], device[32];
    struct vram_profile_options options = {.device = -1};
    struct vram_error error = {.status = VRAM_OK};
    struct mcp_kept kept = {.bytes = NULL};
    const struct mcp_recording *before = mcp_recording(server, arguments, "before", answer);
    const struct mcp_recording *after = before == NULL ? NULL : mcp_recording(server, arguments, "after", answer);
    if (after == NULL || !mcp_moment(arguments, at, device, &options, answer)) return;
    const struct vram_diff diff = {.recording = {before->recording, after->recording},
                                   .title = {input_base_name(before->path), input_base_name(after->path)},
                                   .options = {options, options}};
    const enum vram_status status = vram_diff_json(&diff, mcp_keep, &kept, NULL, &error);
    cJSON *json = mcp_parsed(status, &kept, &error, answer);
    if (json == NULL) return;
    static const char *const sides[] = {"before", "after"};
    for (size_t i = 0; i < 2; i++) {
        const cJSON *side = cJSON_GetObjectItemCaseSensitive(json, sides[i]);
        mcp_line(answer, "%s: %s in %s allocations after event %s of %s (r%u)", sides[i], BYTES(mcp_whole(side, "bytes")),
                 NUMBER(mcp_whole(side, "allocations")), NUMBER(mcp_whole(side, "event")), mcp_text(side, "file", ""),
                 i == 0 ? before->id : after->id);
    }
    const cJSON *group;
    mcp_line(answer, "by %s, the largest changes first:", by_of(arguments));
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(json, "groups")) say_change(answer, group);
    cJSON_Delete(json);
    if (strcmp(by_of(arguments), "role") == 0)
        mcp_next(answer, "diff {\"before\": \"r%u\", \"after\": \"r%u\"} - the same by call site", before->id, after->id);
    else
        mcp_next(answer, "diff {\"before\": \"r%u\", \"after\": \"r%u\", \"by\": \"role\"} - what kind of memory grew", before->id,
                 after->id);
}

static double fraction_in(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void say_growth(struct mcp_answer *answer, const cJSON *group) {
    const double slope = fraction_in(group, "bytes_per_step");
    mcp_line(answer, "  %s, +%s a step (%.2f allocations), grew at %s of %s points, %s -> %s: %s", mcp_text(group, "verdict", ""),
             BYTES((uint64_t)(slope < 0 ? 0 : slope + 0.5)), fraction_in(group, "objects_per_step"),
             NUMBER(mcp_whole(group, "grew_points")), NUMBER(mcp_whole(group, "course_points")), BYTES(mcp_whole(group, "first_bytes")),
             BYTES(mcp_whole(group, "last_bytes")), mcp_text(group, "name", ""));
}

static void say_marks(struct mcp_answer *answer, const cJSON *marks) {
    const cJSON *mark;
    cJSON_ArrayForEach(mark, marks) {
        mcp_line(answer, "  mark %s: %s times", mcp_text(mark, "name", ""), NUMBER(mcp_whole(mark, "count")));
    }
}

static void say_slow_growth(struct mcp_answer *answer, const cJSON *group) {
    const cJSON *frame;
    mcp_line(answer, "  %s, +%s an hour: %s: %s", mcp_text(group, "verdict", ""), BYTES(mcp_whole(group, "bytes_per_hour")),
             mcp_text(group, "name", ""), mcp_text(group, "reason", ""));
    if (strcmp(mcp_text(group, "verdict", ""), "leak") != 0) return;
    int shown = 0;
    cJSON_ArrayForEach(frame, cJSON_GetObjectItemCaseSensitive(group, "frames")) {
        if (shown++ < FRAMES_OF_GROUP && cJSON_IsString(frame)) mcp_line(answer, "      %s", frame->valuestring);
    }
}

static void say_slow_leaks(struct mcp_recording *open, const cJSON *arguments, struct vram_profile_options *options,
                           struct mcp_answer *answer) {
    struct vram_error error = {.status = VRAM_OK};
    struct mcp_kept kept = {.bytes = NULL};
    if (!mcp_size(arguments, "memory", &options->memory_bytes, answer)) return;
    const enum vram_status status =
        vram_slow_leaks_json(open->recording, options, input_base_name(open->path), mcp_keep, &kept, NULL, &error);
    cJSON *json = mcp_parsed(status, &kept, &error, answer);
    if (json == NULL) return;
    const cJSON *group;
    mcp_line(answer, "device %" PRIu64 ", %s seconds", mcp_whole(json, "device"), NUMBER(mcp_whole(json, "seconds")));
    mcp_line(answer, "%s", mcp_text(json, "text", ""));
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(json, "groups")) say_slow_growth(answer, group);
    cJSON_Delete(json);
    mcp_next(answer, "peak {\"file\": \"r%u\", \"at\": \"end\", \"by\": \"stack\"} - what is live at the end", open->id);
}

void mcp_tool_leaks(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    char at[32], device[32];
    struct vram_profile_options options = {.device = -1};
    struct vram_error error = {.status = VRAM_OK};
    struct mcp_kept kept = {.bytes = NULL};
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    if (open == NULL || !mcp_moment(arguments, at, device, &options, answer)) return;
    if (strcmp(mcp_text(arguments, "serving", "no"), "yes") == 0) {
        say_slow_leaks(open, arguments, &options, answer);
        return;
    }
    options.step = mcp_text(arguments, "step", NULL);
    size_t leaks = 0;
    const enum vram_status status =
        vram_leaks_json(open->recording, &options, input_base_name(open->path), mcp_keep, &kept, &leaks, &error);
    cJSON *json = mcp_parsed(status, &kept, &error, answer);
    if (json == NULL) return;
    if (open->report->device_count > 1) {
        mcp_about(answer, (uint32_t)mcp_whole(json, "device"));
        mcp_line(answer, "device %" PRIu64, mcp_whole(json, "device"));
    }
    mcp_line(answer, "%s", mcp_text(json, "steps_text", ""));
    mcp_line(answer, "%s", mcp_text(json, "text", ""));
    if (mcp_whole(json, "steps") == 0) say_marks(answer, cJSON_GetObjectItemCaseSensitive(json, "marks"));
    const cJSON *group;
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(json, "groups")) say_growth(answer, group);
    cJSON_Delete(json);
    if (leaks != 0)
        mcp_next(answer, "peak {\"file\": \"r%u\", \"at\": \"end\", \"by\": \"stack\"} - what keeps them", open->id);
    else
        mcp_next(answer, "summary {\"file\": \"r%u\"}", open->id);
}
