// torch_versions.h: the differences between the versions of PyTorch that this adapter is compiled for.
//
// Method signatures are not here: Native (native.h) has those of every version, and each version's class overrides the ones it knows. A
// missing method is a compile error, because the class declares the methods it needs as pure.
#ifndef VRAM_TORCH_NATIVE_TORCH_VERSIONS_H
#define VRAM_TORCH_NATIVE_TORCH_VERSIONS_H

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/version.h>

#include <type_traits>
#include <utility>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 6 || TORCH_VERSION_MINOR > 15
#error "this adapter knows PyTorch 2.6 to 2.15"
#endif
#define VRAM_TORCH_AT_LEAST(minor) (TORCH_VERSION_MINOR >= (minor))

// Until 2.12 a capture was whatever is routed to a pool; since then PyTorch reports captures (markCaptureBegin).
#define VRAM_TORCH_CAPTURES_ARE_MARKED VRAM_TORCH_AT_LEAST(13)
// at::setHostAllocator().
#define VRAM_TORCH_HAS_HOST_ALLOCATOR VRAM_TORCH_AT_LEAST(8)

namespace vram_native {

namespace torch_cuda = c10::cuda::CUDACachingAllocator;

using PoolId = c10::cuda::MempoolId_t;
using Snapshot = torch_cuda::SnapshotInfo;
using Segment = typename decltype(Snapshot::segments)::value_type;
using Block = typename decltype(Segment::blocks)::value_type;
using Trace = typename decltype(Snapshot::device_traces)::value_type;
using Entry = typename Trace::value_type;
using Annotation = typename decltype(Snapshot::external_annotations)::value_type;
using Stats = c10::CachingDeviceAllocator::DeviceStats;
using MakeContext = torch_cuda::CreateContextFn;
using RecordContext = torch_cuda::RecordContext;
using Context = std::shared_ptr<c10::GatheredContext>;
using RejectionObserver = std::function<void(int64_t, size_t, size_t, size_t)>; // of 2.12

// The facts of an event that fit into a version's TraceEntry.
struct EntryFacts {
    int action;
    c10::DeviceIndex device;
    size_t address, size;
    uint64_t stream;
    PoolId pool;
    Context context;
    const std::string *compile_context, *metadata;
};

template <typename Made> Made make_entry(EntryFacts &&facts) {
    const auto action = static_cast<typename Made::Action>(facts.action);
    using Stream = std::remove_reference_t<decltype(std::declval<Made>().stream_)>;
    const auto stream = reinterpret_cast<Stream>(facts.stream);
    const c10::approx_time_t now = c10::getApproximateTime();
    if constexpr (requires(Made entry) { entry.user_metadata_; })
        return Made(action, facts.device, facts.address, facts.size, stream, facts.pool, now, std::move(facts.context),
                    *facts.compile_context, *facts.metadata);
    else if constexpr (requires(Made entry) { entry.compile_context_; })
        return Made(action, facts.device, facts.address, facts.size, stream, facts.pool, now, std::move(facts.context),
                    *facts.compile_context);
    else
        return Made(action, facts.device, facts.address, facts.size, stream, now, std::move(facts.context));
}

// Returns the number of the action ANNOTATE; -1 in versions without it.
template <typename Made> constexpr int annotate_action() {
    if constexpr (requires { Made::ANNOTATE; })
        return static_cast<int>(Made::ANNOTATE);
    else
        return -1;
}

#if VRAM_TORCH_AT_LEAST(10)
using StreamSegment = torch_cuda::StreamSegmentSize;
#else
struct StreamSegment {
    StreamSegment(cudaStream_t, bool, size_t) {}
};
#endif

} // namespace vram_native

#endif
