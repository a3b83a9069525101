#include "analyze/comparison.h"

enum { DEFAULT_TOP = 10 };

static enum vram_status pair_up(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    struct vr_grouping grouping[2];
    struct vram_profile_options options = diff->options[1];
    VR_TRY(vr_profile_grouping(&comparison->side[0], &options, &grouping[0], error));
    enum vram_status status = vr_profile_grouping(&comparison->side[1], &options, &grouping[1], error);
    if (status == VRAM_OK) {
        struct vr_grouping *const both[2] = {&grouping[0], &grouping[1]};
        const uint32_t *const rows[2] = {comparison->side[0].rows, comparison->side[1].rows};
        const size_t counts[2] = {comparison->side[0].count, comparison->side[1].count};
        comparison->by = grouping[1].by;
        if (comparison->by == VR_GROUP_STACK)
            status = vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "call stacks are compared as a flame graph, not in a table");
        else
            status = vr_pairs_build(both, rows, counts, &comparison->pairs);
        vr_grouping_release(&grouping[1]);
    }
    vr_grouping_release(&grouping[0]);
    return status;
}

static bool has_device(const struct vr_views *views, uint32_t device) {
    size_t d = 0;
    while (d < views->count && views->view[d].device != device) d++;
    return d < views->count;
}

// Of two sides that mean different devices the one that ran out of memory says which it is, else the second; on both where both have it.
static void agree_on_grouping(struct vr_comparison *comparison, const struct vram_profile_options options[2], int64_t device[2]) {
    const struct vr_profile *side = comparison->side;
    if (options[0].device >= 0 || options[1].device >= 0 || side[0].view->device == side[1].view->device) return;
    const unsigned leads = side[0].why == VR_CHOICE_OOM && side[1].why != VR_CHOICE_OOM ? 0 : 1;
    const uint32_t wanted = side[leads].view->device;
    if (has_device(&side[1 - leads].views, wanted)) device[1 - leads] = wanted;
}

// The moment of a side is one of its own device: it is opened again where the other one says which.
static enum vram_status open_again(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    int64_t device[2] = {-1, -1};
    agree_on_grouping(comparison, diff->options, device);
    for (unsigned i = 0; i < 2; i++) {
        struct vr_profile again;
        struct vram_profile_options options = diff->options[i];
        if (device[i] < 0) continue;
        options.device = device[i];
        VR_TRY(vr_profile_open(diff->recording[i], &options, &again, error));
        vr_profile_close(&comparison->side[i]);
        comparison->side[i] = again;
    }
    return VRAM_OK;
}

enum vram_status vr_comparison_open(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error) {
    *comparison = (struct vr_comparison){.top = diff->options[1].top == 0 ? DEFAULT_TOP : diff->options[1].top};
    VR_TRY(vr_profile_open(diff->recording[0], &diff->options[0], &comparison->side[0], error));
    enum vram_status status = vr_profile_open(diff->recording[1], &diff->options[1], &comparison->side[1], error);
    if (status == VRAM_OK) {
        status = open_again(diff, comparison, error);
        if (status != VRAM_OK) vr_profile_close(&comparison->side[1]);
    }
    if (status == VRAM_OK) {
        status = pair_up(diff, comparison, error);
        if (status != VRAM_OK) vr_profile_close(&comparison->side[1]);
    }
    if (status != VRAM_OK) vr_profile_close(&comparison->side[0]);
    return status;
}

void vr_comparison_close(struct vr_comparison *comparison) {
    vr_pairs_release(&comparison->pairs);
    vr_profile_close(&comparison->side[0]);
    vr_profile_close(&comparison->side[1]);
}

void vr_comparison_result(const struct vr_comparison *comparison, struct vram_diff_result *result) {
    *result = (struct vram_diff_result){.bytes = {comparison->pairs.bytes[0], comparison->pairs.bytes[1]}};
    for (size_t i = 0; i < comparison->pairs.count; i++) {
        const int64_t change = vr_pair_change(&comparison->pairs.pair[i]);
        if (change > result->most_grown_bytes) result->most_grown_bytes = change;
    }
}
