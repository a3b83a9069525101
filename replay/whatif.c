// whatif.c: replays a recorded history with other settings or less memory. Recorded addresses only identify allocations; the allocator and
// the simulator choose the real ones.
#include <inttypes.h>
#include <stdio.h>

#include "core/record.h"
#include "core/state.h"
#include "os/os.h"
#include "replay/option_strings.h"
#include "replay/script.h"
#include "replay/stage.h"
#include "vram/replay.h"
#include "vram/sim.h"

enum { DEVICE = 0 };

struct whatif {
    const struct vr_script_device *script;
    const struct vr_recorded_device *recorded; // the script's
    const struct vram_whatif_options *options;
    bool only_sums; // do not find the event of the reserved peak
    struct vr_replay_stage stage;
    struct vram_whatif_device *device; // the result
    uint32_t pytorch;                  // version whose rules apply unless the settings name one
    uint64_t *ours;                    // replayed addresses by the script's numbers; 0: a request of 0 bytes
    uint64_t reserved_bytes;
    uint64_t event;   // current event; VRAM_NO_OFFSET before the first
    bool in_releases; // the last relevant event was a release, for which the cache was emptied
    uint32_t trimmed; // private pool whose releases are being replayed; 0: none
};

// Called with the allocator's lock held: only adds up.
static void listen_whatif(const struct vr_record *record, void *user) {
    struct whatif *whatif = user;
    if (record->action == VR_RECORD_SEGMENT_ALLOC || record->action == VR_RECORD_SEGMENT_MAP) {
        whatif->reserved_bytes += record->size_bytes;
    } else if (record->action == VR_RECORD_SEGMENT_FREE || record->action == VR_RECORD_SEGMENT_UNMAP) {
        whatif->reserved_bytes -= record->size_bytes;
    }
    if (whatif->reserved_bytes > whatif->device->peak_reserved_bytes) {
        whatif->device->peak_reserved_bytes = whatif->reserved_bytes;
        whatif->device->peak_reserved_event = whatif->event;
    }
}

// --- events -----------------------------------------------------------------------------------------------------------------
// Requests memory. *address is 0 for a request of 0 bytes, and if memory ran out, which ends the run.
static enum vram_status request_bytes(struct whatif *whatif, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    const enum vram_status status =
        vram_malloc(whatif->stage.allocator, DEVICE, size_bytes, vr_stage_stream(&whatif->stage, stream), address);
    if (status != VRAM_OUT_OF_MEMORY && status != VRAM_REJECTED) return status;
    whatif->device->out_of_memory = true;
    whatif->device->oom_event = whatif->event;
    (void)vram_last_oom(&whatif->device->oom);
    // Report the recording's device and stream, not the simulator's.
    whatif->device->oom.device = whatif->device->device;
    whatif->device->oom.stream = stream;
    return VRAM_OK;
}

static enum vram_status allocate_block(struct whatif *whatif, uint32_t name, uint64_t size_bytes, uint64_t stream, uint32_t pool) {
    whatif->ours[name] = 0;
    VR_TRY(vr_stage_enter(&whatif->stage, pool));
    return request_bytes(whatif, size_bytes, stream, &whatif->ours[name]);
}

static enum vram_status replay_alloc(struct whatif *whatif, size_t event) {
    const struct vr_history *history = whatif->recorded->history;
    const uint32_t pool = vr_recorded_device_pool(whatif->recorded, event);
    whatif->device->allocations++;
    if (pool != 0) whatif->device->private_allocations++;
    return allocate_block(whatif, whatif->script->names[event], history->size_bytes[event], vr_entry_stream(history, event), pool);
}

// Replays the release of a segment of a private pool. The first such release after the pool's last use shows that the pool has no owner any
// more.
static enum vram_status replay_release_of_held(struct whatif *whatif, size_t event, uint32_t pool) {
    if (!whatif->options->ignore_releases) VR_TRY(vr_stage_trim(&whatif->stage, pool));
    if (event >= whatif->recorded->pools.used[pool]) vr_stage_give_up(&whatif->stage, pool);
    return VRAM_OK;
}

static enum vram_status replay_release(struct whatif *whatif, size_t event) {
    const uint32_t pool = vr_recorded_device_pool(whatif->recorded, event);
    if (pool != 0 && pool == whatif->trimmed) return VRAM_OK;
    whatif->trimmed = pool;
    if (pool != 0 && whatif->stage.pools[pool] != NULL) return replay_release_of_held(whatif, event, pool);
    if (whatif->in_releases || whatif->options->ignore_releases) return VRAM_OK;
    whatif->in_releases = true;
    return vram_empty_cache_device(whatif->stage.allocator, DEVICE);
}

