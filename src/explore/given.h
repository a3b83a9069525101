// given.h: how large a block the allocator gave for each request, which a history does not say.
//
// By the rules of the allocator (allocator.md §sizes, allocator.md §best-fit): a request is rounded; a large block takes what is left of
// the free piece it was cut from when that rest is too small to be kept. What was left is known from who lived after the block when it was
// made. Blocks of the final state say it themselves.
#ifndef VR_EXPLORE_GIVEN_H
#define VR_EXPLORE_GIVEN_H

#include "analyze/lifetimes.h"
#include "analyze/segment_lives.h"
#include "config/options.h"
#include "explore/curve.h"

struct vr_given {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes; // active
    struct vr_options options;            // as recorded
    uint32_t *rest;                       // by row: what it took beyond its rounded size, in units of 512 bytes
};

// Found a piece at a time. Borrows all it is given; `rows` are those of the lifetimes. Given to the caller: vr_giving_destroy().
// NO_HOST_MEMORY.
struct vr_giving;
enum vram_status vr_giving_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                  const struct vr_segment_lives *segments, struct vr_giving **giving);
// NULL is ignored.
void vr_giving_destroy(struct vr_giving *giving);
// Looks at up to `most` further rows or events. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_giving_go_on(struct vr_giving *giving, size_t most, double *share);
// What was found, once; given to the caller: vr_given_release().
void vr_giving_take(struct vr_giving *giving, struct vr_given *given);
void vr_given_release(struct vr_given *given);
// The size of a row's block. *estimated: it lived before the recording and is gone by the end, so that nothing says what it took.
uint64_t vr_given_bytes(const struct vr_given *given, size_t row, bool *estimated);

#endif
