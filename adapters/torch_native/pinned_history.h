// pinned_history.h: the history of pinned host memory, which PyTorch 2.15 asks of a host allocator; older versions do not.
#ifndef VRAM_TORCH_NATIVE_PINNED_HISTORY_H
#define VRAM_TORCH_NATIVE_PINNED_HISTORY_H

#include <ATen/core/CachingHostAllocator.h>

#include "torch_versions.h"
#include "vram/events.h"

namespace vram_native {

// The type that a version's get_segments() returns; an empty list for versions without the function.
struct NoHostSegment {};
template <typename Base> struct HostSegmentsOf { using List = std::vector<NoHostSegment>; };
template <typename Base>
requires requires(Base &base) { base.get_segments(); }
struct HostSegmentsOf<Base> {
    using List = decltype(std::declval<Base &>().get_segments());
};
using HostSegments = HostSegmentsOf<at::HostAllocator>::List;

// Sets the stack of the calling thread's call for its events, during the object's life.
class PinnedCall {
  public:
    explicit PinnedCall(RecordContext level);
    ~PinnedCall();
    PinnedCall(const PinnedCall &) = delete;
    PinnedCall &operator=(const PinnedCall &) = delete;
};

void record_pinned_history(struct vram_host *host, bool enabled, MakeContext make, size_t most, RecordContext when, bool clear);
// Starts listening to an allocator that was created after the recording began.
void listen_to_pinned(struct vram_host *host);
bool pinned_history_is_enabled();
HostSegments pinned_segments(struct vram_host *host);
Trace pinned_traces();
// Record memory that the program pinned itself.
void note_registered(void *pointer, size_t size);
void note_unregistered(void *pointer);

} // namespace vram_native

#endif
