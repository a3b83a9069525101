// Prints the result of an exact replay as JSON, as text and as a list of placements.
#include <inttypes.h>

#include "base/json_rows.h"
#include "present/text_parts.h"
#include "vram/replay.h"

const char *vram_exact_verdict_name(enum vram_exact_verdict verdict) {
    static const char *const names[] = {"equal", "no_history", "partial", "different", "contradiction", "undetermined"};
    return (unsigned)verdict < VR_COUNT_OF(names) ? names[verdict] : "unknown";
}

const char *vram_difference_text(enum vram_difference_kind kind) {
    static const char *const texts[] = {
        [VRAM_DIFFERENT_ADDRESS] = "another free block was chosen",
        [VRAM_DIFFERENT_CACHE_HIT] = "this allocator reuses a cached block; the recorded program called the driver",
        [VRAM_DIFFERENT_CACHE_MISS] = "this allocator finds no cached block; the recorded program reused one",
        [VRAM_DIFFERENT_SEGMENT] = "another segment was requested from the driver",
        [VRAM_DIFFERENT_RELEASE] = "a different segment was released, or segments were released in a different order",
        [VRAM_DIFFERENT_FREE] = "a free of an address that is not live",
        [VRAM_DIFFERENT_OOM] = "the recorded program ran out of memory here; this allocator does not",
        [VRAM_DIFFERENT_FINAL_BLOCK] = "a block of the final state differs",
    };
    return (unsigned)kind < VR_COUNT_OF(texts) ? texts[kind] : "unknown";
}

// --- JSON -------------------------------------------------------------------------------------------------------------------
static const char *kind_name(enum vram_difference_kind kind) {
    static const char *const names[] = {
        [VRAM_DIFFERENT_ADDRESS] = "address", [VRAM_DIFFERENT_CACHE_HIT] = "cache_hit",     [VRAM_DIFFERENT_CACHE_MISS] = "cache_miss",
        [VRAM_DIFFERENT_SEGMENT] = "segment", [VRAM_DIFFERENT_RELEASE] = "release",         [VRAM_DIFFERENT_FREE] = "free",
        [VRAM_DIFFERENT_OOM] = "oom",         [VRAM_DIFFERENT_FINAL_BLOCK] = "final_block",
    };
    return (unsigned)kind < VR_COUNT_OF(names) ? names[kind] : "unknown";
}

#define DIFFERENCE_FACTS(X)                                                                                                                \
    X(TEXT, "kind", kind_name(it->kind), ALWAYS, "see the table below")                                                                    \
    X(U64, "event_index", it->event_index, NULL_UNLESS(it->event_index != VRAM_NO_OFFSET), "event number; null: the final state")          \
    X(U64, "stream", it->stream, ALWAYS, "its stream")                                                                                     \
    X(U64, "size_bytes", it->size_bytes, ALWAYS, "bytes of the recorded event or block")                                                   \
    X(U64, "recorded_address", it->recorded_address, ALWAYS, "recorded address")                                                           \
    X(U64, "our_address", it->our_address, ALWAYS, "address in the replay; 0: none, or in a segment that the recording lacks")             \
    X(U64, "our_size_bytes", it->our_size_bytes, ALWAYS, "bytes of the segment or block in the replay")

