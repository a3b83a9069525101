// values.h: reads and prints the value of each kind of option. Only used inside this room.
#ifndef VR_CONFIG_VALUES_H
#define VR_CONFIG_VALUES_H

#include "base/json.h"
#include "config/lex.h"
#include "config/options.h"

// A `smallest` that means the large segment's size instead of a number of MiB.
#define LARGE_SEGMENT UINT32_MAX

enum vr_option_kind {
    VR_KIND_BOOLEAN,
    VR_KIND_SIZE,            // uint64_t bytes
    VR_KIND_OPEN_FRACTION,   // double in (0, 1)
    VR_KIND_CLOSED_FRACTION, // double in [0, 1]
    VR_KIND_DIVISIONS,       // the array of divisors
    VR_KIND_BACKEND,
    VR_KIND_THREADS,   // uint32_t
    VR_KIND_BYTES,     // uint32_t, at most VR_PADDING_MAX
    VR_KIND_ALIGNMENT, // uint32_t KiB, at most VR_ALIGNMENT_KIB_MAX
    VR_KIND_RESERVE,
    VR_KIND_CLASSES, // reserve_classes and its count
    VR_KIND_VERSION, // uint32_t, VR_PYTORCH()
};

// One key. The fields have the names used in options.def.
struct vr_option_row {
    const char *key;
    const char *syntax;
    const char *summary;
    struct {
        const char *key;    // in `allocator_settings`; NULL: not recorded
        bool only_when_set; // recorded only if the value is not the default
    } recorded;
    size_t field; // offset in struct vr_options
    size_t field_bytes;
    uint32_t smallest;
    enum vr_option_kind kind;
    bool reset;  // reset to its default at every parse
    bool places; // affects the addresses of requests
};
extern const struct vr_option_row vr_option_rows[];
extern const size_t vr_option_row_count;

// Reads the value at the lexer's current token into the row's field and moves past it. BAD_OPTION, LIMIT; on failure the field may have
// changed (the caller works on a copy).
enum vram_status vr_option_read(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer);
// Appends the value in a form that vr_option_read() reads back. A size without limit and an unset reservation, which have no spelling, are
// printed as "unlimited" and "unset".
void vr_option_print(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text);
// Appends the value in the form of PyTorch's snapshots.
void vr_option_record(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json);
// Sets the field to a snapshot's value (`value` is JSON). Text of another kind changes nothing.
void vr_option_recall(const struct vr_option_row *row, struct vr_options *options, const char *value);
// Prints the options like vr_options_print(), but only the rows that affect placement.
void vr_options_print_places(const struct vr_options *options, struct vr_text *text);

#endif
