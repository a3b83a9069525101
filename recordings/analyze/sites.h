// sites.h: groups allocations by call site and by call stack.
#ifndef VR_ANALYZE_SITES_H
#define VR_ANALYZE_SITES_H

#include "analyze/arena.h"
#include "analyze/frame_kinds.h"
#include "analyze/lifetimes.h"
#include "base/base.h"

// ---- SHA-1 (FIPS 180-4), only to name call stacks consistently; not for security.

struct vr_sha1 {
    uint32_t state[5];
    uint64_t length; // bytes so far
    unsigned char block[64];
};

void vr_sha1_init(struct vr_sha1 *sha1);
void vr_sha1_add(struct vr_sha1 *sha1, const void *bytes, size_t length);
// Returns the first eight bytes of the digest, big-endian: its first 16 hex digits as a number. *sha1 cannot be used afterwards.
uint64_t vr_sha1_end(struct vr_sha1 *sha1);

// ---- Allocations grouped by call site and by call stack.

// The call sites of a model's stacks, computed at first use. Use from one thread at a time.
struct vr_sites {
    const struct vr_model *model; // borrowed
    uint8_t *frame_kind;          // by frame: enum vr_frame_kind
    uint32_t *site;               // by stack: 1 + frame; 0: not computed
    uint64_t hashed_bytes;        // text of stacks hashed so far
    bool plain;                   // choose sites as other tools do: the innermost Python frame outside torch, otherwise the innermost frame
};

// Initializes the sites. NO_HOST_MEMORY. The model must outlive them.
enum vram_status vr_sites_init(struct vr_sites *sites, const struct vr_model *model);
void vr_sites_release(struct vr_sites *sites);

#define VR_NO_SITE UINT32_MAX
// Returns a stack's call site: the innermost frame of the best kind in the stack, in the order of VR_FRAME_KINDS (for operators the
// outermost; machine code only outside PyTorch); plain sites are chosen differently. VR_NO_SITE for a stack without frames.
uint32_t vr_sites_frame(struct vr_sites *sites, uint32_t stack);
// Returns the innermost frame; if that only recorded the stack, the innermost Python frame, otherwise vr_sites_frame().
uint32_t vr_sites_innermost(struct vr_sites *sites, uint32_t stack);
// Returns the kind of a frame, considering the frames excluded by the user.
enum vr_frame_kind vr_sites_kind(struct vr_sites *sites, uint32_t frame);
// Returns whether the frame is folded when this stack is shown.
bool vr_sites_folds(struct vr_sites *sites, uint32_t stack, uint32_t frame);
// Discards all sites, because the excluded frames have changed.
void vr_sites_forget(struct vr_sites *sites);
// Like vram_recording_skip_frames(), but replaces the frames excluded by an earlier call of this function; "": none.
enum vram_status vr_sites_skip_for_now(struct vram_recording *recording, const char *expression, struct vram_error *error);
// Sets *name to "file:line:function" of a frame, or "<no frames>". NO_HOST_MEMORY.
enum vram_status vr_sites_name(const struct vr_sites *sites, uint32_t frame, struct vr_arena *arena, const char **name);

// Fills in the largest groups of allocations live at the peak, by bytes, then count, then name; at most `top`, in the arena, and the
// numbers of distinct groups. Compares sites by their three parts, not by their text. NO_HOST_MEMORY.
enum vram_status vr_sites_at_peak(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, size_t top, struct vr_arena *arena,
                                  struct vram_report_live *live);
// Sets *groups to the largest call sites of allocations live after `event`, in the same order. NO_HOST_MEMORY.
enum vram_status vr_sites_at(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, int64_t event, size_t top,
                             struct vr_arena *arena, const struct vram_report_group **groups, size_t *group_count);

#endif
