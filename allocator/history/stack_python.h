// stack_python.h: the Python interpreter's frames in this process, read from its own structures.
//
// Supports CPython 3.8 to 3.15 (64-bit, the default build with the global lock), found at run time by its symbols; no part of it is linked.
// Only the calling thread's own frames are read. They cannot change during the call, with or without the interpreter's lock, and they keep
// their code objects alive. No reference is taken, and nothing is called that could run Python code or wait. A code object's name, file and
// lines are copied when it is first seen, so names can be resolved at any later time, even after the interpreter is gone. A change of the
// contents shows that an address now belongs to another code object.
#ifndef VR_HISTORY_STACK_PYTHON_H
#define VR_HISTORY_STACK_PYTHON_H

#include "base/base.h"

#define VR_PYTHON_WORD ((uint64_t)1 << 63)

struct vr_python_layout;

// A walk from the innermost frame outwards, in groups: the frames run by one call of the interpreter's loop.
struct vr_python_walk {
    const struct vr_python_layout *layout; // NULL: no Python
    uint64_t frame;                        // of the interpreter; 0 at the end
    uint64_t marker;                       // address of the frame's record on the C stack (3.10, 3.11)
};

// Begins at the calling thread's innermost frame. Returns false if the thread runs no Python.
bool vr_python_begin(struct vr_python_walk *walk);
// Returns an address on the machine stack inside the loop's frame that runs the next group; 0 if the version lacks one: use
// vr_python_is_loop(). Requires walk->frame != 0.
uint64_t vr_python_anchor(const struct vr_python_walk *walk);
// Returns whether a return address is in the interpreter's loop.
bool vr_python_is_loop(const struct vr_python_walk *walk, uint64_t pc);
// Writes the words of the next group and returns their number. If that equals `capacity`, the group may have more.
size_t vr_python_group(struct vr_python_walk *walk, uint64_t *words, size_t capacity);

// Resolves a Python word. Strings live forever. line 0: unknown. Returns false for an unknown word.
bool vr_python_resolve(uint64_t word, const char **name, const char **filename, int64_t *line);
// Returns the bytes of host memory that copies of code objects take.
uint64_t vr_python_bytes(void);

#endif
