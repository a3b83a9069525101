// Turns failures into PyTorch's exceptions, with vram's report.
#include "native.h"

#include <c10/util/Exception.h>

#include <mutex>

#include "../torch/inside.h"

namespace vram_native {

namespace {

std::mutex observers_mutex; // guards both lists
std::vector<torch_cuda::OutOfMemoryObserver> observers;
std::vector<RejectionObserver> rejection_observers;

// Calls the observers without the lock, because an observer may wait for Python's.
void notify_observers(const struct vram_oom &oom) {
    std::unique_lock<std::mutex> lock(observers_mutex);
    const auto of_failures = observers;
    const auto of_rejections = rejection_observers;
    lock.unlock();
    const auto device = static_cast<int64_t>(oom.device);
    const uint64_t most = oom.limit_bytes == UINT64_MAX ? oom.device_total_bytes : oom.limit_bytes;
    if (oom.rejected) {
        for (const auto &observer : of_rejections) observer(device, oom.segment_bytes, oom.reserved_bytes, oom.device_total_bytes);
        return;
    }
    for (const auto &observer : of_failures) observer(device, oom.segment_bytes, most, oom.device_free_bytes);
}

} // namespace

void refuse(vram_status status, const char *what) { TORCH_CHECK(false, "vram: ", what, ": ", vram_status_text(status)); }

void refuse_request(vram_status status) {
    struct vram_oom oom;
    if ((status != VRAM_OUT_OF_MEMORY && status != VRAM_REJECTED) || !vram_last_oom(&oom)) refuse(status, "allocation");
    c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(oom.requested_bytes), oom.allocated_bytes, oom.reserved_bytes,
                                     c10::Device(c10::DeviceType::CUDA, static_cast<Device>(oom.device)));
    notify_observers(oom);
    char message[2 * 2048];
    vr_torch_oom_message(&oom, message, sizeof message);
    TORCH_CHECK_WITH(OutOfMemoryError, false, message);
}

void Native::attachOutOfMemoryObserver(torch_cuda::OutOfMemoryObserver observer) {
    const std::lock_guard<std::mutex> lock(observers_mutex);
    observers.push_back(std::move(observer));
}

void Native::attachOomRejectionObserver(RejectionObserver observer) {
    const std::lock_guard<std::mutex> lock(observers_mutex);
    rejection_observers.push_back(std::move(observer));
}

} // namespace vram_native
