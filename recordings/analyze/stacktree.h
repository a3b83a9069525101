// stacktree.h: many call stacks as one tree, with what each branch holds: for flame graphs and icicles, of one moment or of two.
#ifndef VR_ANALYZE_STACKTREE_H
#define VR_ANALYZE_STACKTREE_H

#include "analyze/profile.h"
#include "base/hash.h"
#include "model/model.h"

// ---- Frames of several recordings as numbers that are the same for the same function, so that stacks can be laid on each other.

// All-zero is an empty table. One thread at a time.
struct vr_frame_labels {
    struct vr_frame_label {
        const struct vr_model *model; // borrowed: where the frame was seen first
        uint32_t frame;
    } * label;
    size_t count, capacity;
    struct vr_map map;  // a hash -> 1 + label
    bool without_lines; // lines differ between versions of a program: file and function alone tell frames apart
};

// ---- Many call stacks as one tree, with what each branch holds: for flame graphs and icicles, of one moment or of two.

#define VR_TREE_NONE UINT32_MAX

// A frame below its parent. The first weight is what is looked at, the second what it is compared with (0 without a comparison).
struct vr_tree_node {
    uint32_t parent;   // VR_TREE_NONE for the root, which is node 0
    uint32_t label;    // of the frame; VR_TREE_NONE for the root and for "<no frames>"
    uint32_t stack;    // of the first weight: one of the stacks that end here; VR_TREE_NONE if none
    uint64_t bytes[2]; // with all that is below
    uint64_t own[2];   // of stacks that end here
    uint64_t count[2]; // of allocations, with all that is below
};

struct vr_stacktree {
    struct vr_tree_node *node; // parents before their children
    size_t count, capacity;
    struct vr_frame_labels labels;
    struct vr_map children; // parent and label -> node
    bool bottom_up;         // the root's children are innermost frames
    struct vr_sites *fold;  // of the model that is added next: what its stacks fold is left out; NULL: nothing is. Borrowed
};

// An empty tree: its root. without_lines as in struct vr_frame_labels. NO_HOST_MEMORY.
enum vram_status vr_stacktree_init(struct vr_stacktree *tree, bool bottom_up, bool without_lines);
void vr_stacktree_release(struct vr_stacktree *tree);
// Adds rows as weight 0 or 1. The model must outlive the tree. LIMIT for more nodes than 2^31, NO_HOST_MEMORY.
enum vram_status vr_stacktree_add(struct vr_stacktree *tree, const struct vr_model *model, const struct vr_lifetimes *lifetimes,
                                  const uint32_t *rows, size_t count, unsigned weight);
// The nodes that hold at least `least` bytes of either weight, at most `most` of them (the largest), parents before children, siblings by
// falling bytes. *nodes is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_stacktree_pick(const struct vr_stacktree *tree, uint64_t least, size_t most, uint32_t **nodes, size_t *count);
// Appends "function" or "<no frames>" or "all".
void vr_stacktree_function(const struct vr_stacktree *tree, uint32_t node, struct vr_text *text);

#endif
