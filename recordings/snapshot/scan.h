// scan.h: reads JSON of which little is needed, in one pass and without building a tree: the caller reads or skips members and items.
#ifndef VR_SNAPSHOT_SCAN_H
#define VR_SNAPSHOT_SCAN_H

#include "snapshot/literals.h"
#include "snapshot/input.h"

struct vr_scan {
    struct vr_input *input;   // borrowed
    struct vram_error *error; // borrowed
    char *scratch;            // a string after decoding its escapes
    size_t scratch_capacity;
};

// A string or a number. A string's text is decoded, not NUL-terminated, and valid until the next call.
struct vr_scan_value {
    enum { VR_SCAN_STRING, VR_SCAN_NUMBER, VR_SCAN_OTHER } kind; // OTHER: skipped
    const char *text;
    size_t length;
    struct vr_numeral number;
};

void vr_scan_release(struct vr_scan *scan);
// vr_scan_open() consumes `open` ('{' or '['); then vr_scan_member() or vr_scan_item() sets *more to whether another member or item
// follows, and consumes the closing byte at the end. *first must be true before the first call. vr_scan_member() also reads the key, cut to
// fit. BAD_INPUT, IO, NO_HOST_MEMORY.
enum vram_status vr_scan_open(struct vr_scan *scan, char open);
enum vram_status vr_scan_member(struct vr_scan *scan, bool *first, char *key, size_t capacity, bool *more);
enum vram_status vr_scan_item(struct vr_scan *scan, bool *first, bool *more);
// Sets *byte to the first byte of the next value, or to 0 at the end. Consumes only white space.
enum vram_status vr_scan_peek(struct vr_scan *scan, int *byte);
// Reads the next value; skips it unless it is a string or a number. LIMIT if it is nested too deep.
enum vram_status vr_scan_value(struct vr_scan *scan, struct vr_scan_value *value);
enum vram_status vr_scan_skip(struct vr_scan *scan);
enum vram_status vr_scan_refuse(struct vr_scan *scan, const char *wanted);

#endif
