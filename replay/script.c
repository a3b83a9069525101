// script.c: prepares a recording for what-if replays; see script.h.
#include "replay/script.h"

#include "base/hash.h"
#include "config/values.h"
#include "model/recording.h"
#include "replay/stage.h"

// --- names ------------------------------------------------------------------------------------------------------------------
// Walks the history forwards with the allocations live at the current moment.
struct life_naming {
    struct vr_script_device *device;
    struct vr_map live; // recorded address -> 1 + number
    uint32_t *spare;    // numbers that can be reused
    size_t spare_count;
    size_t spare_capacity;
    uint64_t *sizes; // by number, in bytes
    size_t sizes_capacity;
    uint64_t live_bytes; // sizes are capped at SIZE_MOST, so that the sum exceeds the limit before it can wrap
};

#define SIZE_MOST (2 * VR_STAGE_SPACING)

// Begins an allocation at `event`, or VRAM_NO_OFFSET for the initial state.
static enum vram_status begin_life(struct life_naming *naming, uint64_t address, uint64_t size_bytes, uint64_t event, uint32_t *name) {
    struct vr_script_device *device = naming->device;
    *name = naming->spare_count > 0 ? naming->spare[--naming->spare_count] : (uint32_t)device->name_count++;
    VR_TRY(VR_GROW(naming, sizes, device->name_count));
    naming->sizes[*name] = size_bytes < SIZE_MOST ? size_bytes : SIZE_MOST;
    naming->live_bytes += naming->sizes[*name];
    if (naming->live_bytes > VR_STAGE_SPACING && !device->is_beyond) {
        device->is_beyond = true;
        device->beyond_event = event;
    }
    return vr_map_set(&naming->live, address, (uint64_t)*name + 1);
}

static enum vram_status end_life(struct life_naming *naming, uint64_t address) {
    const uint32_t name = (uint32_t)vr_map_take(&naming->live, address) - 1;
    assert(name < naming->device->name_count);
    naming->live_bytes -= naming->sizes[name];
    VR_TRY(vr_grow((void **)&naming->spare, &naming->spare_capacity, naming->spare_count + 1, sizeof *naming->spare));
    naming->spare[naming->spare_count++] = name;
    return VRAM_OK;
}

static enum vr_step step_of(enum vr_action action) {
    switch (action) {
    case VR_ACTION_ALLOC: return VR_STEP_ALLOC;
    case VR_ACTION_FREE: return VR_STEP_FREE;
    case VR_ACTION_FREE_REQUESTED: return VR_STEP_FREE_REQUESTED;
    case VR_ACTION_FREE_COMPLETED: return VR_STEP_FREE_COMPLETED;
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: return VR_STEP_RELEASE;
    case VR_ACTION_OOM: return VR_STEP_OOM;
    default: return vr_action_is_ignored(action) ? VR_STEP_NOTHING : VR_STEP_OTHER;
    }
}

static enum vram_status name_event(struct life_naming *naming, size_t event, enum vr_step *step) {
    struct vr_script_device *device = naming->device;
    const struct vr_history *history = device->recorded.history;
    const uint64_t address = history->address[event];
    uint32_t *name = &device->names[event];
    switch (*step) {
    case VR_STEP_ALLOC: return begin_life(naming, address, history->size_bytes[event], event, name);
    case VR_STEP_FREE:
    case VR_STEP_FREE_REQUESTED:
    case VR_STEP_FREE_COMPLETED:
        *name = (uint32_t)vr_map_get(&naming->live, address) - 1;
        if (*name == UINT32_MAX) {
            *step = VR_STEP_OTHER;
            return VRAM_OK;
        }
        return *step == VR_STEP_FREE_REQUESTED ? VRAM_OK : end_life(naming, address);
    default: return VRAM_OK;
    }
}

// Returns whether the event completes the free of this address. Most frees complete at once; replaying both halves together avoids taking
// all locks twice.
static bool completes(const struct vr_history *history, size_t event, uint64_t address) {
    return event < history->count && history->action[event] == VR_ACTION_FREE_COMPLETED && history->address[event] == address;
}

