// vram/graph.h: CUDA graphs whose memory is safe: capture a region, launch it any number of times, destroy it.
//
// A graph remembers addresses. What it allocates while it is captured comes from a private pool that lives as long as a graph needs it;
// what it reads from outside must stay where it was. The functions here do the steps in their right order and turn the known mistakes
// into statuses with a sentence: the default stream, two captures at once, a call that waits inside a capture, graphs of one pool
// launched out of their order, a static input that was freed or moved.
//
// A graph is used by one thread at a time. It must be destroyed before its allocator.
#ifndef VRAM_GRAPH_H
#define VRAM_GRAPH_H

#include "vram/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_graph;

// All-zero means every default.
struct vram_graph_options {
    struct vram_pool *pool; // where its memory comes from: NULL, a pool of its own; that of an earlier graph (vram_graph_pool()), to share
    enum vram_capture_mode mode; // which unsafe calls of whom invalidate the capture
    bool keep_cache;             // do not give cached memory back before the capture, as torch.cuda.graph() does
};

// Begins the capture of a region on `stream` (not the default stream). Cached memory of the device is given back first. *graph is given to
// the caller: vram_graph_destroy(). INVALID_ARGUMENT with a sentence (default stream, another capture under way on this allocator's
// device, pool of another device), DRIVER, NO_HOST_MEMORY. error may be NULL here and below.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_begin(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                          const struct vram_graph_options *options, struct vram_graph **graph,
                                                          struct vram_error *error);
// Ends the capture and makes it launchable. DRIVER with a sentence when something in the region was not allowed; the graph can then only be
// destroyed, and its memory goes back with it.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_end(struct vram_graph *graph, struct vram_error *error);
// Declares memory that the graph reads or writes but did not allocate (an input buffer): a launch is refused once it is not a live block
// of the same size any more. address: of a live block of this allocator. INVALID_POINTER otherwise; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_add_static(struct vram_graph *graph, uint64_t address);
// Launches the graph on `stream`. Graphs that share a pool use each other's memory again: in one round they must be launched in the order
// they were captured in (leaving some out is allowed); a round starts with the first of them. INVALID_ARGUMENT with a sentence for a graph
// that is not ready, out of order, or whose static memory is gone; DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_launch(struct vram_graph *graph, uint64_t stream, struct vram_error *error);
// The pool of its memory: borrowed, valid while the graph lives.
VRAM_API struct vram_pool *vram_graph_pool(const struct vram_graph *graph);
// The driver's CUgraphExec, 0 before vram_graph_end() succeeded. Borrowed.
VRAM_API uint64_t vram_graph_exec(const struct vram_graph *graph);
// Ends a capture that is still under way, destroys the graph and gives its reference to the pool back; the memory goes at the next
// vram_empty_cache(). NULL is ignored.
VRAM_API void vram_graph_destroy(struct vram_graph *graph);

// One region of a sequence: does its work on `stream`, allocating from the allocator as always. What it returns other than OK ends the
// sequence.
typedef enum vram_status (*vram_graph_region)(uint64_t stream, void *user);
struct vram_graph_callable {
    vram_graph_region run;
    void *user;
};
// The counterpart of make_graphed_callables(): runs each region `warmups` times on `stream` outside a capture, then captures them in order
// into one shared pool. graphs: room for `count`; all are made, or none and graphs is untouched. Statuses as for begin and end, or a
// region's own.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_capture_all(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                                const struct vram_graph_callable *callables, size_t count, uint32_t warmups,
                                                                struct vram_graph **graphs, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
