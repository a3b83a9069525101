// Merges many call stacks into a tree, with the bytes of each branch.
#include "analyze/stacktree.h"

static void frame_labels_release(struct vr_frame_labels *labels) {
    free(labels->label);
    vr_map_release(&labels->map);
    *labels = (struct vr_frame_labels){.label = NULL};
}

static uint64_t hash_string(uint64_t hash, const struct vr_model *model, uint32_t id) {
    return vr_hash_bytes(hash, vr_model_string(model, id), vr_model_string_length(model, id));
}

static uint64_t hash_frame(const struct vr_frame_labels *labels, const struct vr_model *model, uint32_t frame) {
    const struct vr_frames *frames = &model->frames;
    const uint64_t hash = hash_string(hash_string(0, model, frames->filename[frame]), model, frames->name[frame]);
    return labels->without_lines ? hash : vr_mix64(hash + (uint64_t)frames->line[frame]);
}

static bool same_label(const struct vr_frame_labels *labels, const struct vr_frame_label *label, const struct vr_model *model,
                       uint32_t frame) {
    const struct vr_frames *a = &label->model->frames, *b = &model->frames;
    if (!labels->without_lines && a->line[label->frame] != b->line[frame]) return false;
    return strcmp(vr_model_string(label->model, a->name[label->frame]), vr_model_string(model, b->name[frame])) == 0 &&
           strcmp(vr_model_string(label->model, a->filename[label->frame]), vr_model_string(model, b->filename[frame])) == 0;
}

// Sets *number to the number of a frame's text. NO_HOST_MEMORY.
static enum vram_status frame_labels_number(struct vr_frame_labels *labels, const struct vr_model *model, uint32_t frame,
                                            uint32_t *number) {
    // Different texts with the same hash are at consecutive keys.
    uint64_t hash = hash_frame(labels, model, frame);
    uint32_t found = vr_map_get(&labels->map, hash);
    while (found != 0 && !same_label(labels, &labels->label[found - 1], model, frame)) found = vr_map_get(&labels->map, ++hash);
    if (found == 0) {
        VR_TRY(vr_grow((void **)&labels->label, &labels->capacity, labels->count + 1, sizeof *labels->label));
        VR_TRY(vr_map_set(&labels->map, hash, (uint32_t)labels->count + 1));
        labels->label[labels->count++] = (struct vr_frame_label){model, frame};
        found = (uint32_t)labels->count;
    }
    *number = found - 1;
    return VRAM_OK;
}

enum { MOST_FRAMES = 1024 };

enum vram_status vr_stacktree_init(struct vr_stacktree *tree, bool bottom_up, bool without_lines) {
    *tree = (struct vr_stacktree){.bottom_up = bottom_up, .labels = {.without_lines = without_lines}};
    VR_TRY(vr_grow((void **)&tree->node, &tree->capacity, 1, sizeof *tree->node));
    tree->node[tree->count++] = (struct vr_tree_node){.parent = VR_TREE_NONE, .label = VR_TREE_NONE, .stack = VR_TREE_NONE};
    return VRAM_OK;
}

void vr_stacktree_release(struct vr_stacktree *tree) {
    free(tree->node);
    frame_labels_release(&tree->labels);
    vr_map_release(&tree->children);
    *tree = (struct vr_stacktree){.node = NULL};
}

static enum vram_status child_of(struct vr_stacktree *tree, uint32_t parent, uint32_t label, uint32_t *node) {
    const uint64_t key = (uint64_t)parent << 32 | label;
    uint32_t found = vr_map_get(&tree->children, key);
    if (found == 0) {
        if (tree->count > INT32_MAX) return VRAM_LIMIT;
        VR_TRY(vr_grow((void **)&tree->node, &tree->capacity, tree->count + 1, sizeof *tree->node));
        VR_TRY(vr_map_set(&tree->children, key, (uint32_t)tree->count));
        found = (uint32_t)tree->count++;
        tree->node[found] = (struct vr_tree_node){.parent = parent, .label = label, .stack = VR_TREE_NONE};
    }
    *node = found;
    return VRAM_OK;
}

static void weigh_node(struct vr_tree_node *node, unsigned weight, const struct vr_group *group) {
    node->bytes[weight] += group->bytes;
    node->count[weight] += group->count;
}

// Sets *label to the frame's label; `labels` caches 1 + label by frame.
static enum vram_status label_of(struct vr_stacktree *tree, const struct vr_model *model, uint32_t frame, uint32_t *labels,
                                 uint32_t *label) {
    if (labels[frame] == 0) {
        VR_TRY(frame_labels_number(&tree->labels, model, frame, label));
        labels[frame] = *label + 1;
    }
    *label = labels[frame] - 1;
    return VRAM_OK;
}

// The path of the previous stack, because consecutive stacks often share their outer frames.
struct way {
    uint32_t frame[MOST_FRAMES];
    uint32_t node[MOST_FRAMES];
    size_t depth;
};

// Lists the stack's frames that are shown in the tree, in its order; at most MOST_FRAMES, the first of that order.
static size_t shown_frames(const struct vr_stacktree *tree, const struct vr_model *model, uint32_t stack, uint32_t *frames) {
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    size_t count = 0;
    for (uint64_t i = 0; i < end - first && count < MOST_FRAMES; i++) {
        const uint32_t frame = model->stacks.frame[tree->bottom_up ? first + i : end - 1 - i];
        if (tree->fold == NULL || !vr_sites_folds(tree->fold, stack, frame)) frames[count++] = frame;
    }
    return count;
}

