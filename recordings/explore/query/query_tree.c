// `tree`: the call stacks of what is live at a moment, or was made in a window, as one tree; with a second moment, both on each
// other.
#include "analyze/stacktree.h"
#include "explore/query/answer_members.h"
#include "explore/query/holders.h"
#include "model/recording.h"

enum { MOST_NODES = 200000 };

// Frames that the nodes name, each once: number of a label -> 1 + place in the answer.
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
    if (least < 0 || least > 1) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "tree: 'least' should be from 0 to 1");
    const bool compared = vr_parameter_text(query->parameters, "rec2") != NULL || vr_parameter_text(query->parameters, "event2") != NULL;
    struct vr_stacktree tree;
    VR_TRY(vr_stacktree_init(&tree, up == 1, compared));
    enum vram_status status = grow_tree(query, compared, folds == 1, &tree);
    if (status == VRAM_OK) status = answer_tree(query, &tree, compared, (size_t)most, least);
    vr_stacktree_release(&tree);
    return status;
}
