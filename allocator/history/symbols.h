// symbols.h: names and lines of machine code, from the files that it came from.
//
// Functions are named by the file's symbol table, read here; lines and inlined functions come from its debug information through
// libdw, if that is on the machine (loaded when first needed). Debug information may lie in a file of its own, found by build id
// under DIR/.build-id. Many addresses of one file are asked for at once: its tables are read once for all of them.
#ifndef VR_HISTORY_SYMBOLS_H
#define VR_HISTORY_SYMBOLS_H

#include "base/base.h"
#include "vram/stack.h"

struct vr_symbol_places {
    const char *const *debug_dirs; // searched in order, before /usr/lib/debug
    size_t debug_dir_count;
    bool no_lines; // symbol tables only
};

// What is found about one address: frames from the innermost inlined function outwards. Strings are borrowed for the call. `filename` is
// NULL and `line` 0 where no source is known.
struct vr_symbol_sink {
    // NO_HOST_MEMORY ends everything.
    enum vram_status (*frame)(void *context, size_t index, const char *name, const char *filename, int64_t line);
    void (*working)(void *context); // called now and then meanwhile; NULL: not
    void *context;
};

// What was found of a file.
enum vr_symbol_source {
    VR_SYMBOLS_NONE,  // no file with that build id
    VR_SYMBOLS_NAMES, // a symbol table
    VR_SYMBOLS_LINES, // debug information too
};

// Emits the frames of `count` return addresses, given by their offsets in the file at `path` (or in one with the same build id, where it
// is not empty), ascending and distinct. Addresses of which nothing is known are not told. *source may be NULL. NO_HOST_MEMORY.
enum vram_status vr_symbols_find(const struct vr_symbol_places *places, const char *path, const char *build_id, const uint64_t *offsets,
                                 size_t count, const struct vr_symbol_sink *sink, enum vr_symbol_source *source);

// --- symbols_names.c: resolved frames, and their strings, kept -----------------------------------------------------------------
struct vr_names;
enum vram_status vr_names_create(struct vr_names **names);
void vr_names_destroy(struct vr_names *names);
// The string, once for equal ones; NULL when there is no memory. Lives as long as `names`.
const char *vr_names_string(struct vr_names *names, const char *text);
// Adds a frame; *index is its number, ascending by one. Strings must be of vr_names_string().
enum vram_status vr_names_add(struct vr_names *names, struct vram_frame frame, uint32_t *index);
const struct vram_frame *vr_names_frame(const struct vr_names *names, uint32_t index);
uint64_t vr_names_bytes(const struct vr_names *names);

// --- symbols_dwarf.c: what an ELF file says ---------------------------------------------------------------------------------------------
// The bytes of a program file.
struct vr_elf {
    const unsigned char *bytes;
    uint64_t size_bytes;
    uint64_t sections; // offset of their headers
    uint32_t section_count;
    uint32_t section_bytes;
};
// False for what is not a 64-bit little-endian file of that kind.
bool vr_elf_open(struct vr_elf *elf, const unsigned char *bytes, uint64_t size_bytes);
// Its build id in hexadecimal, "" for none; `text` has room for 129 bytes.
void vr_elf_build_id(const struct vr_elf *elf, char *text);
// For every address (offsets[i] - 1) that a function of its symbol tables holds, puts the name into names[i] (borrowed from the bytes), if
// the one found is better than ranks[i], which then says how good it is. Ranks begin at 0.
void vr_elf_names(const struct vr_elf *elf, const uint64_t *offsets, size_t count, const char **names, uint8_t *ranks);

// Whether it has debug information.
bool vr_elf_has_debug(const struct vr_elf *elf);

// --- symbols_helper.c ----------------------------------------------------------------------------------------------------------
// Emits lines and inlined functions from the debug information in the open file, and sets found[i] for each address it knew. names[i] (may
// be NULL) stands in where the debug information names no function. Fewer where memory or the file is not good enough. UNSUPPORTED without
// libdw, debug information or a process to ask; NO_HOST_MEMORY.
enum vram_status vr_lines_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               const struct vr_symbol_sink *sink);

// --- symbols_dwarf.c -----------------------------------------------------------------------------------------------------------
// Loads libdw. False where there is none.
bool vr_dwarf_load(void);
// Has the loader make what libdw has per thread.
void vr_dwarf_wake(void);
// As vr_lines_find(), in this process, which libdw may end, with names as they are written in the file. Without memory give_up() is called
// and must not return. Not from two threads at once.
enum vram_status vr_dwarf_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               void (*give_up)(void), const struct vr_symbol_sink *sink);
// --- symbols_names.c --------------------------------------------------------------------------------------------------------------------
// Gives `name` on, as C++ writes it if it is mangled and the C++ library is there to say.
enum vram_status vr_symbol_emit(const struct vr_symbol_sink *sink, size_t index, const char *name, const char *filename, int64_t line);

#endif
