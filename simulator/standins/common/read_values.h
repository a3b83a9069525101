// read_values.h: the operations of PyTorch that a read is a part of, by the frames of machine code above it.
// PyTorch's dispatcher calls every operation through a function at::_ops::NAME_OVERLOAD::call(), which all its builds export: a read of a
// count within masked_select() has `nonzero` and, further out, `masked_select` on its stack.
#ifndef VR_STANDINS_COMMON_COMMON_READ_VALUES_H
#define VR_STANDINS_COMMON_COMMON_READ_VALUES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Appends the operation that a frame's function is of to `text`, behind a blank, unless it is there already or does not fit. Frames
// are given innermost first.
void vr_read_operations_add(const char *function, char *text, size_t capacity);
// Whether `name` (`nonzero`, `unique`) is among them: also as `_unique2`, `unique_dim`, `nonzero_numpy`, `index_Tensor` for `index`.
bool vr_read_operations_have(const char *text, const char *name, size_t length);
// Whether what is read is how many elements of several there are, so that a part of these is a value for it.
bool vr_read_operations_count(const char *text);
// The one that says the most: the innermost that does not just copy, else the outermost. Not ended by a NUL.
const char *vr_read_operations_main(const char *text, size_t *length);

// ---- What a program reads where only a kernel would have written, for `--value` of `vram sim` and `vram fit`.
// The rules are text, a line each: `PLACE=VALUE[,VALUE...]`, `#` begins a comment. The variable VRAM_SIM_VALUES holds them.

#define VR_READ_VALUES_BYTES 65536 // of all rules together, the NUL included: a variable of the environment

enum vr_read_place {
    VR_READ_ANYWHERE, // *
    VR_READ_FUNCTION, // NAME()
    VR_READ_FILE,     // the end of a path, from the path's begin or a '/' on
    VR_READ_LINE,     // the same, and a line of it
    VR_READ_OPERATION // aten::NAME (simulator/standins/common/read_values.h)
};

// The elements of a read.
struct vr_read_value {
    uint8_t width; // bytes of one; 0: an integer as wide as the read suggests
    bool part;     // `bits` is a part of what is counted, in millionths
    uint64_t bits; // its lowest `width` bytes
};

struct vr_read_rule {
    enum vr_read_place kind;
    const char *name; // in the text
    size_t length;
    int64_t line;
    size_t first, count;    // its values; at least one
    _Atomic uint64_t reads; // that it gave values so far
};

struct vr_read_values {
    char *text;
    struct vr_read_rule *rules;
    struct vr_read_value *values; // of all rules, one behind the other
    size_t rule_count, value_count;
    bool by_operation; // some rule is for an operation, or gives a part of what one counts
};

// What is wrong with rules, for a message.
struct vr_read_wrong {
    size_t line; // from 1 on
    char why[160];
};

// False with *wrong where a line is no rule or there is no memory; *made is written on success only. No rule at all is fine.
bool vr_read_values_parse(const char *text, struct vr_read_values *made, struct vr_read_wrong *wrong);
void vr_read_values_release(struct vr_read_values *values);

// Is this frame at the rule's place?
bool vr_read_rule_matches(const struct vr_read_rule *rule, const char *function, const char *filename, int64_t line);
// Is the read a part of the rule's operation?
bool vr_read_rule_is_of(const struct vr_read_rule *rule, const char *operations);
// The value of one more read that the rule is for: one value after the other, then the last one.
const struct vr_read_value *vr_read_rule_next(const struct vr_read_values *values, struct vr_read_rule *rule);
// Writes the value as often as it goes whole into the bytes. `counted`: what a part is of.
void vr_read_value_fill(const struct vr_read_value *value, uint64_t counted, void *bytes, uint64_t size_bytes);

#endif
