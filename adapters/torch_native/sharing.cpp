// Shares memory with other processes and devices.
#include "native.h"

#include <cuda_runtime_api.h>

namespace vram_native {

// Returns a handle of the block itself, not of its segment, so its offset is 0.
torch_cuda::ShareableHandle Native::shareIpcHandle(void *pointer) {
    size_t size = 0;
    TORCH_CHECK(vram_export_size(made, address_of(pointer), &size) == VRAM_OK, "invalid device pointer: ", pointer);
    std::string handle(size, '\0');
    struct vram_error error = {};
    const vram_status status = vram_export(made, address_of(pointer), handle.data(), handle.size(), &size, &error);
    TORCH_CHECK(status == VRAM_OK, "vram: ", error.message[0] != '\0' ? error.message : vram_status_text(status));
    handle.resize(size);
    return {0, std::move(handle)};
}

// Imports memory. Every call takes a reference; memory that is already imported keeps its address.
std::shared_ptr<void> Native::getIpcDevPtr(std::string handle) {
    struct vram_imported imported = {};
    struct vram_error error = {};
    const vram_status status = vram_import(made, handle.data(), handle.size(), &imported, &error);
    TORCH_CHECK(status == VRAM_OK, "vram: ", error.message[0] != '\0' ? error.message : vram_status_text(status));
    // If the driver refuses the release, the library retries it.
    return {pointer_to(imported.address), [](void *pointer) { (void)!vram_import_release(made, address_of(pointer)); }};
}

void Native::enablePeerAccess(Device device, Device peer) {
    struct vram_error error = {};
    const vram_status status = vram_peer_enable(made, static_cast<uint32_t>(device), static_cast<uint32_t>(peer), &error);
    TORCH_CHECK(status == VRAM_OK, "vram: ", error.message[0] != '\0' ? error.message : vram_status_text(status));
}

// Copies between devices. The runtime's copy between devices without peer access does not support mapped pages; cudaMemcpyPeerAsync handles
// all memory.
cudaError_t Native::memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream, bool peers) {
    bool mapped = false;
    for (const int device : {to_device, from_device}) {
        size_t count = 0;
        if (!peers && to_device != from_device)
            check(vram_expandable_segments(made, static_cast<uint32_t>(device), nullptr, 0, &count), "segments");
        mapped = mapped || count != 0;
    }
    if (mapped) return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, stream);
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

} // namespace vram_native
