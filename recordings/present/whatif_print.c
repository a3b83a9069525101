// whatif_print.c: what-if runs as JSON and as tables for people.
#include <inttypes.h>

#include "base/json.h"
#include "present/text_parts.h"
#include "replay/script.h"
#include "vram/sim.h"

static const char *const start_names[] = {[VRAM_WHATIF_COLD] = "cold", [VRAM_WHATIF_RECORDED] = "recorded"};
static const char *const profile_names[] = {[VRAM_SIM_CHEAP] = "cheap", [VRAM_SIM_DEAR] = "dear", [VRAM_SIM_FREE] = "free"};

static double utilization(const struct vram_whatif_device *device) {
    return device->peak_reserved_bytes == 0 ? 0 : (double)device->peak_active_bytes / (double)device->peak_reserved_bytes;
}

// --- JSON -------------------------------------------------------------------------------------------------------------------
static void index_json(struct vr_json *json, const char *key, uint64_t event) {
    if (event == VRAM_NO_OFFSET) {
        vr_json_null(json, key);
    } else {
        vr_json_u64(json, key, event);
    }
}

// X(field of struct vram_oom)
#define OOM_FIELDS(X)                                                                                                                      \
    X(requested_bytes)                                                                                                                     \
    X(rounded_bytes)                                                                                                                       \
    X(segment_bytes)                                                                                                                       \
    X(device_total_bytes)                                                                                                                  \
    X(device_free_bytes)                                                                                                                   \
    X(allocated_bytes) X(reserved_bytes) X(pending_bytes) X(cached_bytes) X(largest_free_bytes) X(other_stream_bytes) X(other_pool_bytes)

// Whether the recorded program failed at the request at which the replay ended: those before it were granted.
static bool failed_as_recorded(const struct vram_whatif_device *device) {
    return device->out_of_memory && device->recorded_ooms > device->recorded_ooms_served;
}

static void oom_json(struct vr_json *json, const struct vram_whatif_device *device) {
    char report[1024];
    if (!device->out_of_memory) {
        vr_json_null(json, "out_of_memory");
        return;
    }
    (void)vram_oom_text(&device->oom, report, sizeof report);
    vr_json_object(json, "out_of_memory");
    index_json(json, "event_index", device->oom_event);
    vr_json_bool(json, "recorded", failed_as_recorded(device));
    vr_json_u64(json, "stream", device->oom.stream);
#define OOM_FIELD_JSON(field) vr_json_u64(json, #field, device->oom.field);
    OOM_FIELDS(OOM_FIELD_JSON)
#undef OOM_FIELD_JSON
    vr_json_string(json, "report", report);
    vr_json_object_end(json);
}

static void device_json(struct vr_json *json, const struct vram_whatif_device *device) {
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", device->device);
    vr_json_bool(json, "contradiction", device->contradiction);
    vr_json_string(json, "reason", device->reason);
    vr_json_u64(json, "events", device->events);
    vr_json_u64(json, "allocations", device->allocations);
    vr_json_u64(json, "private_allocations", device->private_allocations);
    vr_json_u64(json, "peak_allocated_bytes", device->peak_allocated_bytes);
    vr_json_u64(json, "peak_active_bytes", device->peak_active_bytes);
    vr_json_u64(json, "peak_reserved_bytes", device->peak_reserved_bytes);
    index_json(json, "peak_reserved_event_index", device->peak_reserved_event);
    vr_json_u64(json, "final_reserved_bytes", device->final_reserved_bytes);
    vr_json_double(json, "utilization", utilization(device));
    vr_json_u64(json, "retries", device->retries);
    vr_json_u64(json, "recorded_ooms", device->recorded_ooms);
    vr_json_u64(json, "recorded_ooms_served", device->recorded_ooms_served);
    vr_json_double(json, "driver_time_ms", (double)device->driver_time_ns / 1e6);
    vr_json_object(json, "driver_calls");
    for (size_t i = 0; i < device->call_count; i++) vr_json_u64(json, device->calls[i].name, device->calls[i].count);
    vr_json_object_end(json);
    oom_json(json, device);
    vr_json_object_end(json);
}

static void run_json(struct vr_json *json, const struct vram_whatif_result *run) {
    vr_json_object(json, NULL);
    vr_json_string(json, "conf", run->conf);
    vr_json_bool(json, "recorded_conf", run->recorded_conf);
    vr_json_bool(json, "inferred_conf", run->inferred_conf);
    vr_json_string(json, "start", start_names[run->start]);
    vr_json_string(json, "profile", profile_names[run->profile]);
    if (run->memory_bytes == 0) {
        vr_json_null(json, "memory_bytes");
    } else {
        vr_json_u64(json, "memory_bytes", run->memory_bytes);
    }
    vr_json_bool(json, "finished", run->finished);
    vr_json_array(json, "devices");
    for (size_t i = 0; i < run->device_count; i++) device_json(json, &run->devices[i]);
    vr_json_array_end(json);
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

// --- for people -----------------------------------------------------------------------------------------------------------------
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
        vr_text_printf(text, "  %s of %s requests that failed in the recording were granted with %s\n",
                       vr_count(device->recorded_ooms_served).text, vr_count(device->recorded_ooms).text,
                       run->conf[0] == '\0' ? "defaults" : run->conf);
    }
    if (!device->out_of_memory) return;
    (void)vram_oom_text(&device->oom, report, sizeof report);
    vr_text_colour(text, style, VR_RED);
    if (device->oom_event == VRAM_NO_OFFSET) {
        vr_text_puts(text, "  out of memory while the start state was made");
    } else {
        vr_text_printf(text, "  out of memory at event %s", vr_count(device->oom_event).text);
    }
    vr_text_colour(text, style, VR_PLAIN);
    vr_text_printf(text, " with %s%s:\n    %s\n", run->conf[0] == '\0' ? "defaults" : run->conf,
                   failed_as_recorded(device) ? ", as in the recorded program" : "", report);
}

// Of the runs, the one that came furthest tells how many events there are.
static void put_whatif_heading(struct vr_text *text, const struct vram_whatif_result *const *results, size_t count, size_t index) {
    const struct vram_whatif_result *run = results[0];
    const struct vram_whatif_device *device = &run->devices[index];
    uint64_t events = 0;
    for (size_t i = 0; i < count; i++) events = results[i]->devices[index].events > events ? results[i]->devices[index].events : events;
    vr_text_printf(text, "device %" PRIu32 ": peaks over %s event%s, %s start, ", device->device, vr_count(events).text,
                   events == 1 ? "" : "s", start_names[run->start]);
    if (run->memory_bytes == 0) {
        vr_text_puts(text, "unlimited memory\n");
    } else {
        vr_text_printf(text, "%s of memory\n", vr_bytes(run->memory_bytes).text);
    }
    if (device->private_allocations > 0) {
        vr_text_printf(text, "  %s allocation%s in private pools\n", vr_count(device->private_allocations).text,
                       device->private_allocations == 1 ? "" : "s");
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