static void note_request(struct vr_script_device *device, uint64_t size_bytes) {
    if (size_bytes > device->largest_request_bytes) device->largest_request_bytes = size_bytes;
}

static enum vram_status name_all(struct life_naming *naming) {
    struct vr_script_device *device = naming->device;
    const struct vr_history *history = device->recorded.history;
    for (size_t i = 0; i < device->start.block_count; i++) {
        uint32_t name = 0;
        const struct vr_start_block *block = &device->start.blocks[i];
        note_request(device, block->requested);
        VR_TRY(begin_life(naming, block->address, block->requested, VRAM_NO_OFFSET, &name));
    }
    for (size_t event = 0; event < history->count; event++) {
        enum vr_step step = step_of(history->action[event]);
        const bool whole = step == VR_STEP_FREE_REQUESTED && completes(history, event + 1, history->address[event]);
        if (whole) step = VR_STEP_FREE;
        if (step == VR_STEP_ALLOC || step == VR_STEP_OOM) note_request(device, history->size_bytes[event]);
        VR_TRY(name_event(naming, event, &step));
        device->steps[event] = (uint8_t)step;
        event += whole;
    }
    return VRAM_OK;
}

static enum vram_status name_allocations(struct vr_script_device *device) {
    const size_t count = device->recorded.history->count + 1;
    struct life_naming naming = {.device = device};
    device->steps = calloc(count, sizeof *device->steps);
    device->names = malloc(count * sizeof *device->names);
    if (device->steps == NULL || device->names == NULL) return VRAM_NO_HOST_MEMORY;
    const enum vram_status status = name_all(&naming);
    vr_map_release(&naming.live);
    free(naming.spare);
    free(naming.sizes);
    return status;
}

// --- the recording ------------------------------------------------------------------------------------------------------------
static enum vram_status add_script_device(struct vr_script *script, uint32_t ordinal, struct vram_error *error) {
    struct vr_script_device *device = &script->devices[script->device_count];
    device->options = script->options;
    device->narrowed = vr_recorded_narrow(script->model, ordinal, &device->options);
    if (device->narrowed) vr_options_print_places(&device->options, &device->conf);
    VR_TRY(vr_recorded_device_init(&device->recorded, script->model, &device->options, ordinal, error));
    script->device_count++;
    VR_TRY(vr_text_status(&device->conf));
    VR_TRY(vr_start_find(&device->recorded, &device->start));
    return device->start.anomaly_total > 0 ? VRAM_OK : name_allocations(device);
}

static enum vram_status add_devices(struct vr_script *script, bool one_device, uint32_t device, struct vram_error *error) {
    uint32_t *ordinals = NULL;
    size_t count = 0;
    VR_TRY(vr_recorded_device_devices(script->model, &ordinals, &count));
    script->devices = calloc(count + 1, sizeof *script->devices);
    enum vram_status status = script->devices == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        if (!one_device || ordinals[i] == device) status = add_script_device(script, ordinals[i], error);
    }
    free(ordinals);
    return status;
}

enum vram_status vr_script_init(struct vr_script *script, const struct vram_recording *recording, bool one_device, uint32_t device,
                                struct vram_error *error) {
    *script = (struct vr_script){.model = vr_recording_model(recording)};
    script->conf_inferred = vr_recorded_conf(script->model, &script->conf);
    vr_options_init(&script->options);
    enum vram_status status = vr_text_status(&script->conf);
    if (status == VRAM_OK) status = vr_options_parse(&script->options, vr_text_string(&script->conf), error);
    if (status == VRAM_OK) status = add_devices(script, one_device, device, error);
    if (status == VRAM_OK) return VRAM_OK;
    vr_script_release(script);
    return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the replay") : status;
}

void vr_script_release(struct vr_script *script) {
    for (size_t i = 0; i < script->device_count; i++) {
        struct vr_script_device *device = &script->devices[i];
        free(device->steps);
        free(device->names);
        vr_text_release(&device->conf);
        vr_start_release(&device->start);
        vr_recorded_device_release(&device->recorded);
    }
    free(script->devices);
    vr_text_release(&script->conf);
    *script = (struct vr_script){0};
}
