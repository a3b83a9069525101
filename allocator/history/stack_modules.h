// stack_modules.h: the modules of this process, present and past: the meaning of a stack address at the time it was captured.
//
// The process has one list, under one lock. It is updated when an address is first seen and when a module was unloaded. A module keeps its
// row forever. A module loaded where an older one was gets a new generation, so that the word of a frame, vr_code_word(address,
// generation), never stands for the code of two modules.
#ifndef VR_HISTORY_STACK_MODULES_H
#define VR_HISTORY_STACK_MODULES_H

#include "history/stack_cfi.h"

struct vr_code_module {
    const char *path;
    const char *build_id; // hexadecimal; "": no id
    uint64_t bias;
    uint64_t start;
    uint64_t end;
    struct vr_cfi_tables tables;
    uint32_t generation;
    bool loaded;
    bool lasting; // never unloaded: the program itself, the C library
};

// A frame of machine code: the return address and its module's generation. Bit 63 is free (Python frames set it).
VR_INLINE uint64_t vr_code_word(uint64_t address, uint32_t generation) { return address | (uint64_t)generation << 48; }
VR_INLINE uint64_t vr_code_address(uint64_t word) { return word & (((uint64_t)1 << 48) - 1); }
VR_INLINE uint32_t vr_code_generation(uint64_t word) { return (uint32_t)(word >> 48) & 0x7fff; }

// Take and release the list's lock, which all functions below require. Forks take it, too.
void vr_modules_lock(void);
void vr_modules_unlock(void);

// Updates the list if anything was loaded or unloaded since the last call. In that case calls forget() before vr_modules_current() can
// report the list as current.
void vr_modules_refresh_locked(void (*forget)(void));
// Returns whether nothing was loaded or unloaded since the last refresh, by the loader's counts. Needs no lock. If true, the effects of
// forget() are visible.
bool vr_modules_current(void);
// Returns the module that contains `address` now, or NULL. Valid until the next refresh.
const struct vr_code_module *vr_modules_find_locked(uint64_t address);
// Returns the row of a word's module, even an unloaded one; UINT32_MAX if unknown.
uint32_t vr_modules_of_word_locked(uint64_t word);
const struct vr_code_module *vr_modules_row_locked(uint32_t row);
// Calls inside() while no module can be unloaded. Returns false, without a call, if the list is out of date.
bool vr_modules_hold_locked(void (*inside)(void *context), void *context);
// Returns the bytes of host memory that the list takes.
uint64_t vr_modules_bytes_locked(void);

#endif
