// scan.h: reads JSON of which most is not wanted, in one pass and without building it: members and items are asked for, or skipped.
#ifndef VR_SNAPSHOT_SCAN_H
#define VR_SNAPSHOT_SCAN_H

#include "snapshot/literals.h"
#include "snapshot/input.h"

struct vr_scan {
    struct vr_input *input;   // borrowed
    struct vram_error *error; // borrowed
    char *scratch;            // a string with escapes, decoded
    size_t scratch_capacity;
};

// A string or a number as found. A string's text is decoded, not NUL-terminated and valid until the next call.
struct vr_scan_value {
    enum { VR_SCAN_STRING, VR_SCAN_NUMBER, VR_SCAN_OTHER } kind; // OTHER: skipped
    const char *text;
    size_t length;
    struct vr_numeral number;
};

void vr_scan_release(struct vr_scan *scan);
// After `open` ('{' or '[') was taken with vr_scan_open(): whether another member or item follows. The closing byte is taken.
// *first is true before the first. Of members, the key is read too and cut to fit. BAD_INPUT, IO, NO_HOST_MEMORY.
enum vram_status vr_scan_open(struct vr_scan *scan, char open);
enum vram_status vr_scan_member(struct vr_scan *scan, bool *first, char *key, size_t capacity, bool *more);
enum vram_status vr_scan_item(struct vr_scan *scan, bool *first, bool *more);
// The byte that the next value begins with, 0 at the end. Takes nothing but white space.
enum vram_status vr_scan_peek(struct vr_scan *scan, int *byte);
// The next value; what is neither a string nor a number is skipped whole. LIMIT for nesting too deep.
enum vram_status vr_scan_value(struct vr_scan *scan, struct vr_scan_value *value);
enum vram_status vr_scan_skip(struct vr_scan *scan);
enum vram_status vr_scan_refuse(struct vr_scan *scan, const char *wanted);

#endif
