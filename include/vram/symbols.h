// vram/symbols.h: names for the machine code in a recording, found after the fact.
//
// A recording that was made by `vram run` or with vram/stack.h has frames of machine code as offsets in a module. They are resolved on
// any machine that has the modules (or files with the same build ids), and, for lines and inlined functions, their debug information and
// elfutils' libdw. Files are told by build id: a module that was rebuilt since is not asked.
#ifndef VRAM_SYMBOLS_H
#define VRAM_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

// All-zero means every default.
struct vram_symbols_options {
    const char *const *debug_dirs; // folders with .build-id/ab/cdef....debug, searched before /usr/lib/debug; may be NULL
    size_t debug_dir_count;
    bool names_only; // symbol tables only, which is quicker
};

struct vram_symbols_counts {
    uint64_t frames;          // distinct frames that were not resolved
    uint64_t named;           // of them, have a name now
    uint64_t lined;           // of them, have a line now
    uint64_t modules;         // that those frames are in
    uint64_t modules_missing; // of them, have no file with their build id here
};

// Resolves what can be. *counts (may be NULL) says how much that was; what could not stays as it is. Nobody else may use the recording
// meanwhile. NO_HOST_MEMORY, INVALID_ARGUMENT for a NULL recording; it is unchanged then.
VRAM_API VRAM_NODISCARD enum vram_status
vram_recording_symbolize(struct vram_recording *recording, const struct vram_symbols_options *options, struct vram_symbols_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
