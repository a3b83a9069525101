// Answers queries about groups of allocations: `groups`, `compare` and `tree`.
#include "analyze/group_diff.h"
#include "analyze/stacktree.h"
#include "explore/query/group_selection.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"

// ---- `groups`: the groups of the allocations live at a moment, or made in a window.

enum { MOST_GROUPS = 100000 };

static enum vram_status put_groups(const struct vr_query *query, const struct vr_holders *holders, const struct vr_grouping *grouping,
                                   const struct vr_group *groups, const struct vr_group_facts *facts, size_t count, size_t top) {
    struct vr_json *json = &query->answer->json;
    struct vram_report_sum rest = {0};
    struct vr_text name = {0};
    enum vram_status status = VRAM_OK;
    vr_json_string(json, "heading", vr_grouping_heading(grouping->by));
    vr_json_u64(json, "distinct", count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        if (i >= top) {
            rest.bytes += groups[i].bytes;
            rest.count += groups[i].count;
            continue;
        }
        name.length = 0;
        vr_grouping_name(grouping, groups[i].key, &name);
        status = vr_text_status(&name);
        vr_json_object(json, NULL);
        vr_json_string_bytes(json, "name", vr_text_string(&name), name.length);
        vr_json_u64(json, "key", groups[i].key);
        vr_json_u64(json, "bytes", groups[i].bytes);
        vr_json_u64(json, "count", groups[i].count);
        vr_json_u64(json, "largest_bytes", groups[i].largest_bytes);
        vr_json_u64(json, "row", groups[i].largest_row);
        vr_json_u64(json, "stack", holders->selection.lifetimes->stack[groups[i].largest_row]);
        if (facts->role != NULL) vr_json_string(json, "role", vram_role_word(facts->role[i]));
        if (facts->found_bytes != NULL) vr_json_u64(json, "found_bytes", facts->found_bytes[i]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_json_u64(json, "rest_bytes", rest.bytes);
    vr_json_u64(json, "rest_count", rest.count);
    vr_text_release(&name);
    return status;
}

enum vram_status vr_query_groups(const struct vr_query *query) {
    struct vr_holders holders;
    struct vr_grouping grouping;
    struct vr_group *groups = NULL;
    struct vr_group_facts facts = {.role = NULL};
    size_t count = 0;
    int64_t top = 100;
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, MOST_GROUPS, 100, &top));
    VR_TRY(vr_select_holders(query, &holders));
    enum vram_status status = vr_select_grouping(query, &holders.selection, &grouping);
    if (status == VRAM_OK) {
        status = vr_grouping_sum(&grouping, holders.rows, holders.count, &groups, &count);
        vr_put_holders(query, &holders);
        if (status == VRAM_OK) status = vr_group_facts_find(query, &holders, &grouping, groups, count, &facts);
        if (status == VRAM_OK) status = put_groups(query, &holders, &grouping, groups, &facts, count, (size_t)top);
        vr_group_facts_release(&facts);
        free(groups);
        vr_grouping_release(&grouping);
    }
    vr_holders_release(&holders);
    return status;
}

// ---- `compare`: the groups of two recordings, ranks or moments: which grew, and which are in only one.

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

// Adds the totals of the pairs after the first `top`.
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
            status = vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "compare: use the query 'tree' to compare stacks");
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

// ---- `tree`: the call stacks of the allocations live at a moment, or made in a window, as one tree; with a second moment, merged with its
// stacks.

enum { MOST_NODES = 200000 };

// Adds the frames of the nodes, each once, and sets place[label] to 1 + its index in the answer.
static void put_frames(struct vr_json *json, const struct vr_stacktree *tree, const uint32_t *nodes, size_t count, uint32_t *place) {
    uint32_t placed = 0;
    vr_json_array(json, "frames");
    for (size_t i = 0; i < count; i++) {
        const uint32_t label = tree->node[nodes[i]].label;
        if (label == VR_TREE_NONE || place[label] != 0) continue;
        place[label] = ++placed;
        const struct vr_frame_label *frame = &tree->labels.label[label];
        vr_put_frame(json, frame->model, frame->frame, vr_frame_kind_word(vr_frame_kind(frame->model, frame->frame)));
    }
    vr_json_array_end(json);
}

