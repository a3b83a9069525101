// sites.h: who holds the bytes: allocations grouped by call site and by call stack.
#ifndef VR_ANALYZE_SITES_H
#define VR_ANALYZE_SITES_H

#include "analyze/arena.h"
#include "analyze/frame_kinds.h"
#include "analyze/lifetimes.h"
#include "base/base.h"

// ---- SHA-1 (FIPS 180-4), only to name call stacks the same way everywhere; nothing here is about security.

struct vr_sha1 {
    uint32_t state[5];
    uint64_t length; // bytes so far
    unsigned char block[64];
};

void vr_sha1_init(struct vr_sha1 *sha1);
void vr_sha1_add(struct vr_sha1 *sha1, const void *bytes, size_t length);
// The first eight bytes of the digest, big-endian: its first 16 hex digits as a number. Ends the use of *sha1.
uint64_t vr_sha1_end(struct vr_sha1 *sha1);

// ---- Who holds the bytes: allocations grouped by call site and by call stack.

// Sites of one model's stacks, found when first asked for. One thread at a time.
struct vr_sites {
    const struct vr_model *model; // borrowed
    uint8_t *frame_kind;          // by frame: enum vr_frame_kind
    uint32_t *site;               // by stack: 1 + frame, 0 not looked at
    uint64_t hashed_bytes;        // text of stacks hashed so far
    bool plain;                   // sites as other tools choose them: innermost Python outside torch, else the innermost frame
};

// NO_HOST_MEMORY. The model must outlive the sites.
enum vram_status vr_sites_init(struct vr_sites *sites, const struct vr_model *model);
void vr_sites_release(struct vr_sites *sites);

#define VR_NO_SITE UINT32_MAX
// The frame that stands for a stack: the innermost one of the best kind that the stack has, in the order of VR_FRAME_KINDS (the outermost
// operator, machine code only outside of PyTorch's); plain sites choose otherwise. VR_NO_SITE for a stack without frames.
uint32_t vr_sites_frame(struct vr_sites *sites, uint32_t stack);
// The innermost frame; where that one only recorded the stack, the innermost Python frame, else vr_sites_frame().
uint32_t vr_sites_innermost(struct vr_sites *sites, uint32_t stack);
// What a frame is, the user's own expressions counted.
enum vr_frame_kind vr_sites_kind(struct vr_sites *sites, uint32_t frame);
// Whether the frame is folded where this stack is shown.
bool vr_sites_folds(struct vr_sites *sites, uint32_t stack, uint32_t frame);
// Chosen anew when next asked for: what is skipped has changed.
void vr_sites_forget(struct vr_sites *sites);
// As vram_recording_skip_frames(), in place of what an earlier call of this skipped; "": nothing.
enum vram_status vr_sites_skip_for_now(struct vram_recording *recording, const char *expression, struct vram_error *error);
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
