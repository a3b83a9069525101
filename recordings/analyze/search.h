// search.h: which stacks and allocations of a recording have to do with a text: a frame, a file, an address, a name.
#ifndef VR_ANALYZE_SEARCH_H
#define VR_ANALYZE_SEARCH_H

#include "analyze/finder.h"
#include "analyze/lifetimes.h"

// An answer per frame, stack and string is kept once it is known. One thread at a time.
struct vr_search {
    const struct vr_model *model; // borrowed
    struct vr_finder finder;
    bool has_address;
    uint64_t address; // the hexadecimal digits that were given
    unsigned digits;  // how many
    int64_t version;  // of a label "b7f03c0000000_2": 2; -1: any
    uint8_t *frame;   // by frame: 0 not looked at, 1 no, 2 yes
    uint8_t *stack;   // by stack, the same
    uint8_t *string;  // by string, the same
};

// Frames match by "file:line:function", allocations also by category, metadata and compile context, and by address: with "0x...", "b..."
// or a label as it stands, or with at least 6 hexadecimal digits: those whose address begins with the digits, or that hold the byte
// there. INVALID_ARGUMENT as vr_finder_init(); NO_HOST_MEMORY. The model must outlive the search.
enum vram_status vr_search_init(struct vr_search *search, const struct vr_model *model, const char *text, bool regex,
                                struct vram_error *error);
void vr_search_release(struct vr_search *search);
bool vr_search_frame(struct vr_search *search, uint32_t frame);
bool vr_search_stack(struct vr_search *search, uint32_t stack);
// A string of the model; never string 0.
bool vr_search_string(struct vr_search *search, uint32_t id);
// Marks rows in a bitmap of (rows + 7) / 8 zeroed bytes, and adds up what was found.
void vr_search_rows(struct vr_search *search, const struct vr_view *view, const struct vr_lifetimes *lifetimes, uint8_t *bits,
                    struct vram_report_sum *found);

#endif
