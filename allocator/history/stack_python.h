// stack_python.h: the frames of the Python interpreter in this process, read from its own structures.
//
// CPython 3.8 to 3.15 (64-bit, the default build with the global lock), found at run time by its symbols; nothing of it is linked. Only
// the calling thread's own frames are read: they cannot change while it is in here, whether or not it holds the interpreter's lock, and
// they keep their code objects alive. No reference is taken and nothing is called that could run Python code or wait. What a code object
// says (name, file, lines) is copied when it is met for the first time, so that names can be found at any time later, also when the
// interpreter is gone; an address that comes to stand for another code object is told by the contents.
#ifndef VR_HISTORY_STACK_PYTHON_H
#define VR_HISTORY_STACK_PYTHON_H

#include "base/base.h"

#define VR_PYTHON_WORD ((uint64_t)1 << 63)

struct vr_python_layout;

// A walk from the innermost frame outwards, in groups: the frames that one call of the interpreter's loop runs.
struct vr_python_walk {
    const struct vr_python_layout *layout; // NULL: no Python
    uint64_t frame;                        // of the interpreter; 0 at the end
    uint64_t marker;                       // where the frame's record on the C stack is (3.10, 3.11)
};

// Begins at the calling thread's innermost frame. False when it runs no Python.
bool vr_python_begin(struct vr_python_walk *walk);
// An address on the machine's stack inside the frame of the loop that runs the next group; 0 where the version has none, then
// vr_python_is_loop() tells. Only while walk->frame is not 0.
uint64_t vr_python_anchor(const struct vr_python_walk *walk);
// Whether a return address lies in the interpreter's loop.
bool vr_python_is_loop(const struct vr_python_walk *walk, uint64_t pc);
// Writes the words of the next group, and returns how many. With `capacity` of them the group may not be over.
size_t vr_python_group(struct vr_python_walk *walk, uint64_t *words, size_t capacity);

// What a word of Python says. Strings live for ever. line 0: unknown. False for a word that was not given out.
bool vr_python_resolve(uint64_t word, const char **name, const char **filename, int64_t *line);
// Bytes of host memory that copies of code objects take.
uint64_t vr_python_bytes(void);

#endif
