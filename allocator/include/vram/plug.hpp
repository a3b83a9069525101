// vram/plug.hpp: what the plugs for libraries of C++ share: one allocator for the whole process, its answers as pointers and exceptions.
//
// Every plug takes its memory from vram::process_allocator(), so that libraries that are used side by side have one cache. C++17.
#ifndef VRAM_PLUG_HPP
#define VRAM_PLUG_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>

#include "vram/allocator.h"

namespace vram {

// The allocator of the process, made at the first call with the options of the environment (VRAM_ALLOC_CONF). It is never destroyed:
// libraries give memory back after main(). std::runtime_error where there is no driver, or the options are wrong. Any thread.
inline vram_allocator *process_allocator() {
    static vram_allocator *const one = [] {
        vram_allocator *made = nullptr;
        vram_error error{};
        if (vram_create(nullptr, &made, &error) != VRAM_OK) throw std::runtime_error(error.message);
        return made;
    }();
    return one;
}

// A stream's handle as the allocator counts it: 1 (cudaStreamLegacy) is 0.
inline std::uint64_t stream_number(const void *handle) noexcept {
    const std::uint64_t number = VRAM_STREAM(handle);
    return number == 1 ? 0 : number;
}
// The per-thread default stream is another one in each thread: memory for it belongs to the legacy default stream, with which it is in
// order, and before memory is given back the caller waits for it.
inline bool is_per_thread(const void *handle) noexcept { return VRAM_STREAM(handle) == 2; }

// bytes of `device` for use on `stream`; nullptr for 0 bytes. std::bad_alloc where memory runs out (vram_last_oom() has the report) or
// `alignment` is more than the 512 that all blocks have; std::runtime_error.
inline void *take(std::uint32_t device, std::size_t bytes, std::size_t alignment, const void *stream) {
    std::uint64_t address = 0;
    if (alignment > 512) throw std::bad_alloc();
    const std::uint64_t of = is_per_thread(stream) ? 0 : stream_number(stream);
    const vram_status status = vram_malloc(process_allocator(), device, bytes, of, &address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED || status == VRAM_NO_HOST_MEMORY) throw std::bad_alloc();
    if (status != VRAM_OK) throw std::runtime_error(vram_status_text(status));
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(address));
}

// Gives a block back; work queued by now on `stream` and on its own stream may still use it. False where the pointer is no block, or the
// driver did not say when the stream has passed: it stays live then. nullptr is ignored.
inline bool give(void *pointer, const void *stream) noexcept {
    const std::uint64_t address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
    if (address == 0) return true;
    const std::uint64_t of = is_per_thread(stream) ? 0 : stream_number(stream);
    vram_allocator *const allocator = process_allocator();
    return vram_record_stream(allocator, address, of) == VRAM_OK && vram_free(allocator, address) == VRAM_OK;
}

// Where the interface of a library has no place for a failure.
inline void untold(vram_status) noexcept {}

} // namespace vram
#endif
