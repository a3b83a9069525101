// stacktree.h: many call stacks as a tree with the bytes of each branch, for flame graphs and icicles of one moment or of two.
#ifndef VR_ANALYZE_STACKTREE_H
#define VR_ANALYZE_STACKTREE_H

#include "analyze/profile.h"
#include "base/hash.h"
#include "model/model.h"

// ---- Frames of several recordings, numbered so that equal functions have equal numbers and stacks can be overlaid.

// A zeroed struct is an empty table. Use from one thread at a time.
struct vr_frame_labels {
    struct vr_frame_label {
        const struct vr_model *model; // borrowed: where the frame was first seen
        uint32_t frame;
    } * label;
    size_t count, capacity;
    struct vr_map map;  // hash -> 1 + label
    bool without_lines; // ignore lines, which differ between versions of a program: compare frames by file and function
};

// ---- Many call stacks as a tree with the bytes of each branch, for flame graphs and icicles of one moment or of two.

#define VR_TREE_NONE UINT32_MAX

// A frame below its parent. Weight 0 is the moment shown, weight 1 the one it is compared with (0 without a comparison).
struct vr_tree_node {
    uint32_t parent;   // VR_TREE_NONE for the root, which is node 0
    uint32_t label;    // of the frame; VR_TREE_NONE for the root and for "<no frames>"
    uint32_t stack;    // for weight 0: a stack that ends here; VR_TREE_NONE if none exists
    uint64_t bytes[2]; // including everything below
    uint64_t own[2];   // of stacks that end here
    uint64_t count[2]; // number of allocations, including everything below
};

struct vr_stacktree {
    struct vr_tree_node *node; // parents before their children
    size_t count, capacity;
    struct vr_frame_labels labels;
    struct vr_map children; // parent and label -> node
    bool bottom_up;         // the root's children are innermost frames
    struct vr_sites *fold;  // sites of the model to be added next, whose folded frames are left out; NULL: leave out none. Borrowed
};

// Initializes an empty tree with a root. without_lines as in struct vr_frame_labels. NO_HOST_MEMORY.
enum vram_status vr_stacktree_init(struct vr_stacktree *tree, bool bottom_up, bool without_lines);
void vr_stacktree_release(struct vr_stacktree *tree);
// Adds rows with weight 0 or 1. The model must outlive the tree. LIMIT for more than 2^31 nodes, NO_HOST_MEMORY.
enum vram_status vr_stacktree_add(struct vr_stacktree *tree, const struct vr_model *model, const struct vr_lifetimes *lifetimes,
                                  const uint32_t *rows, size_t count, unsigned weight);
// Selects the nodes with at least `least` bytes of either weight, at most the `most` largest; parents before children, siblings by
// descending bytes. The caller frees *nodes. NO_HOST_MEMORY.
enum vram_status vr_stacktree_pick(const struct vr_stacktree *tree, uint64_t least, size_t most, uint32_t **nodes, size_t *count);
// Appends "function", "<no frames>" or "all".
void vr_stacktree_function(const struct vr_stacktree *tree, uint32_t node, struct vr_text *text);

#endif
