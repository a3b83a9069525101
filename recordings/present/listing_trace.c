// `trace`: the history, an event a row.
#include "analyze/lifetimes.h"
#include "present/listing.h"

#include <stdio.h>

// How many allocations, and how many reservations, began at an address.
struct address_uses {
    struct vr_map blocks, segments;
};

enum { NO_LABEL, BLOCK, SEGMENT };

static unsigned label_kind(uint8_t action) {
    switch (action) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_ANNOTATE: return BLOCK;
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_MAP:
    case VR_ACTION_SEGMENT_UNMAP: return SEGMENT;
    default: return NO_LABEL;
    }
}

// "b7f03c0000000_2": the third allocation at its address. "" for events that are about none.
static enum vram_status find_label(struct address_uses *uses, const struct vr_history *history, size_t event, char *label,
                                   size_t capacity) {
    const uint8_t action = history->action[event];
    const unsigned kind = label_kind(action);
    label[0] = '\0';
    if (kind == NO_LABEL) return VRAM_OK;
    struct vr_map *map = kind == BLOCK ? &uses->blocks : &uses->segments;
    const bool begins = action == VR_ACTION_ALLOC || action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP;
    const uint32_t before = vr_map_get(map, history->address[event]);
    if (begins) VR_TRY(vr_map_set(map, history->address[event], before + 1));
    snprintf(label, capacity, "%c%llx_%u", kind == BLOCK ? 'b' : 's', (unsigned long long)history->address[event],
             begins || before == 0 ? before : before - 1);
    return VRAM_OK;
}

static const char *action_of(const struct vr_view *view, size_t event) {
    const struct vr_history *history = view->history;
    if (history->action[event] == VR_ACTION_UNKNOWN) return vr_model_string(view->model, history->unknown[event]);
    return vr_action_name((enum vr_action)history->action[event]);
}

static void put_trace_json(struct vr_listing *listing, size_t event, const char *label) {
    const struct vr_history *history = listing->view->history;
    struct vr_json *json = &listing->json;
    const uint32_t has = vr_entry_has(history, event);
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", listing->view->device);
    vr_json_u64(json, "event", event);
    vr_json_string(json, "action", action_of(listing->view, event));
    if (label[0] != '\0') vr_json_string(json, "label", label);
    if (history->action[event] == VR_ACTION_OOM)
        vr_json_u64(json, "device_free_bytes", history->address[event]);
    else
        vr_json_u64(json, "address", history->address[event]);
    vr_json_u64(json, "bytes", history->size_bytes[event]);
    vr_json_i64(json, "stream", (int64_t)vr_entry_stream(history, event));
    if ((has & VR_HAS_TIME) != 0) vr_json_i64(json, "time_us", history->time_us[event]);
    vr_json_object_end(json);
}

static void put_trace_text(struct vr_listing *listing, size_t event, const char *label) {
    const struct vr_history *history = listing->view->history;
    struct vr_text *text = &listing->text;
    const char *action = action_of(listing->view, event);
    vr_text_printf(text, "%9zu  ", event);
    if (history->action[event] == VR_ACTION_OOM) {
        vr_text_colour(text, listing->style, VR_RED);
        vr_text_printf(text, "out of memory: %s asked for, %s free at the driver", vr_bytes(history->size_bytes[event]).text,
                       vr_bytes(history->address[event]).text);
        vr_text_colour(text, listing->style, VR_PLAIN);
    } else {
        const size_t length = strlen(action);
        vr_text_printable(text, action, length);
        if (label[0] != '\0') {
            vr_text_repeat(text, " ", length < 15 ? 15 - length : 1);
            vr_text_printf(text, "%-20s %10s", label, vr_bytes(history->size_bytes[event]).text);
        }
        if (vr_entry_stream(history, event) != 0) vr_text_printf(text, "  stream %lld", (long long)vr_entry_stream(history, event));
    }
    vr_text_puts(text, "\n");
}

static enum vram_status list_uses(struct vr_listing *listing, struct address_uses *uses) {
    for (size_t event = 0; event < listing->view->history->count; event++) {
        char label[48];
        VR_TRY(find_label(uses, listing->view->history, event, label, sizeof label));
        if (listing->as_json)
            put_trace_json(listing, event, label);
        else
            put_trace_text(listing, event, label);
        VR_TRY(vr_listing_flush(listing, 64 * 1024));
    }
    return VRAM_OK;
}

enum vram_status vr_list_trace(struct vr_listing *listing) {
    struct address_uses uses = {.blocks = {0}};
    struct vr_lifetimes lifetimes;
    VR_TRY(vr_lifetimes_build(listing->view, VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes));
    enum vram_status status = VRAM_OK;
    // What lived before the recording is the first at its address.
    for (size_t row = 0; row < lifetimes.start_count && status == VRAM_OK; row++)
        status = vr_map_set(&uses.blocks, lifetimes.address[row], 1);
    vr_lifetimes_release(&lifetimes);
    if (status == VRAM_OK) status = list_uses(listing, &uses);
    vr_map_release(&uses.blocks);
    vr_map_release(&uses.segments);
    return status;
}
