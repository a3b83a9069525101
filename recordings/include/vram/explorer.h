// vram/explorer.h: queries about recordings, answered fast enough for interactive drawing.
//
// An explorer holds one or more recordings and the results computed from them. A query is a line of text, "name?key=value&..."; an answer
// is one block of bytes: a JSON object followed by the columns of numbers that it describes. formats/queries.md lists the queries. The page
// (compiled to WebAssembly), the local server and the command use the same explorer. Use an explorer from one thread at a time.
#ifndef VRAM_EXPLORER_H
#define VRAM_EXPLORER_H

#include <stddef.h>

#include "vram/status.h"
#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_explorer;

// Creates an explorer without recordings. The caller owns *explorer: vram_explorer_destroy(). NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_create(struct vram_explorer **explorer);
// Adds a recording; takes ownership of it on success. `name` is copied and names the recording in answers; `bytes` is its file's size, 0 if
// unknown. NO_HOST_MEMORY; LIMIT if there are more devices or recordings than numbers for them.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_add(struct vram_explorer *explorer,
                                                                             struct vram_recording *recording, const char *name,
                                                                             uint64_t bytes, struct vram_error *error);
// Answers a query by one call of `write`. INVALID_ARGUMENT with a message for an unknown query or a value out of range; NO_HOST_MEMORY; IO
// if `write` returns false.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_explorer_ask(struct vram_explorer *explorer, const char *query,
                                                                             vram_write write, void *user, struct vram_error *error);
// NULL is ignored.
VRAM_API VRAM_EXPERIMENTAL void vram_explorer_destroy(struct vram_explorer *explorer);

#ifdef __cplusplus
}
#endif
#endif
