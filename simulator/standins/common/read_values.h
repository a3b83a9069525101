// read_values.h: the PyTorch operations that a read belongs to, found by the frames of machine code above it. PyTorch's dispatcher calls
// every operation through a function at::_ops::NAME_OVERLOAD::call(), which all its builds export: the read of a count in masked_select()
// has `nonzero` and, further out, `masked_select` on its stack.
#ifndef VR_STANDINS_COMMON_COMMON_READ_VALUES_H
#define VR_STANDINS_COMMON_COMMON_READ_VALUES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Appends the operation of a frame's function to `text`, after a blank, unless it is already there or does not fit. Call for the innermost
// frame first.
void vr_read_operations_add(const char *function, char *text, size_t capacity);
// Returns whether `name` (`nonzero`, `unique`) is among the operations. Variants match too: `_unique2`, `unique_dim`, `nonzero_numpy`, and
// `index_Tensor` for `index`.
bool vr_read_operations_have(const char *text, const char *name, size_t length);
// Returns whether the operation reads a count of elements, for which a percentage is a valid value.
bool vr_read_operations_count(const char *text);
// Returns the most telling operation: the innermost one that does not merely copy, else the outermost. Not NUL-terminated.
const char *vr_read_operations_main(const char *text, size_t *length);

// ---- Values for reads of memory that only a kernel would have written, for `--value` of `vram sim` and `vram fit`. The rules are text,
// one per line: `PLACE=VALUE[,VALUE...]`; `#` starts a comment. The variable VRAM_SIM_VALUES contains them.

#define VR_READ_VALUES_BYTES 65536 // limit on all rules together with the NUL, because they are an environment variable

enum vr_read_place {
    VR_READ_ANYWHERE, // *
    VR_READ_FUNCTION, // NAME()
    VR_READ_FILE,     // the end of a path, starting at its start or at a '/'
    VR_READ_LINE,     // the same with a line number
    VR_READ_OPERATION // aten::NAME
};

// A value for the elements of a read.
struct vr_read_value {
    uint8_t width; // bytes per element; 0: an integer with a width that suits the read
    bool part;     // `bits` is a fraction of the count, in millionths
    uint64_t bits; // value in the lowest `width` bytes
};

struct vr_read_rule {
    enum vr_read_place kind;
    const char *name; // points into `text`
    size_t length;
    int64_t line;
    size_t first, count;    // its values; at least one
    _Atomic uint64_t reads; // number of reads it has answered
};

struct vr_read_values {
    char *text;
    struct vr_read_rule *rules;
    struct vr_read_value *values; // of all rules, in order
    size_t rule_count, value_count;
    bool by_operation; // a rule names an operation or gives a percentage
};

// An error in the rules, for a message.
struct vr_read_wrong {
    size_t line; // from 1
    char why[160];
};

// Parses rules; text without rules is valid. On failure returns false, sets *wrong (a malformed line, or out of memory) and leaves *made
// unchanged.
bool vr_read_values_parse(const char *text, struct vr_read_values *made, struct vr_read_wrong *wrong);
void vr_read_values_release(struct vr_read_values *values);

// Returns whether this frame is at the rule's place.
bool vr_read_rule_matches(const struct vr_read_rule *rule, const char *function, const char *filename, int64_t line);
// Returns whether the read belongs to the rule's operation.
bool vr_read_rule_is_of(const struct vr_read_rule *rule, const char *operations);
// Returns the rule's value for its next read: its values in order, then the last one again.
const struct vr_read_value *vr_read_rule_next(const struct vr_read_values *values, struct vr_read_rule *rule);
// Fills the bytes with the value as often as it fits whole. `counted`: the count that a percentage refers to.
void vr_read_value_fill(const struct vr_read_value *value, uint64_t counted, void *bytes, uint64_t size_bytes);

#endif