static enum vram_status add_stack(struct vr_stacktree *tree, const struct vr_model *model, const struct vr_group *group, unsigned weight,
                                  uint32_t *labels, struct way *way) {
    const uint32_t stack = (uint32_t)group->key;
    uint32_t frames[MOST_FRAMES], node = 0;
    const size_t left = shown_frames(tree, model, stack, frames);
    weigh_node(&tree->node[0], weight, group);
    if (left == 0) {
        VR_TRY(child_of(tree, 0, VR_TREE_NONE, &node));
        weigh_node(&tree->node[node], weight, group);
    }
    for (size_t i = 0; i < left; i++) {
        const uint32_t frame = frames[i];
        if (i >= way->depth || way->frame[i] != frame) {
            uint32_t label = 0;
            VR_TRY(label_of(tree, model, frame, labels, &label));
            VR_TRY(child_of(tree, node, label, &way->node[i]));
            way->frame[i] = frame;
            way->depth = i + 1;
        }
        node = way->node[i];
        weigh_node(&tree->node[node], weight, group);
    }
    tree->node[node].own[weight] += group->bytes;
    if (weight == 0) tree->node[node].stack = stack;
    return VRAM_OK;
}

enum vram_status vr_stacktree_add(struct vr_stacktree *tree, const struct vr_model *model, const struct vr_lifetimes *lifetimes,
                                  const uint32_t *rows, size_t count, unsigned weight) {
    const struct vr_view view = {.model = model};
    struct vr_grouping grouping = {.by = VR_GROUP_STACK, .view = &view, .lifetimes = lifetimes};
    struct vr_group *groups = NULL;
    size_t group_count = 0;
    VR_TRY(vr_grouping_sum(&grouping, rows, count, &groups, &group_count));
    uint32_t *labels = calloc((size_t)model->frames.count + 1, sizeof *labels);
    struct way *way = calloc(1, sizeof *way);
    enum vram_status status = labels == NULL || way == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t i = 0; i < group_count && status == VRAM_OK; i++) status = add_stack(tree, model, &groups[i], weight, labels, way);
    free(way);
    free(labels);
    free(groups);
    return status;
}

static uint64_t most_bytes(const struct vr_tree_node *node) { return node->bytes[0] > node->bytes[1] ? node->bytes[0] : node->bytes[1]; }

// A node with its sort keys.
struct ranked {
    uint64_t bytes;
    uint32_t parent; // VR_TREE_NONE for the root
    uint32_t node;
};

static int nodes_by_bytes(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return VR_ORDER(x->node, y->node);
}

// Keeps the largest nodes. A parent is at least as large as its children and has a smaller number, so it is kept with them.
static size_t keep_largest(const struct vr_stacktree *tree, uint64_t least, size_t most, struct ranked *ranked) {
    size_t kept = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct vr_tree_node *node = &tree->node[i];
        if (i != 0 && most_bytes(node) < least) continue;
        ranked[kept++] = (struct ranked){.bytes = most_bytes(node), .parent = node->parent, .node = (uint32_t)i};
    }
    if (kept <= most) return kept;
    // The root stays first: it has the smallest number and the most bytes.
    qsort(ranked, kept, sizeof *ranked, nodes_by_bytes);
    return most;
}

// Groups siblings, in the order of their parents' numbers, which are smaller than their own, so that every parent comes before its
// children. `first` must have one more element than the tree has nodes, all zero.
static void group_siblings(const struct ranked *ranked, size_t count, size_t nodes, uint32_t *first, struct ranked *grouped) {
    for (size_t i = 0; i < count; i++) first[ranked[i].node == 0 ? 0 : ranked[i].parent + 1]++;
    for (size_t parent = 0, before = 0; parent <= nodes; parent++) {
        const size_t children = first[parent];
        first[parent] = (uint32_t)before;
        before += children;
    }
    for (size_t i = 0; i < count; i++) grouped[first[ranked[i].node == 0 ? 0 : ranked[i].parent + 1]++] = ranked[i];
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && grouped[end].parent == grouped[i].parent;) end++;
        if (end - i > 1) qsort(&grouped[i], end - i, sizeof *grouped, nodes_by_bytes);
    }
}

enum vram_status vr_stacktree_pick(const struct vr_stacktree *tree, uint64_t least, size_t most, uint32_t **nodes, size_t *count) {
    struct ranked *ranked = malloc(tree->count * sizeof *ranked), *grouped = malloc(tree->count * sizeof *grouped);
    uint32_t *first = calloc(tree->count + 1, sizeof *first), *made = malloc(tree->count * sizeof *made);
    enum vram_status status = ranked == NULL || grouped == NULL || first == NULL || made == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) {
        const size_t kept = keep_largest(tree, least, most, ranked);
        group_siblings(ranked, kept, tree->count, first, grouped);
        for (size_t i = 0; i < kept; i++) made[i] = grouped[i].node;
        *nodes = made;
        *count = kept;
    }
    if (status != VRAM_OK) free(made);
    free(first);
    free(grouped);
    free(ranked);
    return status;
}

void vr_stacktree_function(const struct vr_stacktree *tree, uint32_t node, struct vr_text *text) {
    const uint32_t label = tree->node[node].label;
    if (label == VR_TREE_NONE) {
        vr_text_puts(text, node == 0 ? "all" : "<no frames>");
        return;
    }
    const struct vr_frame_label *frame = &tree->labels.label[label];
    const char *name = vr_model_string(frame->model, frame->model->frames.name[frame->frame]);
    const char *file = vr_model_string(frame->model, frame->model->frames.filename[frame->frame]), *slash = strrchr(file, '/');
    if (strncmp(name, "0x", 2) == 0 && file[0] != '\0') vr_text_printf(text, "%.1000s+", slash == NULL ? file : slash + 1);
    vr_text_printf(text, "%.1000s", name);
}
