// thread_text.h: the texts of each thread: its metadata, innermost tag and innermost compile context, as numbers.
//
// One table of the process holds the texts and only grows, so a number means the same to every allocator and thread.
#ifndef VR_HISTORY_THREAD_TEXT_H
#define VR_HISTORY_THREAD_TEXT_H

#include "base/text.h"

enum { VR_THREAD_TEXT_DEPTH = 32, VR_THREAD_TEXT_MOST = 1 << 20, VR_THREAD_TEXT_MOST_BYTES = 1 << 26 };

// Nested names; only the innermost appears in events.
struct vr_thread_text_stack {
    uint32_t word[VR_THREAD_TEXT_DEPTH];
    uint32_t depth;
};

// The words of each event. Numbers of texts; 0: no text.
struct vr_event_origin {
    uint32_t thread; // the system's thread id; 0: not queried yet
    uint32_t context;
    uint32_t metadata;
    uint32_t tag;
};

// The words of one thread.
struct vr_thread_text {
    struct vr_event_origin origin; // with the innermost of `tags` and `contexts`
    struct vr_thread_text_stack tags;
    struct vr_thread_text_stack contexts;
};
extern _Thread_local struct vr_thread_text vr_thread_text;

// Gets the number of a text (NULL is ""). INVALID_ARGUMENT if it is not UTF-8, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_thread_text_number(const char *text, uint32_t *word);
// Appends the text. Any thread.
void vr_thread_text_append(uint32_t word, struct vr_text *text);

#endif
