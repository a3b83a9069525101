// input.h: the bytes of a recording: all of them in memory, or read piece by piece into a buffer.
#ifndef VR_SNAPSHOT_INPUT_H
#define VR_SNAPSHOT_INPUT_H

#include "model/builder.h"
#include "vram/recording.h"

// ---- The bytes of a recording: all of them in memory, or read piece by piece into a buffer.

struct vr_input {
    const unsigned char *next;  // first byte not yet used
    const unsigned char *end;   // one past the last byte at hand
    const unsigned char *start; // first byte at hand
    uint64_t start_offset;      // where in the input *start is
    unsigned char *buffer;      // NULL for a input on memory
    size_t capacity;
    struct vram_input from;
    bool ended;
    struct vr_budget *budget; // its limit rises with every byte that comes in; may be NULL
};

// How much the tables may grow: this many bytes, and so many per byte of input. No valid file needs more: the rows that are large for their
// bytes are an annotation in a pickle (16 bytes: two keys, a name of three letters, a place in the memo for both; at most 15.7 bytes for
// each while tables double, 11.3 where they grow by an eighth), an event of two keys (11 bytes; 10.6) and a frame of its own (22; 8.7).
#define VR_BUDGET_BASE (4 * VR_MIB)
enum { VR_BUDGET_FACTOR = 16 };

// A input on bytes that stay where they are.
void vr_input_on_memory(struct vr_input *input, const void *data, size_t size);
// A input that reads; `from` is copied, what it points to is borrowed. NO_HOST_MEMORY.
enum vram_status vr_input_on_input(struct vr_input *input, const struct vram_input *from);
// From now on what comes in (and what has come in) widens *budget. NULL for none.
void vr_input_set_budget(struct vr_input *input, struct vr_budget *budget);
void vr_input_release(struct vr_input *input);

// What is said to be the length of the whole input, in lengths of what is used of it: struct vr_budget's `ahead`.
double vr_input_ahead(const struct vr_input *input);

// Tries to have `wanted` bytes at hand from input->next on; at the end of the from there are fewer. What is at hand may move; the
// bytes from next on stay. The buffer grows only as bytes come in, whatever `wanted` says. IO, NO_HOST_MEMORY.
enum vram_status vr_input_fill(struct vr_input *input, uint64_t wanted);

VR_INLINE size_t vr_input_at_hand(const struct vr_input *input) { return (size_t)(input->end - input->next); }
// Where in the input input->next is.
VR_INLINE uint64_t vr_input_offset(const struct vr_input *input) { return input->start_offset + (uint64_t)(input->next - input->start); }

// ---- The pickle inside an HTML page, as torch.cuda._memory_viz makes them.

// The base64 text of a page, decoded as it is read. Lives where the input made of it is used.
struct vr_html {
    struct vr_input *page;
    bool damaged; // read() failed at a byte that is not base64
    bool ended;
    unsigned char group[3]; // decoded and not yet delivered, where the reader's buffer was full
    size_t group_next, group_end;
};

// Finds the first `"base64": "..."` of the page and makes *input the bytes in it. BAD_INPUT if the page has no such text; IO,
// NO_HOST_MEMORY.
enum vram_status vr_html_open(struct vr_html *html, struct vr_input *page, const char *name, struct vram_input *input,
                              struct vram_error *error);

#endif
