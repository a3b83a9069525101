// read_operations.h: the operations of PyTorch that a read is a part of, by the frames of machine code above it.
//
// PyTorch's dispatcher calls every operation through a function at::_ops::NAME_OVERLOAD::call(), which all its builds export: a read of a
// count within masked_select() has `nonzero` and, further out, `masked_select` on its stack.
#ifndef VR_STANDINS_COMMON_READ_OPERATIONS_H
#define VR_STANDINS_COMMON_READ_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>

// Appends the operation that a frame's function is of to `text`, behind a blank, unless it is there already or does not fit. Frames
// are given innermost first.
void vr_read_operations_add(const char *function, char *text, size_t capacity);
// Whether `name` (`nonzero`, `unique`) is among them: also as `_unique2`, `unique_dim`, `nonzero_numpy`, `index_Tensor` for `index`.
bool vr_read_operations_have(const char *text, const char *name, size_t length);
// Whether what is read is how many elements of several there are, so that a part of these is a value for it.
bool vr_read_operations_count(const char *text);
// The one that says the most: the innermost that does not just copy, else the outermost. Not ended by a NUL.
const char *vr_read_operations_main(const char *text, size_t *length);

#endif
