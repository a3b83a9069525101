// vram/plug.hpp: shared by the plugs for C++ libraries: one allocator per process, with results as pointers and exceptions.
//
// Every plug takes its memory from vram::process_allocator(), so libraries used together share one cache. C++17.
#ifndef VRAM_PLUG_HPP
#define VRAM_PLUG_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>

#include "vram/allocator.h"

namespace vram {

// Returns the process's allocator, made at the first call with the options of the environment (VRAM_ALLOC_CONF). It is never destroyed,
// because libraries free memory after main(). Throws std::runtime_error if there is no driver or the options are invalid. Any thread.
inline vram_allocator *process_allocator() {
    static vram_allocator *const one = [] {
        vram_allocator *made = nullptr;
        vram_error error{};
        if (vram_create(nullptr, &made, &error) != VRAM_OK) throw std::runtime_error(error.message);
        return made;
    }();
    return one;
}

// Converts a stream handle to the allocator's number: 1 (cudaStreamLegacy) becomes 0.
inline std::uint64_t stream_number(const void *handle) noexcept {
    const std::uint64_t number = VRAM_STREAM(handle);
    return number == 1 ? 0 : number;
}
// The per-thread default stream differs from thread to thread. Memory for it belongs to the legacy default stream, with which it is
// ordered, and the caller waits for it before freeing memory.
inline bool is_per_thread(const void *handle) noexcept { return VRAM_STREAM(handle) == 2; }

// Allocates bytes of `device` for use on `stream`; returns nullptr for 0 bytes. Throws std::bad_alloc if memory runs out (vram_last_oom()
// has the report) or if `alignment` exceeds the 512 of all blocks, std::runtime_error otherwise.
inline void *take(std::uint32_t device, std::size_t bytes, std::size_t alignment, const void *stream) {
    std::uint64_t address = 0;
    if (alignment > 512) throw std::bad_alloc();
    const std::uint64_t of = is_per_thread(stream) ? 0 : stream_number(stream);
    const vram_status status = vram_malloc(process_allocator(), device, bytes, of, &address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED || status == VRAM_NO_HOST_MEMORY) throw std::bad_alloc();
    if (status != VRAM_OK) throw std::runtime_error(vram_status_text(status));
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(address));
}

// Frees a block; work queued by now on `stream` and on its own stream may still use it. Returns false, leaving the block live, if the
// pointer is not a block or the driver cannot track the stream. nullptr is ignored.
inline bool give(void *pointer, const void *stream) noexcept {
    const std::uint64_t address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
    if (address == 0) return true;
    const std::uint64_t of = is_per_thread(stream) ? 0 : stream_number(stream);
    vram_allocator *const allocator = process_allocator();
    return vram_record_stream(allocator, address, of) == VRAM_OK && vram_free(allocator, address) == VRAM_OK;
}

// Discards a failure that a library's interface cannot report.
inline void untold(vram_status) noexcept {}

} // namespace vram
#endif
