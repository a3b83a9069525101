// Allocates, frees, and records the use of memory on other streams.
#include "native.h"

#include <algorithm>

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "../torch/inside.h"
#include "../torch/vram_torch.h"
#include "history.h"

namespace vram_native {

struct vram_allocator *made;

namespace {

constexpr size_t EXABYTE = size_t{1} << 60;
constexpr uint64_t BLOCK_ALIGNMENT = 512;
int devices;

// Reports to PyTorch's profiler that a block was allocated (bytes > 0) or freed.
void report_to_profiler(void *pointer, int64_t bytes, Device device) {
    struct vram_stats stats;
    if (vram_get_stats(made, static_cast<uint32_t>(device), &stats) != VRAM_OK) return;
    c10::reportMemoryUsageToProfiler(pointer, bytes, static_cast<size_t>(stats.allocated_bytes[VRAM_STAT_ALL].current),
                                     static_cast<size_t>(stats.reserved_bytes[VRAM_STAT_ALL].current),
                                     c10::Device(c10::DeviceType::CUDA, device));
}

bool profiled() { return c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != nullptr; }

// If a filter threw, the request fails with its exception, as in PyTorch, and the block is freed.
void throw_for_filter(vram_status status, uint64_t address) {
    if (thrown_by_filter == nullptr) return;
    if (status == VRAM_OK) check(vram_free(made, address), "free");
    std::rethrow_exception(std::exchange(thrown_by_filter, nullptr));
}

void *request(size_t size, Device device, cudaStream_t stream) {
    uint64_t address = 0;
    const vram_status status = vram_malloc(made, static_cast<uint32_t>(device), size, VRAM_STREAM(stream), &address);
    if (C10_UNLIKELY(filters_threw.load(std::memory_order_relaxed) != 0)) throw_for_filter(status, address);
    if (C10_UNLIKELY(status != VRAM_OK)) refuse_request(status);
    void *const pointer = pointer_to(address);
    if (const c10::impl::PyInterpreter *watcher = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(watcher != nullptr))
        (*watcher)->trace_gpu_memory_allocation(c10::kCUDA, address);
    if (C10_UNLIKELY(profiled())) report_to_profiler(pointer, static_cast<int64_t>(vram_allocated_size(made, address)), device);
    return pointer;
}

// Frees a block. An exception from a destructor would end the program, so a block that stays live because the driver refused a query is
// freed again.
void take_back(uint64_t address) {
    vram_status status = vram_free(made, address);
    if (C10_UNLIKELY(status == VRAM_DRIVER)) status = vram_free(made, address);
    check(status, "free");
}

void delete_profiled(uint64_t address) {
    struct vram_block_info block = {};
    const bool known = vram_get_block_info(made, address, &block) == VRAM_OK;
    take_back(address);
    if (known) report_to_profiler(pointer_to(address), -static_cast<int64_t>(block.size_bytes), static_cast<Device>(block.device));
}

// The deleter of every returned DataPtr. PyTorch recognizes its own blocks by it.
void delete_block(void *pointer) {
    if (pointer == nullptr) return;
    if (const c10::impl::PyInterpreter *watcher = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(watcher != nullptr))
        (*watcher)->trace_gpu_memory_deallocation(c10::kCUDA, address_of(pointer));
    if (C10_UNLIKELY(profiled())) return delete_profiled(address_of(pointer));
    take_back(address_of(pointer));
}

// Runs the callbacks that PyTorch's parts registered to free memory before a new allocation, such as tensors that other processes have
// released.
bool run_free_callbacks(uint32_t device, uint64_t size_bytes, void *user) {
    (void)device, (void)size_bytes, (void)user;
    bool freed = false;
    try {
        for (const auto &name : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
            freed = c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute() || freed;
    } catch (const std::exception &error) {
        TORCH_WARN("vram: a callback that frees memory failed: ", error.what());
    }
    return freed;
}

Device current_device() {
    Device device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return device;
}

} // namespace

int device_count() { return devices; }

void check_device(Device device) {
    TORCH_CHECK(device >= 0 && device < devices, "Invalid device argument ", static_cast<int>(device), ": did you call init?");
}

void Native::init(int device_count) {
    vram_allocator *allocator = nullptr;
    if (vr_torch_first_use(&allocator) != VRAM_OK) {
        char sentence[2048];
        (void)vram_torch_error(sentence, sizeof sentence);
        TORCH_CHECK(false, sentence);
    }
    if (made == nullptr) check(vram_add_free_callback(allocator, run_free_callbacks, nullptr), "adding a callback that frees memory");
    made = allocator;
    devices = std::max(devices, device_count);
    begin_listening();
}

bool Native::initialized() { return devices != 0; }

c10::DataPtr Native::allocate(size_t size) {
    TORCH_CHECK_WITH(OutOfMemoryError, size < EXABYTE, "CUDA out of memory. Tried to allocate more than 1EB memory.");
    const Device device = current_device();
    void *const pointer = size == 0 ? nullptr : request(size, device, c10::cuda::getCurrentCUDAStream(device).stream());
    return {pointer, pointer, &delete_block, c10::Device(c10::DeviceType::CUDA, device)};
}

c10::DeleterFnPtr Native::raw_deleter() const { return &delete_block; }

void Native::copy_data(void *to, const void *from, size_t size) const {
    C10_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice));
}

void *Native::raw_alloc(size_t size) {
    if (size == 0) return nullptr;
    const Device device = current_device();
    return request(size, device, c10::cuda::getCurrentCUDAStream(device).stream());
}

void *Native::raw_alloc_with_stream(size_t size, cudaStream_t stream) {
    return size == 0 ? nullptr : request(size, current_device(), stream);
}

void Native::raw_delete(void *pointer) { delete_block(pointer); }

c10::DataPtr Native::allocateWithAddress(size_t size, void *address) {
    TORCH_CHECK(address_of(address) % BLOCK_ALIGNMENT == 0, "mallocWithAddress: addr must be aligned to kMinBlockSize (512 bytes), got ",
                address);
    const Device device = current_device();
    const uint64_t stream = VRAM_STREAM(c10::cuda::getCurrentCUDAStream(device).stream());
    const vram_status status = vram_malloc_at(made, static_cast<uint32_t>(device), size, stream, address_of(address));
    TORCH_CHECK(status != VRAM_INVALID_ARGUMENT, "Could not allocate CUDA storage at exact address ", address);
    check(status, "allocation at an address");
    return {address, address, &delete_block, c10::Device(c10::DeviceType::CUDA, device)};
}

void Native::recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream) {
    // Ignores memory of other allocators and other processes.
    if (data.get() == nullptr || data.get_deleter() != &delete_block) return;
    check(vram_record_stream(made, address_of(data.get()), VRAM_STREAM(stream.stream())), "record_stream");
}

void *Native::getBaseAllocation(void *pointer, size_t *size) {
    struct vram_block_info block = {};
    TORCH_CHECK(vram_find_block(made, address_of(pointer), &block) == VRAM_OK, "invalid device pointer: ", pointer);
    if (size != nullptr) *size = block.segment_bytes;
    return pointer_to(block.segment_address);
}

} // namespace vram_native