// Replays a request that failed in the recorded program. What the program would have done with the memory is unknown, so it is freed at
// once.
static enum vram_status try_again(struct whatif *whatif, size_t event) {
    const struct vr_history *history = whatif->recorded->history;
    uint64_t address = 0;
    whatif->device->recorded_ooms++;
    if (whatif->options->memory_bytes == 0) return VRAM_OK;
    VR_TRY(vr_stage_enter(&whatif->stage, vr_recorded_device_pool(whatif->recorded, event)));
    const uint64_t size = history->size_bytes[event], padding = whatif->recorded->options->request_padding_bytes;
    // The recorded size is rounded.
    VR_TRY(request_bytes(whatif, size > padding ? size - padding : size, vr_entry_stream(history, event), &address));
    if (address == 0) return VRAM_OK;
    whatif->device->recorded_ooms_served++;
    VR_TRY(vr_drive_free_request(whatif->stage.allocator, address));
    return vr_drive_free_complete(whatif->stage.allocator, address);
}

static enum vram_status replay_event(struct whatif *whatif, size_t event) {
    const enum vr_step step = whatif->script->steps[event];
    if (step == VR_STEP_NOTHING) return VRAM_OK;
    if (step == VR_STEP_RELEASE) return replay_release(whatif, event);
    whatif->in_releases = false;
    whatif->trimmed = 0;
    if (step == VR_STEP_OTHER) return VRAM_OK;
    if (step == VR_STEP_ALLOC) return replay_alloc(whatif, event);
    if (step == VR_STEP_OOM) return try_again(whatif, event);
    const uint64_t address = whatif->ours[whatif->script->names[event]];
    if (address == 0) return VRAM_OK;
    switch (step) {
    case VR_STEP_FREE_REQUESTED: return vr_drive_free_request(whatif->stage.allocator, address);
    case VR_STEP_FREE_COMPLETED: return vr_drive_free_complete(whatif->stage.allocator, address);
    default: return vram_free(whatif->stage.allocator, address);
    }
}

// Replays all events. If the allocator refuses one, that is due to the recording: the run ends there and reports it.
static enum vram_status replay_events(struct whatif *whatif) {
    const size_t count = whatif->recorded->history->count, between_looks = 1024; // events between two looks at the clock
    const uint64_t most_ns = whatif->options->most_ns, start_ns = most_ns == 0 ? 0 : vr_os_monotonic_ns();
    for (size_t event = 0; event < count && !whatif->device->out_of_memory; event++) {
        if (most_ns != 0 && event % between_looks == 0 && vr_os_monotonic_ns() - start_ns > most_ns) return VRAM_LIMIT;
        whatif->event = event;
        const enum vram_status status = replay_event(whatif, event);
        if (status == VRAM_NO_HOST_MEMORY) return status;
        if (status != VRAM_OK) {
            whatif->device->contradiction = true;
            snprintf(whatif->device->reason, sizeof whatif->device->reason, "stopped at event %zu: %s", event, vram_status_text(status));
            return VRAM_OK;
        }
        whatif->device->events = event + 1;
    }
    return VRAM_OK;
}

// --- the start --------------------------------------------------------------------------------------------------------------
static enum vram_status start_cold(struct whatif *whatif, const struct vr_start *start) {
    for (size_t i = 0; i < start->block_count && !whatif->device->out_of_memory; i++) {
        const struct vr_start_block *block = &start->blocks[i];
        const struct vr_start_segment *segment = &start->segments[block->segment];
        VR_TRY(allocate_block(whatif, (uint32_t)i, block->requested, segment->stream, segment->pool));
        if (block->pending && whatif->ours[i] != 0) VR_TRY(vr_drive_free_request(whatif->stage.allocator, whatif->ours[i]));
    }
    return VRAM_OK;
}

// Returns whether the recorded initial state fits: its segments must not exceed the memory.
static bool start_fits(struct whatif *whatif, const struct vr_start *start) {
    uint64_t sum = 0, active = 0;
    for (size_t i = 0; i < start->segment_count; i++) sum += start->segments[i].size;
    for (size_t i = 0; i < start->block_count; i++) active += start->blocks[i].size;
    if (whatif->options->memory_bytes == 0 || sum <= whatif->options->memory_bytes) return true;
    whatif->device->out_of_memory = true;
    whatif->device->oom_event = VRAM_NO_OFFSET;
    whatif->device->oom = (struct vram_oom){.requested_bytes = sum,
                                            .rounded_bytes = sum,
                                            .segment_bytes = sum,
                                            .device_total_bytes = whatif->options->memory_bytes,
                                            .device_free_bytes = whatif->options->memory_bytes,
                                            .limit_bytes = UINT64_MAX,
                                            .allocated_bytes = active};
    return false;
}

