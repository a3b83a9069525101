// Prints what-if runs as JSON and as tables.
#include <inttypes.h>

#include "base/json_rows.h"
#include "present/text_parts.h"
#include "replay/script.h"
#include "vram/sim.h"

static const char *const start_names[] = {[VRAM_WHATIF_COLD] = "cold", [VRAM_WHATIF_RECORDED] = "recorded"};
static const char *const profile_names[] = {[VRAM_SIM_CHEAP] = "cheap", [VRAM_SIM_DEAR] = "dear", [VRAM_SIM_FREE] = "free"};

static double utilization(const struct vram_whatif_device *device) {
    return device->peak_reserved_bytes == 0 ? 0 : (double)device->peak_active_bytes / (double)device->peak_reserved_bytes;
}

// --- JSON -------------------------------------------------------------------------------------------------------------------
// Returns whether the recorded program also failed at the request that ended the replay. Earlier failed requests were granted.
static bool failed_as_recorded(const struct vram_whatif_device *device) {
    return device->out_of_memory && device->recorded_ooms > device->recorded_ooms_served;
}

#define WHATIF_OOM_FACTS(X)                                                                                                                \
    X(U64, "event_index", it->oom_event, NULL_UNLESS(it->oom_event != VRAM_NO_OFFSET),                                                     \
      "event at which the run stopped; null: while building the start state")                                                              \
    X(BOOL, "recorded", failed_as_recorded(it), ALWAYS, "the recorded program also failed at this request")                                \
    X(U64, "stream", it->oom.stream, ALWAYS, "stream of the request")                                                                      \
    X(U64, "requested_bytes", it->oom.requested_bytes, ALWAYS, "requested bytes")                                                          \
    X(U64, "rounded_bytes", it->oom.rounded_bytes, ALWAYS, "size of the block that it needed")                                             \
    X(U64, "segment_bytes", it->oom.segment_bytes, ALWAYS, "size of the segment requested from the driver")                                \
    X(U64, "device_total_bytes", it->oom.device_total_bytes, ALWAYS, "size of the device")                                                 \
    X(U64, "device_free_bytes", it->oom.device_free_bytes, ALWAYS, "free in the driver")                                                   \
    X(U64, "allocated_bytes", it->oom.allocated_bytes, ALWAYS, "blocks in use")                                                            \
    X(U64, "reserved_bytes", it->oom.reserved_bytes, ALWAYS, "reserved bytes")                                                             \
    X(U64, "pending_bytes", it->oom.pending_bytes, ALWAYS, "freed, waiting for other streams")                                             \
    X(U64, "cached_bytes", it->oom.cached_bytes, ALWAYS, "free blocks")                                                                    \
    X(U64, "largest_free_bytes", it->oom.largest_free_bytes, ALWAYS, "largest free block that the request could use")                      \
    X(U64, "other_stream_bytes", it->oom.other_stream_bytes, ALWAYS, "free for other streams")                                             \
    X(U64, "other_pool_bytes", it->oom.other_pool_bytes, ALWAYS, "free in other pools")                                                    \
    X(TEXT, "report", report, ALWAYS, "the same facts as a paragraph")

