// vram/vram.hpp: the allocator for C++: handles with ownership, blocks that free themselves, failures as exceptions. C++17.
//
//     vram::allocator gpu;                                   // the system's driver, options of the environment
//     vram::block weights = gpu.allocate(0, 1 << 20, stream); // device 0; freed at the end of the scope
//     kernel<<<..., stream>>>(weights.as<float>());
//
// A vram::resource has the shape of std::pmr::memory_resource, with a stream (for cuda::mr see vram/cccl.hpp, for RMM vram/rmm.hpp). Every
// handle converts to its C handle for use with the C functions. An object may be used by one thread at a time if its C handle may.
#ifndef VRAM_VRAM_HPP
#define VRAM_VRAM_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "vram/allocator.h"
#include "vram/pool.h"

namespace vram {

// A status other than OK. what() has the detail if the function gives one.
class error : public std::runtime_error {
  public:
    explicit error(vram_status status) : std::runtime_error(vram_status_text(status)), status_(status) {}
    error(vram_status status, const char *message) : std::runtime_error(message), status_(status) {}
    vram_status status() const noexcept { return status_; }

  private:
    vram_status status_;
};

// OUT_OF_MEMORY and REJECTED. what() is the report of vram_oom_text().
class out_of_memory : public std::bad_alloc {
  public:
    out_of_memory() {
        char text[1024] = "vram: out of memory";
        if (vram_last_oom(&facts_)) (void)vram_oom_text(&facts_, text, sizeof text);
        text_ = text;
    }
    const char *what() const noexcept override { return text_.c_str(); }
    const vram_oom &facts() const noexcept { return facts_; }

  private:
    vram_oom facts_{};
    std::string text_;
};

// Throws for a status other than OK.
inline void check(vram_status status) {
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) throw out_of_memory();
    if (status == VRAM_NO_HOST_MEMORY) throw std::bad_alloc();
    if (status != VRAM_OK) throw error(status);
}

// Owns a C handle and destroys it. Movable, not copyable.
template <class Handle, void (*Destroy)(Handle *)> class owner {
  public:
    owner() noexcept = default;
    explicit owner(Handle *handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(other.release()) {}
    owner &operator=(owner &&other) noexcept {
        reset(other.release());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() { reset(nullptr); }

    Handle *get() const noexcept { return handle_; }
    operator Handle *() const noexcept { return handle_; }
    // Transfers ownership of the handle to the caller.
    Handle *release() noexcept { return std::exchange(handle_, nullptr); }
    void reset(Handle *handle) noexcept {
        Handle *const old = std::exchange(handle_, handle);
        if (old != nullptr) Destroy(old);
    }

  private:
    Handle *handle_ = nullptr;
};

using driver = owner<vram_driver, vram_driver_destroy>;

// A live block, freed by the destructor; work queued on its stream may still use it.
class block {
  public:
    block() noexcept = default;
    // Takes ownership of a live block of the allocator.
    block(vram_allocator *allocator, std::uint64_t address) noexcept : allocator_(allocator), address_(address) {}
    block(block &&other) noexcept : allocator_(other.allocator_), address_(other.release()) {}
    block &operator=(block &&other) noexcept {
        reset();
        allocator_ = other.allocator_;
        address_ = other.release();
        return *this;
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    ~block() { reset(); }

    std::uint64_t address() const noexcept { return address_; }
    template <class T = void> T *as() const noexcept { return static_cast<T *>(VRAM_POINTER(address_)); }
    std::size_t size_bytes() const noexcept { return address_ == 0 ? 0 : vram_allocated_size(allocator_, address_); }
    explicit operator bool() const noexcept { return address_ != 0; }
    // Declares use on this stream: once freed, the memory waits for work queued there by then.
    void record_stream(const void *stream) { check(vram_record_stream(allocator_, address_, VRAM_STREAM(stream))); }
    // Transfers ownership of the address to the caller, who calls vram_free().
    std::uint64_t release() noexcept { return std::exchange(address_, 0); }
    void reset() noexcept {
        if (address_ != 0) (void)vram_free(allocator_, release());
    }

  private:
    vram_allocator *allocator_ = nullptr;
    std::uint64_t address_ = 0;
};

class pool;

class allocator : public owner<vram_allocator, vram_destroy> {
  public:
    // conf: NULL reads the environment. from: NULL is the system's driver; otherwise borrowed for the allocator's lifetime.
    explicit allocator(const char *conf = nullptr, vram_driver *from = nullptr) {
        vram_create_info info{};
        info.driver = from;
        info.conf = conf;
        vram_allocator *made = nullptr;
        vram_error detail{};
        const vram_status status = vram_create(&info, &made, &detail);
        if (status != VRAM_OK) throw error(status, detail.message);
        reset(made);
    }

    block allocate(std::uint32_t device, std::size_t bytes, const void *stream = nullptr) {
        std::uint64_t address = 0;
        check(vram_malloc(get(), device, bytes, VRAM_STREAM(stream), &address));
        return block(get(), address);
    }
    struct vram_stats stats(std::uint32_t device = 0) const {
        struct vram_stats of {};
        check(vram_get_stats(get(), device, &of));
        return of;
    }
    void configure(const char *conf) {
        vram_error detail{};
        const vram_status status = vram_configure(get(), conf, &detail);
        if (status != VRAM_OK) throw error(status, detail.message);
    }
    void empty_cache() { check(vram_empty_cache(get())); }
};

// A private pool. Its blocks may outlive this handle, but not the allocator.
class pool : public owner<vram_pool, vram_pool_release> {
  public:
    explicit pool(allocator &of, std::uint32_t device = 0, const vram_pool_options *options = nullptr) : allocator_(of.get()) {
        vram_pool *made = nullptr;
        check(vram_pool_create(of.get(), device, options, &made));
        reset(made);
    }
    block allocate(std::size_t bytes, const void *stream = nullptr) {
        std::uint64_t address = 0;
        check(vram_pool_malloc(get(), bytes, VRAM_STREAM(stream), &address));
        return block(allocator_, address);
    }

  private:
    vram_allocator *allocator_;
};

// One device's memory as a resource: allocate and deallocate with a stream; resources of the same memory are equal.
class resource {
  public:
    explicit resource(vram_allocator *of, std::uint32_t device = 0) noexcept : allocator_(of), device_(device) {}
    // alignment: at most 512, which every block has. Throws std::bad_alloc, error.
    void *allocate(std::size_t bytes, std::size_t alignment = 256, const void *stream = nullptr) {
        if (alignment > 512) throw std::bad_alloc();
        std::uint64_t address = 0;
        check(vram_malloc(allocator_, device_, bytes, VRAM_STREAM(stream), &address));
        return VRAM_POINTER(address);
    }
    // Work queued on `stream` by now may still use the block.
    void deallocate(void *pointer, std::size_t, std::size_t = 256, const void *stream = nullptr) {
        if (pointer == nullptr) return;
        check(vram_record_stream(allocator_, VRAM_ADDRESS(pointer), VRAM_STREAM(stream)));
        check(vram_free(allocator_, VRAM_ADDRESS(pointer)));
    }
    bool is_equal(const resource &other) const noexcept { return allocator_ == other.allocator_ && device_ == other.device_; }
    bool operator==(const resource &other) const noexcept { return is_equal(other); }
    bool operator!=(const resource &other) const noexcept { return !is_equal(other); }

  private:
    vram_allocator *allocator_;
    std::uint32_t device_;
};

} // namespace vram
#endif
