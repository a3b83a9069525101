// symbols.h: names and lines of machine code, from its program files.
//
// Function names come from the file's symbol table, read here; lines and inlined functions from its debug information through libdw, if
// installed (loaded when first needed). Debug information may be in a separate file, found by build id under DIR/.build-id. A query covers
// many addresses of one file, whose tables are read once for all of them.
#ifndef VR_HISTORY_SYMBOLS_H
#define VR_HISTORY_SYMBOLS_H

#include "base/base.h"
#include "vram/stack.h"

struct vr_symbol_places {
    const char *const *debug_dirs; // searched in order, before /usr/lib/debug
    size_t debug_dir_count;
    bool no_lines; // symbol tables only
};

// Receives the frames of one address, from the innermost inlined function outwards. Strings are borrowed for the call. `filename` is NULL
// and `line` 0 if the source is unknown.
struct vr_symbol_sink {
    // Returning NO_HOST_MEMORY ends the search.
    enum vram_status (*frame)(void *context, size_t index, const char *name, const char *filename, int64_t line);
    void (*working)(void *context); // called from time to time during the search; may be NULL
    void *context;
};

// The symbols found for a file.
enum vr_symbol_source {
    VR_SYMBOLS_NONE,  // no file with that build id
    VR_SYMBOLS_NAMES, // a symbol table
    VR_SYMBOLS_LINES, // debug information too
};

// Emits the frames of `count` return addresses, given by their offsets in the file at `path` (or in one with the same build id, unless it
// is empty), ascending and distinct. Unknown addresses are skipped. *source may be NULL. NO_HOST_MEMORY.
enum vram_status vr_symbols_find(const struct vr_symbol_places *places, const char *path, const char *build_id, const uint64_t *offsets,
                                 size_t count, const struct vr_symbol_sink *sink, enum vr_symbol_source *source);

// --- symbols_names.c: storage for resolved frames and their strings -------------------------------------------------------------
struct vr_names;
enum vram_status vr_names_create(struct vr_names **names);
void vr_names_destroy(struct vr_names *names);
// Returns the stored string, one for equal texts; NULL if the host is out of memory. Lives as long as `names`.
const char *vr_names_string(struct vr_names *names, const char *text);
// Adds a frame; *index is its number, ascending by one. Strings must come from vr_names_string().
enum vram_status vr_names_add(struct vr_names *names, struct vram_frame frame, uint32_t *index);
const struct vram_frame *vr_names_frame(const struct vr_names *names, uint32_t index);
uint64_t vr_names_bytes(const struct vr_names *names);

// --- symbols_dwarf.c: reading ELF files -------------------------------------------------------------------------------------------------
// The bytes of a program file.
struct vr_elf {
    const unsigned char *bytes;
    uint64_t size_bytes;
    uint64_t sections; // offset of their headers
    uint32_t section_count;
    uint32_t section_bytes;
};
// Returns false if it is not a 64-bit little-endian ELF file.
bool vr_elf_open(struct vr_elf *elf, const unsigned char *bytes, uint64_t size_bytes);
// Writes its build id in hexadecimal, "" if absent; `text` has room for 129 bytes.
void vr_elf_build_id(const struct vr_elf *elf, char *text);
// For every address (offsets[i] - 1) inside a function of its symbol tables, writes the name into names[i] (borrowed from the bytes) if it
// ranks higher than ranks[i], which is updated. Ranks begin at 0.
void vr_elf_names(const struct vr_elf *elf, const uint64_t *offsets, size_t count, const char **names, uint8_t *ranks);

// Returns whether the file has debug information.
bool vr_elf_has_debug(const struct vr_elf *elf);

// --- symbols_helper.c ----------------------------------------------------------------------------------------------------------
// Emits lines and inlined functions from the debug information in the open file, and sets found[i] for each known address. names[i] (may be
// NULL) is used where the debug information names no function. Short memory or a defective file gives fewer results. UNSUPPORTED without
// libdw, debug information or a helper process; NO_HOST_MEMORY.
enum vram_status vr_lines_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               const struct vr_symbol_sink *sink);

// --- symbols_dwarf.c -----------------------------------------------------------------------------------------------------------
// Loads libdw. Returns false if it is not installed.
bool vr_dwarf_load(void);
// Forces allocation of libdw's thread-local storage.
void vr_dwarf_wake(void);
// As vr_lines_find(), but in this process, which libdw may terminate, and with names as written in the file. Without memory it calls
// give_up(), which must not return. One thread at a time.
enum vram_status vr_dwarf_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               void (*give_up)(void), const struct vr_symbol_sink *sink);
// --- symbols_names.c --------------------------------------------------------------------------------------------------------------------
// Emits `name`, demangled if it is a C++ name and the C++ library is loaded.
enum vram_status vr_symbol_emit(const struct vr_symbol_sink *sink, size_t index, const char *name, const char *filename, int64_t line);

#endif
