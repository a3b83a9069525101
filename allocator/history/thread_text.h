// thread_text.h: what a thread says about what it does: its metadata, its innermost tag and compile context, as numbers.
//
// The texts are in one table of the process, which only grows, so that a number means the same to every allocator and thread.
#ifndef VR_HISTORY_THREAD_TEXT_H
#define VR_HISTORY_THREAD_TEXT_H

#include "base/text.h"

enum { VR_THREAD_TEXT_DEPTH = 32, VR_THREAD_TEXT_MOST = 1 << 20, VR_THREAD_TEXT_MOST_BYTES = 1 << 26 };

// Names that enclose one another; only the innermost stands in events.
struct vr_thread_text_stack {
    uint32_t word[VR_THREAD_TEXT_DEPTH];
    uint32_t depth;
};

// What goes into each event. Numbers of texts; 0: none.
struct vr_event_origin {
    uint32_t thread; // the system's number; 0: not asked yet
    uint32_t context;
    uint32_t metadata;
    uint32_t tag;
};

// Of one thread.
struct vr_thread_text {
    struct vr_event_origin origin; // the innermost of `tags` and `contexts`
    struct vr_thread_text_stack tags;
    struct vr_thread_text_stack contexts;
};
extern _Thread_local struct vr_thread_text vr_thread_text;

// The number of a text (NULL is ""). INVALID_ARGUMENT when it is not UTF-8, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_thread_text_number(const char *text, uint32_t *word);
// Appends the text. Any thread.
void vr_thread_text_append(uint32_t word, struct vr_text *text);

#endif
