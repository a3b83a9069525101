// Calls the functions of PyTorch's allocator class that Python cannot reach: trackers, observers of rejections, filters that throw, peers,
// memory at an address. native_calls.py compiles it together with the adapter, with sanitizers, and runs it.
//
// native_calls(RELEASE, GIT, ABI) prints "ok"; it needs two devices. It is a library, so that its CUDA functions are resolved like PyTorch's.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <vector>

#include "../../adapters/torch_native/install.h"

namespace allocators = c10::cuda::CUDACachingAllocator;
using Allocator = allocators::CUDAAllocator;

#define EXPECT(truth)                                                                                                                      \
    do {                                                                                                                                   \
        if (!(truth)) fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #truth), exit(1);                                         \
    } while (0)

constexpr size_t MIB = size_t{1} << 20;

static size_t live_bytes(Allocator *allocator, int device) {
    return static_cast<size_t>(allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device)).allocated_bytes[0].current);
}

static void trackers(Allocator *allocator) {
    static std::map<int, int> seen;
    static bool throws;
    allocator->attachAllocatorTraceTracker([](const allocators::TraceEntry &entry) {
        seen[entry.action_]++;
        if (throws) throw std::runtime_error("a tracker that throws");
    });
    {
        const c10::DataPtr data = allocator->allocate(64 * MIB);
        EXPECT(seen[allocators::TraceEntry::ALLOC] == 1 &&
               seen[allocators::TraceEntry::SEGMENT_ALLOC] + seen[allocators::TraceEntry::SEGMENT_MAP] >= 1);
        throws = true;
        const c10::DataPtr more = allocator->allocate(64 * MIB);
        EXPECT(more.get() != nullptr && seen[allocators::TraceEntry::ALLOC] == 2);
        throws = false;
    }
    EXPECT(seen[allocators::TraceEntry::FREE_REQUESTED] == 2 && seen[allocators::TraceEntry::FREE_COMPLETED] == 2);
}

static void filter_that_throws(Allocator *allocator) {
    const size_t before = live_bytes(allocator, 0);
    allocator->beginAllocateToPool(0, {0, 77}, [](cudaStream_t) -> bool { throw std::runtime_error("a filter that throws"); });
    for (int i = 0; i < 3; i++) {
        bool thrown = false;
        try {
            const c10::DataPtr data = allocator->allocate(5 * MIB);
        } catch (const std::runtime_error &error) {
            thrown = std::string(error.what()) == "a filter that throws";
        }
        EXPECT(thrown && live_bytes(allocator, 0) == before);
    }
    allocator->endAllocateToPool(0, {0, 77});
    allocator->releasePool(0, {0, 77});
    const c10::DataPtr data = allocator->allocate(5 * MIB);
    EXPECT(data.get() != nullptr && live_bytes(allocator, 0) > before);
}

static void failures(Allocator *allocator) {
    static std::vector<size_t> heard;
    allocator->attachOutOfMemoryObserver([](int64_t, size_t asked, size_t, size_t) { heard.push_back(asked); });
    bool thrown = false;
    try {
        const c10::DataPtr data = allocator->allocate(size_t{1} << 42);
    } catch (const c10::OutOfMemoryError &) {
        thrown = true;
    }
    EXPECT(thrown && heard.size() == 1 && heard[0] >= size_t{1} << 42);
}

template <typename Class> void rejections(Class *allocator) {
    if constexpr (requires { allocator->attachOomRejectionObserver({}); }) {
        static std::vector<size_t> heard;
        allocator->attachOomRejectionObserver([](int64_t, size_t asked, size_t, size_t) { heard.push_back(asked); });
        bool thrown = false;
        try {
            const c10::DataPtr data = allocator->allocate(size_t{1} << 42);
        } catch (const c10::OutOfMemoryError &) {
            thrown = true;
        }
        const bool rejects = getenv("NATIVE_CALLS_REJECT") != nullptr;
        EXPECT(thrown && heard.size() == (rejects ? 1u : 0u));
    }
}

