// oom_sentence.h: an out-of-memory event's cause in words.
#ifndef VR_PRESENT_OOM_SENTENCE_H
#define VR_PRESENT_OOM_SENTENCE_H

#include "analyze/arena.h"
#include "vram/report.h"

// Sets text and advice of the device's out-of-memory events, whose facts are found; the arena is that of the facts. NO_HOST_MEMORY.
enum vram_status vr_oom_sentences(struct vr_arena *arena, const struct vram_report_device *device);

#endif