static void put_differences(struct vr_json *json, const char *key, const struct vram_exact_device *device) {
    vr_json_array(json, key);
    for (size_t i = 0; i < device->differences_kept; i++) {
        const struct vram_difference *it = &device->differences[i];
        vr_json_object(json, NULL);
        DIFFERENCE_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define EXACT_DEVICE_FACTS(X)                                                                                                              \
    X(U64, "device", it->device, ALWAYS, "the device's number")                                                                            \
    X(TEXT, "verdict", vram_exact_verdict_name(it->verdict), ALWAYS, "see the table below")                                                \
    X(TEXT, "reason", it->reason, ALWAYS, "reason for `partial`, `contradiction` and `undetermined`; else empty")

#define EXACT_DIFFERENCES_FACTS(X) X(ARRAY, "differences", put_differences(json, key, it), ALWAYS, "the first 16 differences (see below)")

static void put_exact_devices(struct vr_json *json, const char *name, const struct vram_exact_result *result) {
    vr_json_array(json, name);
    for (size_t i = 0; i < result->device_count; i++) {
        const struct vram_exact_device *it = &result->devices[i];
        vr_json_object(json, NULL);
        EXACT_DEVICE_FACTS(VR_FACT_JSON)
        VRAM_EXACT_FACTS(VR_MEMBER_JSON)
        EXACT_DIFFERENCES_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define EXACT_RESULT_FACTS(X)                                                                                                              \
    X(TEXT, "file", file, ALWAYS, "file name without its folder")                                                                          \
    X(BOOL, "agrees", it->agrees, ALWAYS, "every device's verdict is `equal` or `no_history`; the exit code is 1 otherwise")               \
    X(TEXT, "conf", it->conf, ALWAYS, "option string used for the replay")                                                                 \
    X(BOOL, "recorded_conf", it->recorded_conf, ALWAYS, "the option string is from the recording's settings")                              \
    X(BOOL, "inferred_conf", it->inferred_conf, ALWAYS,                                                                                    \
      "the recording has no settings (PyTorch 2.1 and 2.2); `expandable_segments` was inferred from its segments")                         \
    X(TEXT, "pytorch", it->pytorch, ALWAYS, "version of PyTorch whose rules were used, such as `\"2.15\"`")                                \
    X(TEXT, "pytorch_by", vram_rules_source_name(it->pytorch_by), ALWAYS,                                                                  \
      "source of that version: `keys` of the recording, its `events`, or `conf`")                                                          \
    X(ARRAY, "devices", put_exact_devices(json, key, it), ALWAYS, "one object per device (see below)")

enum vram_status vram_exact_json(const struct vram_exact_result *it, const char *file, vram_write write, void *user) {
    VR_REQUIRE(it && write);
    struct vr_text text = {0};
    struct vr_json writer, *json = &writer;
    vr_json_init(json, &text, true);
    vr_json_object(json, NULL);
    EXACT_RESULT_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
    return vr_text_finish(&text, write, user);
}

const char *vram_rules_source_name(enum vram_rules_source source) {
    static const char *const names[] = {[VRAM_RULES_BY_KEYS] = "keys", [VRAM_RULES_BY_EVENTS] = "events", [VRAM_RULES_BY_CONF] = "conf"};
    return (size_t)source < VR_COUNT_OF(names) ? names[source] : "unknown";
}

// --- text ----------------------------------------------------------------------------------------------------------------------
static void of_cell(struct vr_table *table, uint64_t part, uint64_t whole) {
    if (whole == 0) {
        vr_table_cell(table, "-");
    } else {
        vr_table_cell(table, "%s of %s", vr_count(part).text, vr_count(whole).text);
    }
}

static void counts_table(struct vr_text *text, const struct vram_style *style, const struct vram_exact_result *result) {
    static const struct vr_table_column columns[] = {
        {"device", VR_RIGHT, VR_PLAIN, false},
        {"verdict", VR_LEFT, VR_BOLD, false},
        {"at recorded address", VR_RIGHT, VR_PLAIN, false},
        {"segments", VR_RIGHT, VR_PLAIN, false},
        {"releases", VR_RIGHT, VR_PLAIN, false},
        {"final blocks", VR_RIGHT, VR_PLAIN, false},
    };
    struct vr_table table = {0};
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < result->device_count; i++) {
        const struct vram_exact_device *device = &result->devices[i];
        vr_table_cell(&table, "%" PRIu32, device->device);
        vr_table_cell(&table, "%s", vram_exact_verdict_name(device->verdict));
        of_cell(&table, device->at_recorded_address, device->allocations);
        of_cell(&table, device->segment_events_agreeing, device->segment_events);
        of_cell(&table, device->releases_agreeing, device->releases);
        of_cell(&table, device->final_blocks_equal, device->final_blocks);
    }
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void difference_text(struct vr_text *text, const struct vram_difference *difference) {
    if (difference->event_index == VRAM_NO_OFFSET) {
        vr_text_puts(text, "    at the end");
    } else {
        vr_text_printf(text, "    event %" PRIu64, difference->event_index);
    }
    vr_text_printf(text, ", %s", vr_bytes(difference->size_bytes).text);
    if (difference->stream != 0) vr_text_printf(text, ", stream 0x%" PRIx64, difference->stream);
    vr_text_printf(text, ": recorded 0x%" PRIx64, difference->recorded_address);
    if (difference->our_address != 0) vr_text_printf(text, ", here 0x%" PRIx64, difference->our_address);
    if (difference->our_size_bytes != 0) vr_text_printf(text, " (%s)", vr_bytes(difference->our_size_bytes).text);
    vr_text_printf(text, ": %s\n", vram_difference_text(difference->kind));
}

static void put_exact_remarks(struct vr_text *text, const struct vram_style *style, const struct vram_exact_device *device) {
    if (device->reason[0] != '\0') vr_text_printf(text, "  device %" PRIu32 ": %s\n", device->device, device->reason);
    if (device->oom_events > 0) {
        vr_text_printf(text, "  device %" PRIu32 ": %s of %s out-of-memory events reproduced\n", device->device,
                       vr_count(device->oom_events_agreeing).text, vr_count(device->oom_events).text);
    }
    if (device->start_ages_inferred > 0) {
        vr_text_printf(text, "  device %" PRIu32 ": the age of %s of its first segments was inferred\n", device->device,
                       vr_count(device->start_ages_inferred).text);
    }
    if (device->ignored_events > 0) {
        vr_text_printf(text, "  device %" PRIu32 ": %s of unknown kinds ignored\n", device->device,
                       vr_counted(device->ignored_events, "event").text);
    }
    if (device->difference_count == 0) return;
    vr_text_colour(text, style, VR_RED);
    vr_text_printf(text, "  device %" PRIu32 ": %s", device->device, vr_counted(device->difference_count, "difference").text);
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_puts(text, device->differences_kept < device->difference_count ? "; the first:\n" : ":\n");
    for (size_t i = 0; i < device->differences_kept; i++) difference_text(text, &device->differences[i]);
}

// Prints the settings and the rules, unless they are the recording's own.
static void settings_text(struct vr_text *text, const struct vram_exact_result *result) {
    if (result->inferred_conf)
        vr_text_printf(text, "  settings: none are recorded; inferred from the segments: %s\n", result->conf);
    else if (!result->recorded_conf)
        vr_text_printf(text, "  settings: %s, not the recording's own\n", result->conf[0] == '\0' ? "defaults" : result->conf);
    if (result->recorded_conf && strstr(result->conf, "request_padding_bytes:32") != NULL)
        vr_text_printf(text, "  Ascend NPU: 32 bytes are added to each request before it is rounded%s\n",
                       strstr(result->conf, "base_addr_aligned_kb:16") != NULL
                           ? ";\n  in expandable segments, requests of 2 MiB and more begin at multiples of 16 KiB"
                           : "");
    if (result->pytorch_by != VRAM_RULES_BY_KEYS)
        vr_text_printf(text, "  rules of PyTorch %s, %s\n", result->pytorch,
                       result->pytorch_by == VRAM_RULES_BY_CONF ? "as requested"
                                                                : "inferred from the events; the keys indicate another version");
}

enum vram_status vram_exact_text(const struct vram_exact_result *result, const char *file, const struct vram_style *style, vram_write write,
                                 void *user) {
    VR_REQUIRE(result && write);
    struct vr_text text = {0};
    static const struct vram_style plain = {0};
    if (style == NULL) style = &plain;
    vr_text_title(&text, style, file);
    if (result->device_count == 0) {
        vr_text_puts(&text, "  no segment and no event: nothing to replay\n");
    } else {
        settings_text(&text, result);
        counts_table(&text, style, result);
    }
    for (size_t i = 0; i < result->device_count; i++) put_exact_remarks(&text, style, &result->devices[i]);
    return vr_text_finish(&text, write, user);
}

// --- placements -------------------------------------------------------------------------------------------------------------------
enum vram_status vram_exact_placements(const struct vram_exact_result *result, vram_write write, void *user) {
    VR_REQUIRE(result && write);
    struct vr_text text = {0};
    vr_text_puts(&text, "device,event_index,address\n");
    for (size_t i = 0; i < result->device_count; i++) {
        const struct vram_exact_device *device = &result->devices[i];
        for (size_t p = 0; p < device->placement_count; p++) {
            vr_text_printf(&text, "%" PRIu32 ",%" PRIu64 ",0x%" PRIx64 "\n", device->device, device->placements[p].event_index,
                           device->placements[p].address);
        }
    }
    return vr_text_finish(&text, write, user);
}
