// history.h: what the adapter's other files need of its history.
#ifndef VRAM_TORCH_NATIVE_HISTORY_H
#define VRAM_TORCH_NATIVE_HISTORY_H

#include "native.h"

namespace vram_native {

// Once the allocator is there: what was asked for before then begins.
void begin_listening();
// The events of a device, oldest first, and all annotations.
Trace events_of(Device device);
std::vector<Annotation> annotations();
// Puts the event of a snapshot into the device's history.
void note_snapshot(Device device, size_t active_bytes, PoolId id);
// The stack behind a `void *` of vram's (vram/events.h), which may be NULL.
Context context_of(void *held);

} // namespace vram_native

#endif
