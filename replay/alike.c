// alike.c: see alike.h.
#include "replay/alike.h"

#include "core/size_rules.h"
#include "replay/recorded_rules.h"

// No block of a segment that one request made is larger than this, however requests are rounded.
static uint64_t largest_segment(const struct vr_options *options, uint64_t request_bytes) {
    uint64_t rounded = vr_round_plain(request_bytes + options->request_padding_bytes);
    for (int i = 0; i < VR_ROUNDUP_BUCKETS; i++) {
        if (options->roundup_divisions[i] > 1 && !vr_is_power_of_2(rounded)) rounded = (uint64_t)2 << vr_log2_floor(rounded);
    }
    const uint64_t made = vr_round_up(rounded, VR_SEGMENT_ROUNDING);
    return made > vr_large_segment(options) ? made : vr_large_segment(options);
}

// Segments of cudaMalloc neither grow nor join, and free memory of another stream or pool must be there to be taken.
static void drop_what_nothing_meets(const struct vr_script *script, struct vr_options *options) {
    uint64_t request_bytes = 0;
    size_t streams = 0, pools = 0;
    for (size_t i = 0; i < script->device_count; i++) {
        const struct vr_script_device *device = &script->devices[i];
        if (device->largest_request_bytes > request_bytes) request_bytes = device->largest_request_bytes;
        if (device->recorded.stream_count > streams) streams = device->recorded.stream_count;
        if (device->recorded.pools.count > pools) pools = device->recorded.pools.count;
    }
    if (streams <= 1) options->reclaim_streams = false;
    if (pools <= 1) options->share_live_pools = false;
    if (request_bytes >= VR_REQUEST_LIMIT / 4) return; // refused
    if (!options->expandable_segments && largest_segment(options, request_bytes) < options->max_split_bytes)
        options->max_split_bytes = VR_UNLIMITED;
    if (options->max_split_bytes == VR_UNLIMITED) options->max_non_split_rounding_bytes = options->large_segment_bytes;
}

static enum vram_status add_script(const struct vr_script *script, enum vram_whatif_start start, const char *conf, struct vr_text *key) {
    struct vr_text selection = {0};
    struct vr_options options;
    (void)vr_choose_conf(vr_text_string(&script->conf), conf, &selection);
    vr_options_init(&options);
    options.pytorch = vr_recorded_rules(script->model).likely;
    enum vram_status status = vr_text_status(&selection);
    if (status == VRAM_OK) status = vr_options_parse(&options, vr_text_string(&selection), NULL);
    vr_text_release(&selection);
    VR_TRY(status);
    // Garbage is collected from a part of the allocator's limit on, and a replay's has none.
    options.garbage_collection_threshold = 0;
    // A recorded start may have segments of any kind and size; pages are shared by all.
    if (start == VRAM_WHATIF_COLD && !options.paged && !options.sleepable) drop_what_nothing_meets(script, &options);
    vr_options_print(&options, key);
    vr_text_puts(key, "\n");
    return vr_text_status(key);
}

enum vram_status vr_alike_key(const struct vr_script *scripts, size_t count, enum vram_whatif_start start, const char *conf,
                              struct vr_text *key) {
    for (size_t i = 0; i < count; i++) VR_TRY(add_script(&scripts[i], start, conf, key));
    return VRAM_OK;
}
