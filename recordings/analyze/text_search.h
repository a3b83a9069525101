// text_search.h: finds the texts, stacks and allocations of a recording that match a user's search.
#ifndef VR_ANALYZE_TEXT_SEARCH_H
#define VR_ANALYZE_TEXT_SEARCH_H

#include <regex.h>

#include "analyze/lifetimes.h"
#include "base/base.h"

// ---- Matches a text against a user's search: literal words, or an extended regular expression.

// Longest part of a text that is looked at: an untrusted file may have names of megabytes.
enum { VR_FINDER_BYTES = 4096 };

// Use from one thread at a time. A zeroed struct may be released.
struct vr_finder {
    char *words; // lower case; NULL: use `expression`
    size_t length;
    regex_t expression;
    bool compiled;
};

// Initializes a search that ignores case. INVALID_ARGUMENT with a message if the text is empty or longer than 256 bytes, if an expression
// is invalid, or if its repetitions or back references could take too long; NO_HOST_MEMORY.
enum vram_status vr_finder_init(struct vr_finder *finder, const char *text, bool regex, struct vram_error *error);
void vr_finder_release(struct vr_finder *finder);
bool vr_finder_matches(const struct vr_finder *finder, const char *text);
// Finds the part of a match that names a group: the expression's first group, or the whole match without groups. Returns false if there is
// no match.
bool vr_finder_part(const struct vr_finder *finder, const char *text, size_t *start, size_t *length);

// ---- Finds stacks and allocations that match a text: by a frame, a file, an address, a name.

// Caches the answers by frame, stack and string. Use from one thread at a time.
struct vr_search {
    const struct vr_model *model; // borrowed
    struct vr_finder finder;
    bool has_address;
    uint64_t address; // value of the given hexadecimal digits
    unsigned digits;  // number of these digits
    int64_t version;  // 2 for a label "b7f03c0000000_2"; -1: any
    uint8_t *frame;   // by frame: 0: not determined, 1: no, 2: yes
    uint8_t *stack;   // by stack, as above
    uint8_t *string;  // by string, as above
};

// Initializes a search. Frames match by "file:line:function"; allocations also by category, metadata and compile context, and by address:
// with "0x...", "b..." or a complete label, or with at least 6 hexadecimal digits, those whose address begins with the digits or whose
// memory contains the address. INVALID_ARGUMENT as vr_finder_init(); NO_HOST_MEMORY. The model must outlive the search.
enum vram_status vr_search_init(struct vr_search *search, const struct vr_model *model, const char *text, bool regex,
                                struct vram_error *error);
void vr_search_release(struct vr_search *search);
bool vr_search_stack(struct vr_search *search, uint32_t stack);
// Sets the bits of matching rows in a bitmap of (rows + 7) / 8 zeroed bytes, and adds up the matches.
void vr_search_rows(struct vr_search *search, const struct vr_view *view, const struct vr_lifetimes *lifetimes, uint8_t *bits,
                    struct vram_report_sum *found);

#endif
