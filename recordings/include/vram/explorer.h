// vram/explorer.h: queries about recordings, answered fast enough to draw while one moves through them.
//
// An explorer holds one or more recordings and what was worked out about them. A query is a line of text, "name?key=value&...", an
// answer is a block of bytes: a JSON object, and columns of numbers that the object describes. formats/queries.md lists the queries.
// The page (compiled to WebAssembly), the local server and the command ask the same explorer. One thread at a time per explorer.
#ifndef VRAM_EXPLORER_H
#define VRAM_EXPLORER_H

#include <stddef.h>

#include "vram/status.h"
#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_explorer;

// An explorer without recordings. *explorer is given to the caller: vram_explorer_destroy(). NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_create(struct vram_explorer **explorer);
// Takes the recording (on success). name is copied: what the recording is called in answers; bytes is its file's size, 0 if unknown.
// NO_HOST_MEMORY, LIMIT (more devices or recordings than can be told apart).
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_add(struct vram_explorer *explorer,
                                                                             struct vram_recording *recording, const char *name,
                                                                             uint64_t bytes, struct vram_error *error);
// Answers a query. The answer goes to `write` in one piece. INVALID_ARGUMENT with a sentence for a query that is none, or whose
// values are out of range; NO_HOST_MEMORY; IO when `write` returned false.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_ask(struct vram_explorer *explorer, const char *query,
                                                                             vram_write write, void *user, struct vram_error *error);
// NULL is ignored.
VRAM_API VRAM_EXPERIMENTAL void vram_explorer_destroy(struct vram_explorer *explorer);

#ifdef __cplusplus
}
#endif
#endif