template <typename Class> void at_an_address(Class *allocator) {
    if constexpr (requires { allocator->allocateWithAddress(size_t{}, nullptr); }) {
        void *address = nullptr;
        {
            const c10::DataPtr data = allocator->allocate(30 * MIB);
            address = data.get();
        }
        const c10::DataPtr again = allocator->allocateWithAddress(30 * MIB, address);
        EXPECT(again.get() == address);
        bool thrown = false;
        try {
            const c10::DataPtr twice = allocator->allocateWithAddress(30 * MIB, address);
        } catch (const c10::Error &) {
            thrown = true;
        }
        EXPECT(thrown);
    }
}

static void peers(Allocator *allocator) {
    allocator->enablePeerAccess(0, 1);
    allocator->enablePeerAccess(0, 1);
    const c10::DataPtr from = allocator->allocate(MIB);
    const c10::cuda::CUDAGuard guard(1);
    const c10::DataPtr to = allocator->allocate(MIB);
    EXPECT(to.device().index() == 1 && from.device().index() == 0);
    // Copies no bytes: the simulated device's memory is populated by a signal, which the address sanitizer reports as an error.
    for (const bool peer : {false, true})
        EXPECT(allocator->memcpyAsync(to.get(), 1, from.get(), 0, 0, c10::cuda::getCurrentCUDAStream(1), peer) == cudaSuccess);
}

static void blocks(Allocator *allocator) {
    const c10::DataPtr data = allocator->allocate(3 * MIB);
    size_t size = 0;
    EXPECT(allocator->getBaseAllocation(data.get(), &size) <= data.get() && size >= 3 * MIB);
    int other = 0;
    bool thrown = false;
    try {
        (void)allocator->getBaseAllocation(&other, nullptr);
    } catch (const c10::Error &) {
        thrown = true;
    }
    EXPECT(thrown);
    allocator->recordStream(c10::DataPtr(&other, c10::Device(c10::DeviceType::CPU)), c10::cuda::getStreamFromPool(false, 0)); // another allocator's memory
    size_t largest = 0;
    allocator->cacheInfo(0, &largest);
    EXPECT(largest > 0);
    const auto snapshot = allocator->snapshot();
    EXPECT(!snapshot.segments.empty());
}

static void checkpoints(Allocator *allocator) {
    const c10::cuda::MempoolId_t id = {0, 78};
    allocator->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
    c10::DataPtr kept = allocator->allocate(4 * MIB);
    const auto state = allocator->getCheckpointState(0, id);
    c10::DataPtr later = allocator->allocate(4 * MIB);
    EXPECT(allocator->checkPoolLiveAllocations(0, id, {kept.get(), later.get()}));
    EXPECT(!allocator->checkPoolLiveAllocations(0, id, {kept.get()}));
    allocator->endAllocateToPool(0, id);
    later.release_context(); // as graph trees do: the pool's state decides
    const auto delta = allocator->setCheckpointPoolState(0, state);
    EXPECT(allocator->checkPoolLiveAllocations(0, id, {kept.get()}));
    EXPECT(delta.ptrs_freed.size() == 2 || delta.ptrs_freed.size() == 1);
    kept.release_context();
    allocator->releasePool(0, id);
}

extern "C" int native_calls(int argc, char **argv) {
    if (argc != 4) return 2;
    char text[512] = "";
    if (vram_native_install(argv[1], argv[2], atoi(argv[3]), text, sizeof text) != 0) return fprintf(stderr, "%s\n", text), 1;
    Allocator *allocator = allocators::get();
    allocator->init(2);
    trackers(allocator);
    filter_that_throws(allocator);
    at_an_address(allocator);
    peers(allocator);
    blocks(allocator);
    checkpoints(allocator);
    rejections(allocator);
    if (getenv("NATIVE_CALLS_REJECT") == nullptr) failures(allocator);
    allocator->emptyCache();
    puts("ok");
    return 0;
}
