// native.h: implements PyTorch's class of CUDA allocators with vram's C interface. One object replaces PyTorch's own.
//
// Methods are grouped by their file. All versions' signatures are listed: `override` is omitted if some version has a different one, and a
// method that a version does not know is never called.
#ifndef VRAM_TORCH_NATIVE_NATIVE_H
#define VRAM_TORCH_NATIVE_NATIVE_H

#include "torch_versions.h"

#include <atomic>
#include <exception>
#include <string>
#include <unordered_set>
#include <vector>

#include "vram/vram.h"

namespace vram_native {

using Device = c10::DeviceIndex;

class Native final : public torch_cuda::CUDAAllocator {
  public:
    // allocation.cpp
    c10::DataPtr allocate(size_t size) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *to, const void *from, size_t size) const override;
    void *raw_alloc(size_t size) override;
    void *raw_alloc_with_stream(size_t size, cudaStream_t stream) override;
    void raw_delete(void *pointer) override;
    c10::DataPtr allocateWithAddress(size_t size, void *address);
    void recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream) override;
    void *getBaseAllocation(void *pointer, size_t *size) override;
    void init(int device_count) override;
    bool initialized() override;

    // settings.cpp
    std::string name() override;
    double getMemoryFraction(Device device) override;
    void setMemoryFraction(double fraction, Device device) override;
    void enable(bool value) override;
    bool isEnabled() const override;
    void emptyCache();            // 2.6
    void emptyCache(PoolId pool); // 2.7
    void cacheInfo(Device device, size_t *largest) override;
    std::vector<StreamSegment> getExpandableSegmentSizes(Device device); // 2.10

    // statistics.cpp
    Stats getDeviceStats(Device device) override;
    void resetAccumulatedStats(Device device) override;
    void resetPeakStats(Device device) override;

    // failures.cpp
    void attachOutOfMemoryObserver(torch_cuda::OutOfMemoryObserver observer) override;
    void attachOomRejectionObserver(RejectionObserver observer); // 2.12

    // pools.cpp
    void beginAllocateToPool(Device device, PoolId id, std::function<bool(cudaStream_t)> filter) override;
    void endAllocateToPool(Device device, PoolId id) override;
    void releasePool(Device device, PoolId id) override;
    int getPoolUseCount(Device device, PoolId id) override;
    void ensureExistsAndIncrefPool(Device device, PoolId id);                                          // 2.6
    void createOrIncrefPool(Device device, PoolId id, torch_cuda::CUDAAllocator *own = nullptr);       // 2.7
    void createOrIncrefPool(Device device, PoolId id, std::shared_ptr<torch_cuda::CUDAAllocator> own); // 2.12
    void setUseOnOOM(Device device, PoolId id);                                                        // 2.8
    void setUseOnOOM(Device device, PoolId id, bool use);                                              // 2.12
    void setNoSplit(Device device, PoolId id);                                                         // 2.10
    void markCaptureBegin(Device device);                                                              // 2.13
    void markCaptureEnd(Device device);
    bool checkPoolLiveAllocations(Device device, PoolId id, const std::unordered_set<void *> &expected) override;
    std::shared_ptr<torch_cuda::AllocatorState> getCheckpointState(Device device, PoolId id) override;
    torch_cuda::CheckpointDelta setCheckpointPoolState(Device device, std::shared_ptr<torch_cuda::AllocatorState> state) override;

    // sharing.cpp
    torch_cuda::ShareableHandle shareIpcHandle(void *pointer) override;
    std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
    void enablePeerAccess(Device device, Device peer) override;
    cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream,
                            bool peers) override;

    // history.cpp
    bool isHistoryEnabled() override;
    void recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when);             // 2.6
    void recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when, bool clear); // 2.7
    void recordHistory(bool enabled, MakeContext make, size_t most, RecordContext when, bool clear,
                       const std::vector<std::string> &skip_actions); // 2.12
    void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &words) override;
    void attachAllocatorTraceTracker(torch_cuda::AllocatorTraceTracker tracker) override;
    void pushCompileContext(std::string &name); // 2.7
    void popCompileContext();
    bool supportsUserMetadata();                       // 2.14
    void setUserMetadata(const std::string &metadata); // 2.10
    std::string getUserMetadata();
    void annotateMemory(const void *pointer, const std::string &metadata); // 2.14
    Context getContextForPointer(const void *pointer);                     // 2.12

    // snapshot.cpp
    Snapshot snapshot();                       // 2.6
    Snapshot snapshot(PoolId id);              // 2.7
    Snapshot snapshot(PoolId id, bool traces); // 2.12
};

// The process's allocator. NULL until init(), before which it is not used.
extern struct vram_allocator *made;
// Returns the number of devices passed to init().
int device_count();
// settings.cpp: returns the option string in force.
std::string configuration();
// Throws PyTorch's error for a device that init() did not get.
void check_device(Device device);

// failures.cpp: throws the exception that PyTorch's own allocator would throw for the failure.
[[noreturn]] void refuse(vram_status status, const char *what);
inline void check(vram_status status, const char *what) {
    if (C10_UNLIKELY(status != VRAM_OK)) refuse(status, what);
}
// Calls the observers and throws torch.OutOfMemoryError, or the exception of another failure of a request.
[[noreturn]] void refuse_request(vram_status status);

// pools.cpp: how often the filter of a route threw, and its exception in the calling thread's request.
extern std::atomic<uint32_t> filters_threw;
extern thread_local std::exception_ptr thrown_by_filter;

inline uint64_t address_of(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }
inline void *pointer_to(uint64_t address) { return reinterpret_cast<void *>(address); }
inline struct vram_pool_id id_of(PoolId id) { return {static_cast<uint64_t>(id.first), static_cast<uint64_t>(id.second)}; }
inline PoolId id_of(struct vram_pool_id id) { return {id.first, id.second}; }

} // namespace vram_native

#endif
