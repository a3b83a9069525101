// text_search.h: which texts, stacks and allocations of a recording match what a user looks for.
#ifndef VR_ANALYZE_TEXT_SEARCH_H
#define VR_ANALYZE_TEXT_SEARCH_H

#include <regex.h>

#include "analyze/lifetimes.h"
#include "base/base.h"

// ---- Whether a text of the recording contains what a user looks for: literal words, or an extended regular expression.

// Texts are looked at up to here: a stranger's file may hold names of megabytes.
enum { VR_FINDER_BYTES = 4096 };

// One thread at a time. A zeroed one may be released.
struct vr_finder {
    char *words; // lower case; NULL: `expression` counts
    size_t length;
    regex_t expression;
    bool compiled;
};

// Upper and lower case are the same. INVALID_ARGUMENT with a sentence for text that is empty or longer than 256 bytes, for an expression
// that is invalid, and for one whose repetitions or back references could cost more than the text it is asked about; NO_HOST_MEMORY.
enum vram_status vr_finder_init(struct vr_finder *finder, const char *text, bool regex, struct vram_error *error);
void vr_finder_release(struct vr_finder *finder);
bool vr_finder_matches(const struct vr_finder *finder, const char *text);
// The part that a match of an expression is named by: its first group, or all of it without groups. False where nothing matches.
bool vr_finder_part(const struct vr_finder *finder, const char *text, size_t *start, size_t *length);

// ---- Which stacks and allocations of a recording have to do with a text: a frame, a file, an address, a name.

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
// or a whole label, or with at least 6 hexadecimal digits: those whose address begins with the digits, or that hold the byte
// there. INVALID_ARGUMENT as vr_finder_init(); NO_HOST_MEMORY. The model must outlive the search.
enum vram_status vr_search_init(struct vr_search *search, const struct vr_model *model, const char *text, bool regex,
                                struct vram_error *error);
void vr_search_release(struct vr_search *search);
bool vr_search_stack(struct vr_search *search, uint32_t stack);
// Marks rows in a bitmap of (rows + 7) / 8 zeroed bytes, and adds up what was found.
void vr_search_rows(struct vr_search *search, const struct vr_view *view, const struct vr_lifetimes *lifetimes, uint8_t *bits,
                    struct vram_report_sum *found);

#endif
