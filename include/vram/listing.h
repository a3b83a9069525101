// vram/listing.h: what a recording holds, row by row: the counterparts of PyTorch's `python -m torch.cuda._memory_viz`.
#ifndef VRAM_LISTING_H
#define VRAM_LISTING_H

#include "vram/output.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

enum vram_listing {
    VRAM_LISTING_STATS,    // segments of 20 MiB and more, page by page, and the sums of all
    VRAM_LISTING_SEGMENTS, // a row per segment of the final state
    VRAM_LISTING_MEMORY,   // the final blocks by stream, state and call stack, a line each: "stream_0;inactive;... 512"
    VRAM_LISTING_TRACE,    // a row per event of the history
    VRAM_LISTING_COUNT
};
// "stats", "segments", "memory", "trace"; NULL past the last.
VRAM_API const char *vram_listing_name(enum vram_listing listing);

// Writes the rows for people; style may be NULL. The recording is borrowed. NO_HOST_MEMORY, LIMIT (more devices or events than can be told
// apart), INVALID_ARGUMENT, IO when `write` returned false.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_text(const struct vram_recording *recording, enum vram_listing listing,
                                                           const struct vram_style *style, vram_write write, void *user,
                                                           struct vram_error *error);
// The same as one JSON object with the member `file` (may be NULL) and a member with the listing's name; keys in docs/reference/json.md.
VRAM_API VRAM_NODISCARD enum vram_status vram_listing_json(const struct vram_recording *recording, enum vram_listing listing,
                                                           const char *file, vram_write write, void *user, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
