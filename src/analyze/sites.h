// sites.h: who holds the bytes: allocations grouped by call site and by call stack.
#ifndef VR_ANALYZE_SITES_H
#define VR_ANALYZE_SITES_H

#include "analyze/arena.h"
#include "analyze/lifetimes.h"

// Sites of one model's stacks, found when first asked for. One thread at a time.
struct vr_sites {
    const struct vr_model *model; // borrowed
    uint8_t *frame_kind;          // by frame: 0 not looked at, else what it is worth as a name
    uint32_t *site;               // by stack: 1 + frame, 0 not looked at
    uint64_t hashed_bytes;        // text of stacks hashed so far
    bool plain;                   // where no frame is the program's the innermost one stands for a stack, whatever it is
};

// NO_HOST_MEMORY. The model must outlive the sites.
enum vram_status vr_sites_init(struct vr_sites *sites, const struct vr_model *model);
void vr_sites_release(struct vr_sites *sites);

#define VR_NO_SITE UINT32_MAX
// The frame that stands for a stack: the innermost Python frame outside torch itself, else the innermost frame. Where that one only
// recorded the stack (C++ frames of PyTorch), but not for plain sites: the innermost Python frame of torch, node of autograd's graph,
// outermost operator, or frame outside the allocator, the first of these that there is. VR_NO_SITE for a stack without frames.
uint32_t vr_sites_frame(struct vr_sites *sites, uint32_t stack);
// The innermost frame; where that one only recorded the stack, the innermost Python frame, else vr_sites_frame().
uint32_t vr_sites_innermost(struct vr_sites *sites, uint32_t stack);
// "file:line:function" of a frame, or "<no frames>". NO_HOST_MEMORY.
enum vram_status vr_sites_name(const struct vr_sites *sites, uint32_t frame, struct vr_arena *arena, const char **name);

// The largest groups of what was live at the peak, by bytes, then count, then name; at most `top`, in the arena. *distinct is the
// number of groups. Sites are told apart by their three parts, not by the text made of them. NO_HOST_MEMORY.
enum vram_status vr_sites_at_peak(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, size_t top, struct vr_arena *arena,
                                  struct vram_report_live *live);
// The largest call sites of what was live after `event`, in the same order. NO_HOST_MEMORY.
enum vram_status vr_sites_at(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, int64_t event, size_t top,
                             struct vr_arena *arena, const struct vram_report_group **groups, size_t *group_count);

#endif
