// vram/follow.h: reads a recording file (.vram) while another program writes it.
//
// Each event is given once, in the order of the file, as soon as it is appended: from the file's open tail, and later never again from the
// block that the tail becomes. Nothing is asked of the writer, which may be killed at any time. One thread at a time.
#ifndef VRAM_FOLLOW_H
#define VRAM_FOLLOW_H

#include "vram/log.h"
#include "vram/stack.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_follow;

// Opens the file for its events at or after `from_ns` (since the epoch; 0: all). Blocks that lie before it are stepped over by their
// headers: of them only the dictionaries are read. *follow is given to the caller: vram_follow_close(). IO, BAD_INPUT for another kind of
// file, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_open(const char *path, uint64_t from_ns, struct vram_follow **follow,
                                                          struct vram_error *error);
// NULL is ignored.
VRAM_API void vram_follow_close(struct vram_follow *follow);

// Gives the next events, at most `capacity`; *count 0: there are none at present. Never waits. BAD_INPUT for a damaged file, IO, LIMIT,
// NO_HOST_MEMORY; *error (may be NULL) says what.
VRAM_API VRAM_NODISCARD enum vram_status vram_follow_next(struct vram_follow *follow, struct vram_log_event *events, size_t capacity,
                                                          size_t *count, struct vram_error *error);
// Whether the writer has closed the file and every event was given.
VRAM_API bool vram_follow_ended(const struct vram_follow *follow);

// The string of an id of an event that was given; "" for one that is none. Borrowed until the next vram_follow_next().
VRAM_API const char *vram_follow_string(const struct vram_follow *follow, uint32_t id);
// The frames of a stack, innermost first: at most `capacity`, and returns how many there are. Machine code has the name "0x" and its offset
// in the module that `filename` is the path of. Strings as above.
VRAM_API size_t vram_follow_stack(const struct vram_follow *follow, uint32_t stack, struct vram_frame *frames, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
