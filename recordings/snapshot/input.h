// input.h: the bytes of a recording, either all in memory or read into a buffer piece by piece.
#ifndef VR_SNAPSHOT_INPUT_H
#define VR_SNAPSHOT_INPUT_H

#include "model/builder.h"
#include "vram/recording.h"

// ---- The bytes of a recording, either all in memory or read into a buffer piece by piece.

struct vr_input {
    const unsigned char *next;  // first unread byte
    const unsigned char *end;   // one past the last byte in memory
    const unsigned char *start; // first byte in memory
    uint64_t start_offset;      // offset of *start in the input
    unsigned char *buffer;      // NULL for an input in memory
    size_t capacity;
    struct vram_input from;
    bool ended;
    struct vr_budget *budget; // its limit rises with every byte read; may be NULL
};

// The limit of the tables' memory: this base, plus a factor for each byte of input. No valid file needs more. The rows that are largest
// for their bytes are an annotation in a pickle (16 bytes: two keys, a three-letter name, and a memo slot for both; at most 15.7 bytes per
// byte while tables double, 11.3 while they grow by an eighth), an event of two keys (11 bytes; 10.6) and a frame of its own (22 bytes;
// 8.7).
#define VR_BUDGET_BASE (4 * VR_MIB)
enum { VR_BUDGET_FACTOR = 16 };

// Makes an input of bytes in memory, which must not move.
void vr_input_on_memory(struct vr_input *input, const void *data, size_t size);
// Makes an input that reads from `from`, which is copied; what it points to is borrowed. NO_HOST_MEMORY.
enum vram_status vr_input_on_input(struct vr_input *input, const struct vram_input *from);
// Makes the bytes of the input, including those already read, raise *budget's limit. NULL: no budget.
void vr_input_set_budget(struct vr_input *input, struct vr_budget *budget);
void vr_input_release(struct vr_input *input);

// Returns the `ahead` of struct vr_budget: the stated length of the whole input in multiples of what has been used.
double vr_input_ahead(const struct vr_input *input);

// Tries to have `wanted` unread bytes in memory; there are fewer only at the end of the input. May move the buffer; the unread bytes stay
// the same. The buffer grows only as bytes come in, whatever `wanted` is. IO, NO_HOST_MEMORY.
enum vram_status vr_input_fill(struct vr_input *input, uint64_t wanted);

VR_INLINE size_t vr_input_at_hand(const struct vr_input *input) { return (size_t)(input->end - input->next); }
// Returns the offset of input->next in the input.
VR_INLINE uint64_t vr_input_offset(const struct vr_input *input) { return input->start_offset + (uint64_t)(input->next - input->start); }

// ---- The pickle inside an HTML page made by torch.cuda._memory_viz.

// Decodes a page's base64 text as it is read. Must outlive the input made of it.
struct vr_html {
    struct vr_input *page;
    bool damaged; // read() failed at a byte that is not base64
    bool ended;
    unsigned char group[3]; // decoded bytes that did not fit into the reader's buffer
    size_t group_next, group_end;
};

// Finds the page's first `"base64": "..."` and sets *input to read its decoded bytes. BAD_INPUT if the page has no such text; IO,
// NO_HOST_MEMORY.
enum vram_status vr_html_open(struct vr_html *html, struct vr_input *page, const char *name, struct vram_input *input,
                              struct vram_error *error);

#endif
