// pinned_history.h: the history of pinned host memory, as PyTorch 2.15 asks a host allocator for it; older versions have none.
#ifndef VRAM_TORCH_NATIVE_PINNED_HISTORY_H
#define VRAM_TORCH_NATIVE_PINNED_HISTORY_H

#include <ATen/core/CachingHostAllocator.h>

#include "torch_versions.h"
#include "vram/events.h"

namespace vram_native {

// What a version's get_segments() answers with; for versions without an empty list of nothing.
struct NoHostSegment {};
template <typename Base> struct HostSegmentsOf { using List = std::vector<NoHostSegment>; };
template <typename Base>
requires requires(Base &base) { base.get_segments(); }
struct HostSegmentsOf<Base> {
    using List = decltype(std::declval<Base &>().get_segments());
};
using HostSegments = HostSegmentsOf<at::HostAllocator>::List;

// The stack of the calling thread's call, while one lives: events take it.
class PinnedCall {
  public:
    explicit PinnedCall(RecordContext level);
    ~PinnedCall();
    PinnedCall(const PinnedCall &) = delete;
    PinnedCall &operator=(const PinnedCall &) = delete;
};

void record_pinned_history(struct vram_host *host, bool enabled, MakeContext make, size_t most, RecordContext when, bool clear);
// An allocator that is made after the recording began.
void listen_to_pinned(struct vram_host *host);
bool pinned_history_is_enabled();
HostSegments pinned_segments(struct vram_host *host);
Trace pinned_traces();
// Memory that the program pinned by itself.
void note_registered(void *pointer, size_t size);
void note_unregistered(void *pointer);

} // namespace vram_native

#endif
