// `compare`: two recordings, ranks or moments side by side: which groups grew, which are only in one. `ranks`: what all recordings that are

// open came to.
#include "analyze/pairs.h"
#include "explore/query/selection.h"
#include "explore/query/holders.h"

enum { MOST_PAIRS = 100000 };

static void put_side(struct vr_json *json, const char *key, const struct vr_holders *holders, const struct vr_pairs *pairs, unsigned side) {
    vr_json_object(json, key);
    vr_json_string(json, "name", holders->selection.recording->name);
    vr_json_u64(json, "device", holders->selection.device->view->device);
    vr_json_i64(json, "event", holders->event);
    vr_json_u64(json, "bytes", pairs->bytes[side]);
    vr_json_u64(json, "allocations", pairs->allocations[side]);
    vr_json_object_end(json);
}

static void put_compared_row(struct vr_json *json, const char *row_key, const char *stack_key, const struct vr_holders *holders,
                             uint32_t row) {
    if (row == VR_PAIR_NO_ROW) return;
    vr_json_u64(json, row_key, row);
    vr_json_u64(json, stack_key, holders->selection.lifetimes->stack[row]);
}

// What the pairs beyond the first `top` come to together.
static void put_rest(struct vr_json *json, const struct vr_pairs *pairs, size_t top) {
    uint64_t rest[2] = {0, 0};
    for (size_t i = top; i < pairs->count; i++) {
        rest[0] += pairs->pair[i].bytes[0];
        rest[1] += pairs->pair[i].bytes[1];
    }
    vr_json_u64(json, "rest_bytes", rest[0]);
    vr_json_u64(json, "rest_other_bytes", rest[1]);
}

static void put_pairs(const struct vr_query *query, const struct vr_holders holders[2], const struct vr_pairs *pairs, size_t top) {
    struct vr_json *json = &query->answer->json;
    put_side(json, "a", &holders[0], pairs, 0);
    put_side(json, "b", &holders[1], pairs, 1);
    vr_json_u64(json, "distinct", pairs->count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < pairs->count && i < top; i++) {
        const struct vr_pair *pair = &pairs->pair[i];
        vr_json_object(json, NULL);
        vr_json_string(json, "name", pair->name);
        vr_json_u64(json, "bytes", pair->bytes[0]);
        vr_json_u64(json, "other_bytes", pair->bytes[1]);
        vr_json_u64(json, "count", pair->count[0]);
        vr_json_u64(json, "other_count", pair->count[1]);
        put_compared_row(json, "row", "stack", &holders[0], pair->row[0]);
        put_compared_row(json, "other_row", "other_stack", &holders[1], pair->row[1]);
        if (pair->moved) vr_json_bool(json, "moved", true);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    put_rest(json, pairs, top);
}

static enum vram_status compare_holders(const struct vr_query *query, const struct vr_holders holders[2], size_t top) {
    struct vr_grouping grouping[2];
    struct vr_pairs pairs;
    VR_TRY(vr_select_grouping(query, &holders[0].selection, &grouping[0]));
    enum vram_status status = vr_select_grouping(query, &holders[1].selection, &grouping[1]);
    if (status == VRAM_OK) {
        struct vr_grouping *const both[2] = {&grouping[0], &grouping[1]};
        const uint32_t *const rows[2] = {holders[0].rows, holders[1].rows};
        const size_t counts[2] = {holders[0].count, holders[1].count};
        if (grouping[0].by == VR_GROUP_STACK)
            status = vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "compare: stacks are compared by the query 'tree'");
        else
            status = vr_pairs_build(both, rows, counts, &pairs);
        if (status == VRAM_OK) {
            put_pairs(query, holders, &pairs, top);
            vr_pairs_release(&pairs);
        }
        vr_grouping_release(&grouping[1]);
    }
    vr_grouping_release(&grouping[0]);
    return status;
}

enum vram_status vr_query_compare(const struct vr_query *query) {
    struct vr_holders holders[2];
    int64_t top = 1000;
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, MOST_PAIRS, 1000, &top));
    VR_TRY(vr_select_holders(query, &holders[0]));
    enum vram_status status = vr_select_other_holders(query, &holders[1]);
    if (status == VRAM_OK) {
        status = compare_holders(query, holders, (size_t)top);
        vr_holders_release(&holders[1]);
    }
    vr_holders_release(&holders[0]);
    return status;
}