static void put_nodes(struct vr_answer *answer, const struct vr_stacktree *tree, const uint32_t *nodes, size_t count, bool compared,
                      const uint32_t *place, uint32_t *order) {
    const size_t parent = vr_answer_column(answer, "parent", VR_I32), frame = vr_answer_column(answer, "frame", VR_I32);
    const size_t stack = vr_answer_column(answer, "stack", VR_I32);
    size_t bytes[2], own[2], number[2];
    static const char *const names[2][3] = {{"bytes", "own", "count"}, {"other_bytes", "other_own", "other_count"}};
    for (unsigned w = 0; w < 1 + (unsigned)compared; w++) {
        bytes[w] = vr_answer_column(answer, names[w][0], VR_F64);
        own[w] = vr_answer_column(answer, names[w][1], VR_F64);
        number[w] = vr_answer_column(answer, names[w][2], VR_F64);
    }
    for (size_t i = 0; i < count; i++) {
        const struct vr_tree_node *node = &tree->node[nodes[i]];
        order[nodes[i]] = (uint32_t)i;
        vr_answer_i32(answer, parent, node->parent == VR_TREE_NONE ? -1 : (int32_t)order[node->parent]);
        vr_answer_i32(answer, frame, node->label == VR_TREE_NONE ? -1 : (int32_t)place[node->label] - 1);
        vr_answer_i32(answer, stack, node->stack == VR_TREE_NONE ? -1 : (int32_t)node->stack);
        for (unsigned w = 0; w < 1 + (unsigned)compared; w++) {
            vr_answer_f64(answer, bytes[w], (double)node->bytes[w]);
            vr_answer_f64(answer, own[w], (double)node->own[w]);
            vr_answer_f64(answer, number[w], (double)node->count[w]);
        }
    }
}

static enum vram_status answer_tree(const struct vr_query *query, const struct vr_stacktree *tree, bool compared, size_t most,
                                    double least) {
    uint32_t *nodes = NULL;
    size_t count = 0;
    const uint64_t whole = tree->node[0].bytes[0] > tree->node[0].bytes[1] ? tree->node[0].bytes[0] : tree->node[0].bytes[1];
    VR_TRY(vr_stacktree_pick(tree, (uint64_t)((double)whole * least), most, &nodes, &count));
    uint32_t *place = calloc(tree->labels.count + 1, sizeof *place), *order = calloc(tree->count, sizeof *order);
    if (place != NULL && order != NULL) {
        vr_json_u64(&query->answer->json, "nodes", tree->count);
        put_frames(&query->answer->json, tree, nodes, count, place);
        put_nodes(query->answer, tree, nodes, count, compared, place, order);
    }
    const enum vram_status status = place == NULL || order == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    free(place);
    free(order);
    free(nodes);
    return status;
}

static enum vram_status add_holders(struct vr_stacktree *tree, const struct vr_holders *holders, bool folds, unsigned weight) {
    struct vr_explored_recording *recording = holders->selection.recording;
    tree->fold = folds ? &recording->sites : NULL;
    return vr_stacktree_add(tree, vr_recording_model(recording->recording), holders->selection.lifetimes, holders->rows, holders->count,
                            weight);
}

static enum vram_status grow_tree(const struct vr_query *query, bool compared, bool folds, struct vr_stacktree *tree) {
    struct vr_holders holders;
    VR_TRY(vr_select_holders(query, &holders));
    vr_put_holders(query, &holders);
    enum vram_status status = add_holders(tree, &holders, folds, 0);
    vr_holders_release(&holders);
    if (status != VRAM_OK || !compared) return status;
    VR_TRY(vr_select_other_holders(query, &holders));
    status = add_holders(tree, &holders, folds, 1);
    vr_holders_release(&holders);
    return status;
}

enum vram_status vr_query_tree(const struct vr_query *query) {
    static const char *const orders[] = {"down", "up", NULL};
    size_t up = 0;
    int64_t most = 20000, folds = 0;
    double least = 0.0005;
    VR_TRY(vr_parameter_word(query->parameters, "order", orders, 0, &up));
    VR_TRY(vr_parameter_whole(query->parameters, "limit", 1, MOST_NODES, 20000, &most));
    VR_TRY(vr_parameter_whole(query->parameters, "fold", 0, 1, 0, &folds));
    VR_TRY(vr_parameter_number(query->parameters, "least", 0.0005, &least));
    if (least < 0 || least > 1) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "tree: 'least' must be from 0 to 1");
    const bool compared = vr_parameter_text(query->parameters, "rec2") != NULL || vr_parameter_text(query->parameters, "event2") != NULL;
    struct vr_stacktree tree;
    VR_TRY(vr_stacktree_init(&tree, up == 1, compared));
    enum vram_status status = grow_tree(query, compared, folds == 1, &tree);
    if (status == VRAM_OK) status = answer_tree(query, &tree, compared, (size_t)most, least);
    vr_stacktree_release(&tree);
    return status;
}
