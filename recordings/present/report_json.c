// The report as JSON. docs/reference/json.md says what every key means; those of a device are the reference's, new ones stand after them.
#include <inttypes.h>
#include <stdio.h>

#include "present/shared_texts.h"
#include "present/text_parts.h"
#include "vram/oom.h"
#include "vram/report.h"

static void put_sum(struct vr_json *json, const char *key, const struct vram_report_sum *sum) {
    vr_json_object(json, key);
    vr_json_u64(json, "count", sum->count);
    vr_json_u64(json, "bytes", sum->bytes);
    vr_json_object_end(json);
}

static void put_groups(struct vr_json *json, const char *key, const struct vram_report_group *groups, size_t count) {
    vr_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        vr_json_object(json, NULL);
        vr_json_string(json, "site", groups[i].name);
        vr_json_u64(json, "bytes", groups[i].bytes);
        vr_json_u64(json, "count", groups[i].count);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_longest(struct vr_json *json, const struct vram_report_live *live) {
    vr_json_array(json, "longest_lived");
    for (size_t i = 0; i < live->longest_count; i++) {
        const struct vram_report_lifetime *life = &live->longest[i];
        vr_json_object(json, NULL);
        vr_json_u64(json, "birth", life->birth_event);
        vr_json_u64(json, "death", life->death_event);
        vr_json_u64(json, "events", life->death_event - life->birth_event);
        vr_json_u64(json, "addr", life->address);
        vr_json_u64(json, "size", life->size_bytes);
        if (life->has_time) {
            vr_json_i64(json, "us", life->elapsed_us);
        } else {
            vr_json_null(json, "us");
        }
        vr_json_string(json, "site", life->site);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_anomalies(struct vr_json *json, const uint64_t *anomalies) {
    static const char *const names[] = {
#define ANOMALY_NAME(constant, name, text) #name,
        VRAM_REPORT_ANOMALIES(ANOMALY_NAME)
#undef ANOMALY_NAME
    };
    vr_json_object(json, "anomalies");
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        if (anomalies[a] != 0) vr_json_u64(json, names[a], anomalies[a]);
    }
    vr_json_object_end(json);
}

static void put_live(struct vr_json *json, const char *key, const struct vram_report_live *live) {
    vr_json_object(json, key);
    vr_json_u64(json, "start_bytes", live->start.bytes);
    vr_json_u64(json, "start_count", live->start.count);
    vr_json_u64(json, "peak_bytes", live->peak.bytes);
    vr_json_i64(json, "peak_event_index", live->peak_event);
    vr_json_u64(json, "live_count_at_peak", live->peak.count);
    vr_json_u64(json, "end_bytes", live->end.bytes);
    vr_json_u64(json, "end_count", live->end.count);
    vr_json_u64(json, "end_bytes_from_final_state", live->final_state.bytes);
    vr_json_u64(json, "end_count_from_final_state", live->final_state.count);
    vr_json_bool(json, "consistent", live->consistent);
    put_anomalies(json, live->anomalies);
    put_groups(json, "top_sites_at_peak", live->sites, live->site_count);
    vr_json_u64(json, "distinct_sites_at_peak", live->distinct_sites);
    put_groups(json, "top_stacks_at_peak", live->stacks, live->stack_count);
    vr_json_u64(json, "distinct_stacks_at_peak", live->distinct_stacks);
    put_sum(json, "born_and_freed_in_trace", &live->born_and_freed);
    put_sum(json, "born_in_trace_live_at_end", &live->born_and_kept);
    put_sum(json, "live_before_trace_freed_in_trace", &live->inherited_and_freed);
    put_sum(json, "live_before_trace_live_at_end", &live->inherited_and_kept);
    put_longest(json, live);
    vr_json_u64(json, "largest_allocation_in_trace", live->largest_bytes);
    vr_json_object_end(json);
}

static void put_streams(struct vr_json *json, const char *key, const int64_t *streams, size_t count) {
    vr_json_array(json, key);
    for (size_t i = 0; i < count; i++) vr_json_i64(json, NULL, streams[i]);
    vr_json_array_end(json);
}

static void put_times(struct vr_json *json, const struct vram_report_device *device) {
    if (!device->has_times) {
        vr_json_null(json, "time_us_first_last");
        vr_json_null(json, "time_us_monotonic");
        return;
    }
    vr_json_array(json, "time_us_first_last");
    vr_json_i64(json, NULL, device->first_time_us);
    vr_json_i64(json, NULL, device->last_time_us);
    vr_json_array_end(json);
    vr_json_bool(json, "time_us_monotonic", device->times_monotonic);
}

static void put_actions(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_object(json, "events_by_action");
    for (size_t i = 0; i < device->action_count; i++) vr_json_u64(json, device->actions[i].name, device->actions[i].count);
    vr_json_object_end(json);
    vr_json_object(json, "event_bytes_by_action");
    for (size_t i = 0; i < device->action_count; i++) vr_json_u64(json, device->actions[i].name, device->actions[i].bytes);
    vr_json_object_end(json);
}

static const char *cause_name(enum vram_report_oom_cause cause) {
    static const char *const names[] = {
#define CAUSE_NAME(constant, name) #name,
        VRAM_REPORT_OOM_CAUSES(CAUSE_NAME)
#undef CAUSE_NAME
    };
    return names[cause];
}

static void put_ooms(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_array(json, "oom");
    for (size_t i = 0; i < device->oom_count; i++) {
        const struct vram_report_oom *oom = &device->ooms[i];
        vr_json_object(json, NULL);
        vr_json_u64(json, "index", oom->event);
        vr_json_u64(json, "size", oom->size_bytes);
        if (oom->has_device_free) {
            vr_json_u64(json, "device_free", oom->device_free_bytes);
        } else {
            vr_json_null(json, "device_free");
        }
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_known(struct vr_json *json, const char *key, uint64_t bytes) {
    if (bytes == 0) {
        vr_json_null(json, key);
    } else {
        vr_json_u64(json, key, bytes);
    }
}

static void put_if(struct vr_json *json, const char *key, bool known, uint64_t bytes) {
    if (known) {
        vr_json_u64(json, key, bytes);
    } else {
        vr_json_null(json, key);
    }
}

static void put_processes(struct vr_json *json, const struct vram_report_accounts *accounts) {
    vr_json_array(json, "processes");
    for (size_t i = 0; i < accounts->process_count; i++) {
        const struct vram_report_process *process = &accounts->processes[i];
        vr_json_object(json, NULL);
        vr_json_u64(json, "pid", process->id);
        vr_json_string(json, "name", process->name);
        put_if(json, "bytes", process->bytes != UINT64_MAX, process->bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_accounts(struct vr_json *json, const struct vram_report_accounts *accounts) {
    if (accounts == NULL) {
        vr_json_null(json, "accounts");
        return;
    }
    vr_json_object(json, "accounts");
    put_if(json, "context_bytes", accounts->has_context, accounts->context_bytes);
    put_if(json, "module_bytes", accounts->has_modules, accounts->module_bytes);
    put_if(json, "driver_bytes", accounts->has_self, accounts->driver_bytes);
    put_if(json, "other_bytes", accounts->has_processes, accounts->other_bytes);
    vr_json_u64(json, "unknown_bytes", accounts->unknown_bytes);
    put_if(json, "at_start_bytes", accounts->at_start_bytes != UINT64_MAX, accounts->at_start_bytes);
    vr_json_bool(json, "apart", accounts->apart);
    vr_json_string(json, "why", accounts->why);
    vr_json_u64(json, "left_out", accounts->left_out);
    put_processes(json, accounts);
    vr_json_object_end(json);
}

static void put_bounds(struct vr_json *json, const struct vram_report_oom *oom) {
    vr_json_u64(json, "private_pool_bytes", oom->private_pool_bytes);
    if (oom->driver_pool_bytes != 0) vr_json_u64(json, "driver_pool_bytes", oom->driver_pool_bytes);
    vr_json_u64(json, "outside_bytes", oom->outside_bytes);
    put_known(json, "device_total_bytes", oom->device_total_bytes);
    put_known(json, "limit_bytes", oom->limit_bytes);
    put_known(json, "room_bytes", oom->room_bytes);
    vr_json_u64(json, "pin_bytes", oom->pin_bytes);
    vr_json_u64(json, "pin_blocks", oom->pin_blocks);
    vr_json_string(json, "pin_site", oom->pin_site);
    vr_json_string(json, "held_site", oom->held_site);
    put_accounts(json, oom->accounts);
    if (oom->library_count != 0) put_groups(json, "libraries", oom->libraries, oom->library_count);
}

static void put_oom_causes(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_array(json, "oom_causes");
    for (size_t i = 0; i < device->oom_count; i++) {
        const struct vram_report_oom *oom = &device->ooms[i];
        vr_json_object(json, NULL);
        vr_json_u64(json, "index", oom->event);
        vr_json_string(json, "cause", cause_name(oom->cause));
        if (oom->is_host) vr_json_bool(json, "host", true);
        vr_json_string(json, "text", oom->text);
        vr_json_string(json, "advice", oom->advice);
        vr_json_string(json, "site", oom->site);
        vr_json_i64(json, "stream", oom->stream);
        if (oom->has_picture) {
            vr_json_u64(json, "segment_bytes", oom->segment_bytes);
            vr_json_u64(json, "reserved_bytes", oom->reserved_bytes);
            vr_json_u64(json, "allocated_bytes", oom->allocated_bytes);
            vr_json_u64(json, "pending_bytes", oom->pending_bytes);
            vr_json_u64(json, "free_bytes", oom->free_bytes);
            vr_json_u64(json, "largest_free_bytes", oom->largest_free_bytes);
            vr_json_u64(json, "usable_bytes", oom->usable_bytes);
            vr_json_u64(json, "usable_largest_bytes", oom->usable_largest_bytes);
            vr_json_u64(json, "usable_pieces", oom->usable_pieces);
            vr_json_u64(json, "other_stream_bytes", oom->other_stream_bytes);
            vr_json_u64(json, "other_pool_bytes", oom->other_pool_bytes);
            put_bounds(json, oom);
            put_groups(json, "holders", oom->holders, oom->holder_count);
            if (oom->demand != NULL) vr_demand_json(json, oom->demand);
        }
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

void vr_report_json_ooms(struct vr_json *json, const struct vram_report_device *device) {
    put_ooms(json, device);
    put_oom_causes(json, device);
}

static const char *kind_name(size_t kind) {
    static const char *const names[] = {"null", "small", "large"};
    return names[kind];
}

static void put_pool_ids(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_array(json, "segment_pool_ids");
    for (size_t i = 0; i < device->pool_id_count; i++) {
        vr_json_array(json, NULL);
        vr_json_u64(json, NULL, device->pool_ids[i][0]);
        vr_json_u64(json, NULL, device->pool_ids[i][1]);
        vr_json_array_end(json);
    }
    vr_json_array_end(json);
}

static void put_picture(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_u64(json, "segments", device->segments);
    vr_json_object(json, "segments_by_type");
    for (size_t k = 0; k < 3; k++) {
        if (device->segments_of_kind[k] != 0) vr_json_u64(json, kind_name(k), device->segments_of_kind[k]);
    }
    vr_json_object_end(json);
    vr_json_u64(json, "expandable_segments", device->expandable_segments);
    put_pool_ids(json, device);
    vr_json_u64(json, "blocks", device->blocks);
    vr_json_object(json, "blocks_by_state");
    for (size_t s = 0; s < VRAM_REPORT_STATES; s++) {
        if (device->states[s].count == 0) continue;
        vr_json_object(json, vram_report_state_name(s));
        vr_json_u64(json, "count", device->states[s].count);
        vr_json_u64(json, "bytes", device->states[s].bytes);
        vr_json_u64(json, "requested_bytes", device->states[s].requested_bytes);
        vr_json_object_end(json);
    }
    vr_json_object_end(json);
    vr_json_u64(json, "inactive_bytes", device->inactive.bytes);
    vr_json_u64(json, "inactive_blocks", device->inactive.count);
    vr_json_u64(json, "largest_inactive_block", device->largest_inactive_bytes);
    vr_json_u64(json, "wholly_inactive_segments", device->wholly_inactive.count);
    vr_json_u64(json, "wholly_inactive_segment_bytes", device->wholly_inactive.bytes);
    vr_json_object(json, "segment_sum_mismatches");
    for (size_t m = 0; m < VRAM_REPORT_MISMATCHES; m++) {
        if (device->mismatches[m] != 0) vr_json_u64(json, vram_report_mismatch_name(m), device->mismatches[m]);
    }
    vr_json_object_end(json);
}

// Of a whole program only a part of what it holds is seen to come from the driver; of others a note says where the figures contradict.
static bool covers_allocated(const struct vram_report_device *device) {
    const int64_t reserved = device->reserved.peak_bytes;
    return !device->whole_program || (reserved >= 0 && (uint64_t)reserved >= device->allocated.peak.bytes);
}

static void put_reserved(struct vr_json *json, const struct vram_report_device *device) {
    const struct vram_report_reserved *reserved = &device->reserved;
    vr_json_object(json, "reserved");
    vr_json_i64(json, "start_bytes", reserved->start_bytes);
    vr_json_i64(json, "peak_bytes", reserved->peak_bytes);
    vr_json_i64(json, "peak_event_index", reserved->peak_event);
    vr_json_i64(json, "end_bytes", reserved->end_bytes);
    vr_json_bool(json, "consistent", reserved->consistent && covers_allocated(device));
    vr_json_object_end(json);
}

static void put_usage(struct vr_json *json, const struct vram_report_usage *usage) {
    vr_json_object(json, "usage_at_end");
    vr_json_u64(json, "reserved_bytes", usage->reserved_bytes);
    vr_json_u64(json, "requested_bytes", usage->requested_bytes);
    vr_json_u64(json, "rounding_bytes", usage->rounding_bytes);
    vr_json_u64(json, "pending_bytes", usage->pending_bytes);
    vr_json_u64(json, "free_block_bytes", usage->free_block_bytes);
    vr_json_u64(json, "cached_bytes", usage->cached_bytes);
    vr_json_i64(json, "unaccounted_bytes", usage->unaccounted_bytes);
    vr_json_u64(json, "free_blocks", usage->free_blocks);
    vr_json_u64(json, "largest_free_bytes", usage->largest_free_bytes);
    vr_json_u64(json, "page_bytes", usage->page_bytes);
    vr_json_object_end(json);
}

static void put_pools(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_array(json, "pools");
    for (size_t i = 0; i < device->pool_count; i++) {
        const struct vram_report_pool *pool = &device->pools[i];
        vr_json_object(json, NULL);
        vr_json_i64(json, "stream", pool->stream);
        vr_json_array(json, "pool_id");
        vr_json_u64(json, NULL, pool->pool_id[0]);
        vr_json_u64(json, NULL, pool->pool_id[1]);
        vr_json_array_end(json);
        vr_json_string(json, "segment_type", pool->kind == VRAM_REPORT_KIND_UNKNOWN ? NULL : kind_name(pool->kind));
        vr_json_u64(json, "segments", pool->segments);
        vr_json_u64(json, "expandable_segments", pool->expandable_segments);
        vr_json_u64(json, "reserved_bytes", pool->reserved_bytes);
        vr_json_u64(json, "allocated_bytes", pool->allocated_bytes);
        vr_json_u64(json, "pending_bytes", pool->pending_bytes);
        vr_json_u64(json, "free_bytes", pool->free_bytes);
        vr_json_u64(json, "free_blocks", pool->free_blocks);
        vr_json_u64(json, "largest_free_bytes", pool->largest_free_bytes);
        vr_json_u64(json, "cached_bytes", pool->cached_bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_timeline(struct vr_json *json, const struct vram_report_device *device) {
    vr_json_object(json, "timeline");
    vr_json_array(json, "first_event");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].first_event);
    vr_json_array_end(json);
    vr_json_array(json, "allocated_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].allocated_bytes);
    vr_json_array_end(json);
    vr_json_array(json, "active_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_u64(json, NULL, device->timeline[i].active_bytes);
    vr_json_array_end(json);
    vr_json_array(json, "reserved_bytes");
    for (size_t i = 0; i < device->timeline_count; i++) vr_json_i64(json, NULL, device->timeline[i].reserved_bytes);
    vr_json_array_end(json);
    vr_json_object_end(json);
}

static void put_report_device(struct vr_json *json, const char *key, const struct vram_report_device *device) {
    vr_json_object(json, key);
    vr_json_u64(json, "events", device->events);
    put_actions(json, device);
    vr_json_u64(json, "events_with_frames", device->events_with_frames);
    vr_json_u64(json, "max_frames", device->max_frames);
    put_streams(json, "streams_in_trace", device->trace_streams, device->trace_stream_count);
    put_streams(json, "streams_in_segments", device->segment_streams, device->segment_stream_count);
    put_times(json, device);
    put_ooms(json, device);
    put_picture(json, device);
    put_reserved(json, device);
    put_live(json, "allocated", &device->allocated);
    put_live(json, "active", &device->active);
    put_usage(json, &device->usage);
    put_pools(json, device);
    put_oom_causes(json, device);
    if (device->demand != NULL) vr_demand_json(json, device->demand);
    if (device->library_count != 0) {
        put_groups(json, "libraries", device->libraries, device->library_count);
        put_groups(json, "kinds", device->kinds, device->kind_count);
    }
    put_timeline(json, device);
    vr_json_object_end(json);
}

// Pinned host memory is no device: it stands beside them.
static void put_devices(struct vr_json *json, const struct vram_report *report) {
    const struct vram_report_device *host = NULL;
    vr_json_object(json, "devices");
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        char key[16];
        (void)snprintf(key, sizeof key, "%" PRIu32, device->device);
        if (device->is_host)
            host = device;
        else
            put_report_device(json, key, device);
    }
    vr_json_object_end(json);
    if (host != NULL) put_report_device(json, "host", host);
}

static void put_settings(struct vr_json *json, const struct vram_report *report) {
    if (!report->has_settings) {
        vr_json_null(json, "allocator_settings");
        return;
    }
    if (report->odd_settings != NULL) {
        vr_json_raw(json, "allocator_settings", report->odd_settings);
        return;
    }
    vr_json_object(json, "allocator_settings");
    for (size_t i = 0; i < report->setting_count; i++) vr_json_raw(json, report->settings[i].key, report->settings[i].value);
    vr_json_object_end(json);
}

static bool is_host(const struct vram_report *report, int64_t device) {
    for (size_t d = 0; d < report->device_count; d++) {
        if (report->devices[d].device == device) return report->devices[d].is_host;
    }
    return false;
}

static void put_notes(struct vr_json *json, const char *key, const struct vram_report *report, enum vram_report_note_kind kind) {
    vr_json_array(json, key);
    for (size_t i = 0; i < report->note_count; i++) {
        if (report->notes[i].kind != kind) continue;
        vr_json_object(json, NULL);
        if (is_host(report, report->notes[i].device)) {
            vr_json_string(json, "device", "host");
        } else if (report->notes[i].device < 0) {
            vr_json_null(json, "device");
        } else {
            vr_json_i64(json, "device", report->notes[i].device);
        }
        vr_json_string(json, "code", report->notes[i].code);
        vr_json_string(json, "text", report->notes[i].text);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_advice(struct vr_json *json, const struct vram_report *report) {
    vr_json_array(json, "advice");
    for (size_t i = 0; i < report->advice_count; i++) {
        vr_json_object(json, NULL);
        vr_json_i64(json, "device", report->advice[i].device);
        vr_json_string(json, "code", report->advice[i].code);
        vr_json_string(json, "text", report->advice[i].text);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

// Only where somebody looked for them.
static void put_cures(struct vr_json *json, const struct vram_report_source *source) {
    if (source == NULL || source->cures == NULL) return;
    vr_json_array(json, "cures");
    for (size_t i = 0; i < source->cure_count; i++) {
        vr_json_object(json, NULL);
        vr_cure_json(&source->cures[i], json);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

// As the cures.
static void put_savings(struct vr_json *json, const struct vram_report_source *source) {
    if (source == NULL || source->savings == NULL) return;
    vr_json_array(json, "paged");
    for (size_t i = 0; i < source->saving_count; i++) {
        vr_json_object(json, NULL);
        vr_paged_json(&source->savings[i], json);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_report(struct vr_json *json, const struct vram_report *report, const struct vram_report_source *source) {
    vr_json_object(json, NULL);
    if (source != NULL) {
        vr_json_string(json, "file", source->file);
        vr_json_u64(json, "bytes", source->bytes);
    }
    vr_json_string(json, "form", report->form);
    vr_json_string(json, "generation", report->generation);
    vr_json_string(json, "era", report->era);
    vr_json_string(json, "platform", report->platform[0] == '\0' ? NULL : report->platform);
    vr_json_array(json, "top_level_keys");
    for (size_t i = 0; i < report->top_level_key_count; i++) vr_json_string(json, NULL, report->top_level_keys[i]);
    if (report->top_level_key_count == 0 && strcmp(report->form, "segment_list") == 0) vr_json_string(json, NULL, "<list>");
    vr_json_array_end(json);
    vr_json_u64(json, "annotation_count", report->annotations);
    put_settings(json, report);
    vr_json_u64(json, "device_trace_lists", report->trace_lists);
    put_devices(json, report);
    put_cures(json, source);
    put_savings(json, source);
    put_notes(json, "contradictions", report, VRAM_NOTE_CONTRADICTION);
    put_notes(json, "missing", report, VRAM_NOTE_MISSING);
    put_advice(json, report);
    vr_json_object_end(json);
}

enum vram_status vram_report_json(const struct vram_report *report, const struct vram_report_source *source, vram_write write, void *user) {
    VR_REQUIRE(report && write);
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, true);
    put_report(&json, report, source);
    return vr_text_finish(&text, write, user);
}
