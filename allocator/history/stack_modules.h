// stack_modules.h: the modules that this process has, and those that it had: what an address on a stack meant when it was taken.
//
// One list for the process, under one lock, brought up to date when an address is looked at for the first time and when something was
// unloaded. A module keeps its row for ever. Where a module lies over the place of an older one, it has a generation of its own, so that
// the word of a frame, vr_code_word(address, generation), never stands for the code of two modules.
#ifndef VR_HISTORY_STACK_MODULES_H
#define VR_HISTORY_STACK_MODULES_H

#include "history/stack_cfi.h"

struct vr_code_module {
    const char *path;
    const char *build_id; // hexadecimal; "" for none
    uint64_t bias;
    uint64_t start;
    uint64_t end;
    struct vr_cfi_tables tables;
    uint32_t generation;
    bool loaded;
    bool lasting; // it is never unloaded: the program itself, the C library
};

// A frame of machine code: the return address and the generation of its module. Bit 63 is free (frames of Python have it).
VR_INLINE uint64_t vr_code_word(uint64_t address, uint32_t generation) { return address | (uint64_t)generation << 48; }
VR_INLINE uint64_t vr_code_address(uint64_t word) { return word & (((uint64_t)1 << 48) - 1); }
VR_INLINE uint32_t vr_code_generation(uint64_t word) { return (uint32_t)(word >> 48) & 0x7fff; }

// Takes and gives the lock of the list. Everything below wants it held. Forks take it too.
void vr_modules_lock(void);
void vr_modules_unlock(void);

// Brings the list up to date if anything was loaded or unloaded since the last call. forget() is called then, before anybody can see by
// vr_modules_current() that the list is new.
void vr_modules_refresh_locked(void (*forget)(void));
// Whether nothing was loaded or unloaded since then, by the loader's counts. Needs no lock. Who finds it so sees what forget() did.
bool vr_modules_current(void);
// The module that holds `address` now; NULL for none. Valid until the next refresh.
const struct vr_code_module *vr_modules_find_locked(uint64_t address);
// The row of the module of a word, also of one that is gone; UINT32_MAX for none.
uint32_t vr_modules_of_word_locked(uint64_t word);
const struct vr_code_module *vr_modules_row_locked(uint32_t row);
// Calls inside() while no module can be unloaded. False, without a call, when the list is not up to date.
bool vr_modules_hold_locked(void (*inside)(void *context), void *context);
// Bytes of host memory that the list takes.
uint64_t vr_modules_bytes_locked(void);

#endif