static enum vram_status start_recorded(struct whatif *whatif, const struct vr_start *start, struct vram_error *error) {
    if (!start_fits(whatif, start)) return VRAM_OK;
    VR_TRY(vr_stage_build(&whatif->stage, whatif->recorded, start, error));
    for (size_t i = 0; i < start->block_count; i++) whatif->ours[i] = start->blocks[i].address;
    struct vram_stats stats;
    VR_TRY(vram_reset_peak_stats(whatif->stage.allocator, DEVICE));
    VR_TRY(vram_get_stats(whatif->stage.allocator, DEVICE, &stats));
    whatif->reserved_bytes = (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current;
    whatif->device->peak_reserved_bytes = whatif->reserved_bytes;
    return VRAM_OK;
}

// --- results ----------------------------------------------------------------------------------------------------------------
// Counts and costs of driver calls at a moment.
struct meter {
    struct vram_whatif_call calls[VRAM_WHATIF_CALLS];
    size_t count;
    uint64_t clock_ns;
};

static void read_meter(struct vram_driver *driver, struct meter *meter) {
    struct vram_whatif_call call = {0};
    for (meter->count = 0; meter->count < VRAM_WHATIF_CALLS; meter->count++) {
        if (!vram_sim_call_at(driver, (uint32_t)meter->count, &call.name, &call.count, &call.cost_ns)) break;
        meter->calls[meter->count] = call;
    }
    meter->clock_ns = vram_sim_clock_ns(driver);
}

static enum vram_status take_results(struct whatif *whatif, const struct meter *before) {
    struct vram_whatif_device *device = whatif->device;
    struct vram_stats stats;
    struct meter after;
    VR_TRY(vram_get_stats(whatif->stage.allocator, DEVICE, &stats));
    device->peak_allocated_bytes = (uint64_t)stats.allocated_bytes[VRAM_STAT_ALL].peak;
    device->peak_active_bytes = (uint64_t)stats.active_bytes[VRAM_STAT_ALL].peak;
    device->peak_reserved_bytes = (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].peak;
    device->final_reserved_bytes = (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current;
    device->retries = (uint64_t)stats.num_alloc_retries;
    read_meter(whatif->stage.driver, &after);
    device->driver_time_ns = after.clock_ns - before->clock_ns;
    for (size_t i = 0; i < after.count; i++) {
        struct vram_whatif_call call = after.calls[i];
        call.count -= before->calls[i].count;
        call.cost_ns -= before->calls[i].cost_ns;
        if (call.count > 0) device->calls[device->call_count++] = call;
    }
    return VRAM_OK;
}

// --- one device ---------------------------------------------------------------------------------------------------------------
// Writes why the device cannot be replayed; empty if it can. A replay's tables grow with the live bytes, so what no device holds is not
// replayed, whatever the memory.
static void refuse_script(const struct vr_script_device *script, char *reason, size_t size) {
    *reason = '\0';
    if (script->start.anomaly_total > 0) {
        vr_start_describe(&script->start, reason, size);
    } else if (script->is_beyond) {
        const struct vr_formatted most = vr_bytes(VR_STAGE_SPACING);
        if (script->beyond_event == VRAM_NO_OFFSET)
            (void)snprintf(reason, size, "more than %s is live at the start, more than any device has", most.text);
        else
            (void)snprintf(reason, size, "more than %s is live after event %" PRIu64 ", more than any device has", most.text,
                           script->beyond_event);
    }
}

static enum vram_status run_whatif(struct whatif *whatif, const struct vr_start *start, const char *conf, struct vram_error *error) {
    const bool limited = whatif->options->memory_bytes != 0, recorded = whatif->options->start == VRAM_WHATIF_RECORDED;
    const struct vr_stage_options stage = {.conf = conf,
                                           .memory_bytes = limited ? whatif->options->memory_bytes : VR_STAGE_SPACING,
                                           .profile = whatif->options->profile,
                                           .pytorch = whatif->pytorch,
                                           .high_addresses = recorded};
    struct meter before;
    VR_TRY(vr_stage_open(&whatif->stage, whatif->recorded, &stage, error));
    read_meter(whatif->stage.driver, &before);
    whatif->event = VRAM_NO_OFFSET;
    whatif->device->peak_reserved_event = VRAM_NO_OFFSET;
    if (recorded) {
        VR_TRY(start_recorded(whatif, start, error));
        read_meter(whatif->stage.driver, &before);
    }
    if (!whatif->only_sums) vr_allocator_set_recorder(whatif->stage.allocator, listen_whatif, whatif);
    if (!recorded) VR_TRY(start_cold(whatif, start));
    VR_TRY(replay_events(whatif));
    vr_allocator_set_recorder(whatif->stage.allocator, NULL, NULL);
    return take_results(whatif, &before);
}

static enum vram_status run_device(const struct vr_script_device *script, const struct vram_whatif_options *options, bool only_sums,
                                   const char *conf, struct vram_whatif_device *device, struct vram_error *error) {
    struct whatif whatif = {.script = script, .recorded = &script->recorded, .options = options, .only_sums = only_sums, .device = device};
    whatif.pytorch = vr_recorded_rules(script->recorded.model).likely;
    struct vram_error detail = {0};
    device->device = script->recorded.device;
    refuse_script(script, device->reason, sizeof device->reason);
    device->contradiction = *device->reason != '\0';
    if (device->contradiction) return VRAM_OK;
    whatif.ours = malloc((script->name_count + 1) * sizeof *whatif.ours);
    enum vram_status status = whatif.ours == NULL ? VRAM_NO_HOST_MEMORY : run_whatif(&whatif, &script->start, conf, &detail);
    if (status == VRAM_MISMATCH) {
        device->contradiction = true;
        snprintf(device->reason, sizeof device->reason, "%s", detail.message);
        status = VRAM_OK;
    } else if (status != VRAM_OK && error != NULL) {
        *error = detail;
    }
    vr_stage_close(&whatif.stage);
    free(whatif.ours);
    return status;
}

// --- the whole recording ------------------------------------------------------------------------------------------------------
static enum vram_status run_by_conf(const struct vr_script_device *script, const struct vram_whatif_options *options, bool only_sums,
                                    const struct vram_whatif_result *result, struct vram_whatif_device *device, struct vram_error *error) {
    if (!result->recorded_conf || !script->narrowed) return run_device(script, options, only_sums, result->conf, device, error);
    struct vr_text conf = {0};
    (void)vr_choose_conf(vr_text_string(&script->conf), options->conf, &conf);
    enum vram_status status = vr_text_status(&conf);
    if (status == VRAM_OK) status = run_device(script, options, only_sums, vr_text_string(&conf), device, error);
    vr_text_release(&conf);
    return status;
}

static enum vram_status run_all(const struct vr_script *script, const struct vram_whatif_options *options, bool only_sums,
                                struct vram_whatif_result *result, struct vram_error *error) {
    result->devices = calloc(script->device_count + 1, sizeof *result->devices);
    if (result->devices == NULL) return VRAM_NO_HOST_MEMORY;
    result->finished = true;
    for (size_t i = 0; i < script->device_count; i++) {
        struct vram_whatif_device *device = &result->devices[result->device_count++];
        VR_TRY(run_by_conf(&script->devices[i], options, only_sums, result, device, error));
        result->finished = result->finished && !device->out_of_memory && !device->contradiction;
    }
    return VRAM_OK;
}

// Determines the option string in force.
static enum vram_status choose_conf(const struct vr_script *script, const char *asked, struct vram_whatif_result *result) {
    struct vr_text conf = {0};
    result->recorded_conf = vr_choose_conf(vr_text_string(&script->conf), asked, &conf);
    result->inferred_conf = result->recorded_conf && script->conf_inferred;
    const enum vram_status status = vr_text_copy(&conf, &result->conf);
    vr_text_release(&conf);
    return status;
}

enum vram_status vr_script_play(const struct vr_script *script, const struct vram_whatif_options *options, bool only_sums,
                                struct vram_whatif_result **result, struct vram_error *error) {
    struct vram_whatif_result *made = calloc(1, sizeof *made);
    enum vram_status status = made == NULL ? VRAM_NO_HOST_MEMORY : choose_conf(script, options->conf, made);
    if (status == VRAM_OK) {
        made->memory_bytes = options->memory_bytes;
        made->start = options->start;
        made->profile = options->profile;
        status = run_all(script, options, only_sums, made, error);
    }
    if (status != VRAM_OK) {
        vram_whatif_result_destroy(made);
        return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the replay") : status;
    }
    *result = made;
    return VRAM_OK;
}

enum vram_status vram_replay_whatif(const struct vram_recording *recording, const struct vram_whatif_options *options,
                                    struct vram_whatif_result **result, struct vram_error *error) {
    static const struct vram_whatif_options defaults = {0};
    if (recording == NULL || result == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and result must not be NULL");
    if (options == NULL) options = &defaults;
    struct vr_script script;
    VR_TRY(vr_script_init(&script, recording, options->one_device, options->device, error));
    const enum vram_status status = vr_script_play(&script, options, false, result, error);
    vr_script_release(&script);
    return status;
}

void vram_whatif_result_destroy(struct vram_whatif_result *result) {
    if (result == NULL) return;
    free(result->conf);
    free(result->devices);
    free(result);
}