static void put_oom(struct vr_json *json, const char *name, const struct vram_whatif_device *it) {
    char report[1024];
    (void)vram_oom_text(&it->oom, report, sizeof report);
    vr_json_object(json, name);
    WHATIF_OOM_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

static void put_calls(struct vr_json *json, const char *key, const struct vram_whatif_device *device) {
    vr_json_object(json, key);
    for (size_t i = 0; i < device->call_count; i++) vr_json_u64(json, device->calls[i].name, device->calls[i].count);
    vr_json_object_end(json);
}

#define WHATIF_DEVICE_FACTS(X)                                                                                                             \
    X(U64, "device", it->device, ALWAYS, "the device's number")                                                                            \
    X(BOOL, "contradiction", it->contradiction, ALWAYS, "the history is impossible")                                                       \
    X(TEXT, "reason", it->reason, ALWAYS, "reason; empty without a contradiction")                                                         \
    X(U64, "events", it->events, ALWAYS, "number of events replayed, up to an out-of-memory error")                                        \
    X(U64, "allocations", it->allocations, ALWAYS, "number of `alloc` events among them")                                                  \
    X(U64, "private_allocations", it->private_allocations, ALWAYS, "number of these in private pools")                                     \
    X(U64, "peak_allocated_bytes", it->peak_allocated_bytes, ALWAYS, "peak of blocks in use")                                              \
    X(U64, "peak_active_bytes", it->peak_active_bytes, ALWAYS, "peak of blocks in use or waiting for other streams")                       \
    X(U64, "peak_reserved_bytes", it->peak_reserved_bytes, ALWAYS, "peak of reserved bytes")                                               \
    X(U64, "peak_reserved_event_index", it->peak_reserved_event, NULL_UNLESS(it->peak_reserved_event != VRAM_NO_OFFSET),                   \
      "first event that reached it; null: before the first event")                                                                         \
    X(U64, "final_reserved_bytes", it->final_reserved_bytes, ALWAYS, "reserved bytes at the end")                                          \
    X(DOUBLE, "utilization", utilization(it), ALWAYS, "peak active divided by peak reserved")                                              \
    X(U64, "retries", it->retries, ALWAYS, "requests that needed a release of the whole cache (`num_alloc_retries`)")                      \
    X(U64, "recorded_ooms", it->recorded_ooms, ALWAYS, "requests that failed in the recorded program")                                     \
    X(U64, "recorded_ooms_served", it->recorded_ooms_served, ALWAYS,                                                                       \
      "number of these that succeed here. They are tried (and freed at once) only with `--memory`")                                        \
    X(MS, "driver_time_ms", it->driver_time_ns, ALWAYS, "time of the driver calls on the simulator's clock")                               \
    X(MAP, "driver_calls", put_calls(json, key, it), ALWAYS,                                                                               \
      "driver calls by name. A cold run includes the allocations from before the first event")                                             \
    X(OBJECT, "out_of_memory", put_oom(json, key, it), NULL_UNLESS(it->out_of_memory), "the out-of-memory error of the run (see below)")

static void put_whatif_devices(struct vr_json *json, const char *name, const struct vram_whatif_result *run) {
    vr_json_array(json, name);
    for (size_t i = 0; i < run->device_count; i++) {
        const struct vram_whatif_device *it = &run->devices[i];
        vr_json_object(json, NULL);
        WHATIF_DEVICE_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define WHATIF_RUN_FACTS(X)                                                                                                                \
    X(TEXT, "conf", it->conf, ALWAYS, "option string used for the replay")                                                                 \
    X(BOOL, "recorded_conf", it->recorded_conf, ALWAYS, "the option string is from the recording's settings")                              \
    X(BOOL, "inferred_conf", it->inferred_conf, ALWAYS,                                                                                    \
      "the recording has no settings (PyTorch 2.1 and 2.2); `expandable_segments` was inferred from its segments")                         \
    X(TEXT, "start", start_names[it->start], ALWAYS, "`cold` or `recorded`: `--start`")                                                    \
    X(TEXT, "profile", profile_names[it->profile], ALWAYS, "`cheap`, `dear` or `free`: `--profile`")                                       \
    X(U64, "memory_bytes", it->memory_bytes, NULL_IF_EMPTY, "`--memory`; null: unlimited")                                                 \
    X(BOOL, "finished", it->finished, ALWAYS, "no device ran out of memory and no history is contradictory; the exit code is 1 otherwise") \
    X(ARRAY, "devices", put_whatif_devices(json, key, it), ALWAYS, "one object per device (see below)")

static void run_json(struct vr_json *json, const struct vram_whatif_result *it) {
    vr_json_object(json, NULL);
    WHATIF_RUN_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

enum vram_status vram_whatif_json(const struct vram_whatif_result *const *results, size_t count, const char *file, vram_write write,
                                  void *user) {
    VR_REQUIRE(write && (results || count == 0));
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, true);
    vr_json_object(&json, NULL);
    vr_json_string(&json, "file", file);
    vr_json_array(&json, "runs");
    for (size_t i = 0; i < count; i++) run_json(&json, results[i]);
    vr_json_array_end(&json);
    vr_json_object_end(&json);
    return vr_text_finish(&text, write, user);
}

// --- text -----------------------------------------------------------------------------------------------------------------------
static void run_row(struct vr_table *table, const struct vram_whatif_result *run, const struct vram_whatif_device *device) {
    vr_table_cell(table, "%s%s",
                  run->inferred_conf   ? "(inferred) "
                  : run->recorded_conf ? "(recorded) "
                                       : "",
                  run->conf[0] == '\0' ? "defaults" : run->conf);
    if (device->contradiction) {
        for (int i = 0; i < 6; i++) vr_table_cell(table, "-");
        vr_table_cell(table, "not run");
        return;
    }
    vr_table_cell(table, "%s", vr_bytes(device->peak_active_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(device->peak_reserved_bytes).text);
    vr_table_cell(table, "%s", vr_percent(device->peak_active_bytes, device->peak_reserved_bytes).text);
    vr_table_cell(table, "%s", vr_count(vr_memory_calls(device)).text);
    vr_table_cell(table, "%s", vr_duration_ns(device->driver_time_ns).text);
    vr_table_cell(table, "%s", vr_count(device->retries).text);
    vr_table_cell(table, "%s", device->out_of_memory ? "OUT OF MEMORY" : "ok");
}

static void device_table(struct vr_text *text, const struct vram_style *style, const struct vram_whatif_result *const *results,
                         size_t count, size_t index) {
    static const struct vr_table_column columns[] = {
        {"settings", VR_LEFT, VR_BOLD, true}, {"active", VR_RIGHT, VR_PLAIN, false}, {"reserved", VR_RIGHT, VR_PLAIN, false},
        {"used", VR_RIGHT, VR_PLAIN, false},  {"calls", VR_RIGHT, VR_DIM, false},    {"time", VR_RIGHT, VR_DIM, false},
        {"retries", VR_RIGHT, VR_DIM, false}, {"", VR_LEFT, VR_PLAIN, false},
    };
    struct vr_table table = {0};
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < count; i++) run_row(&table, results[i], &results[i]->devices[index]);
    vr_table_print(&table, text, style, 2);
    vr_table_release(&table);
}

static void oom_paragraph(struct vr_text *text, const struct vram_style *style, const struct vram_whatif_result *run,
                          const struct vram_whatif_device *device) {
    char report[1024];
    if (device->contradiction) vr_text_printf(text, "  not run: %s\n", device->reason);
    if (device->recorded_ooms_served > 0) {
        vr_text_printf(text, "  %s of %s requests that failed in the recording succeed with %s\n",
                       vr_count(device->recorded_ooms_served).text, vr_count(device->recorded_ooms).text,
                       run->conf[0] == '\0' ? "defaults" : run->conf);
    }
    if (!device->out_of_memory) return;
    (void)vram_oom_text(&device->oom, report, sizeof report);
    vr_text_colour(text, style, VR_RED);
    if (device->oom_event == VRAM_NO_OFFSET) {
        vr_text_puts(text, "  out of memory while building the start state");
    } else {
        vr_text_printf(text, "  out of memory at event %s", vr_count(device->oom_event).text);
    }
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_printf(text, " with %s%s:\n    %s\n", run->conf[0] == '\0' ? "defaults" : run->conf,
                   failed_as_recorded(device) ? ", as in the recorded program" : "", report);
}

// Prints the heading. The number of events is that of the run that got furthest.
static void put_whatif_heading(struct vr_text *text, const struct vram_whatif_result *const *results, size_t count, size_t index) {
    const struct vram_whatif_result *run = results[0];
    const struct vram_whatif_device *device = &run->devices[index];
    uint64_t events = 0;
    for (size_t i = 0; i < count; i++) events = results[i]->devices[index].events > events ? results[i]->devices[index].events : events;
    vr_text_printf(text, "device %" PRIu32 ": peaks over %s, %s start, ", device->device, vr_counted(events, "event").text,
                   start_names[run->start]);
    if (run->memory_bytes == 0) {
        vr_text_puts(text, "unlimited memory\n");
    } else {
        vr_text_printf(text, "%s of memory\n", vr_bytes(run->memory_bytes).text);
    }
    if (device->private_allocations > 0) {
        vr_text_printf(text, "  %s in private pools\n", vr_counted(device->private_allocations, "allocation").text);
    }
}

enum vram_status vram_whatif_text(const struct vram_whatif_result *const *results, size_t count, const char *file,
                                  const struct vram_style *style, vram_write write, void *user) {
    VR_REQUIRE(write && (results || count == 0));
    static const struct vram_style plain = {0};
    struct vr_text text = {0};
    if (style == NULL) style = &plain;
    vr_text_title(&text, style, file);
    const size_t devices = count == 0 ? 0 : results[0]->device_count;
    for (size_t d = 0; d < devices; d++) {
        put_whatif_heading(&text, results, count, d);
        device_table(&text, style, results, count, d);
        for (size_t i = 0; i < count; i++) oom_paragraph(&text, style, results[i], &results[i]->devices[d]);
    }
    return vr_text_finish(&text, write, user);
}
