// vram/thrust.hpp: vram under Thrust, for its vectors and the temporary memory of its algorithms.
//
//     thrust::device_vector<float, vram::thrust_allocator<float>> values(count);
//     vram::thrust_temporary temporary(0, stream);
//     thrust::sort(thrust::cuda::par(temporary).on(stream), values.begin(), values.end());
//
// Needs a CUDA compiler, as Thrust's vectors do. docs/in/thrust.md.
#ifndef VRAM_THRUST_HPP
#define VRAM_THRUST_HPP

#include <thrust/device_malloc_allocator.h>
#include <thrust/device_ptr.h>

#include "vram/plug.hpp"

namespace vram {

// Memory of a device for use on a stream, by default the legacy default stream. Vectors are filled on that stream: free a vector that is
// used on another stream only after the work there.
template <class T> class thrust_allocator : public ::thrust::device_malloc_allocator<T> {
    using base = ::thrust::device_malloc_allocator<T>;

  public:
    using value_type = T;
    using pointer = typename base::pointer;
    using size_type = typename base::size_type;
    template <class Other> struct rebind { using other = thrust_allocator<Other>; };

    explicit thrust_allocator(std::uint32_t device = 0, const void *stream = nullptr) noexcept : device_(device), stream_(stream) {}
    template <class Other>
    thrust_allocator(const thrust_allocator<Other> &other) noexcept : device_(other.device()), stream_(other.stream()) {}

    pointer allocate(size_type count, const void * = nullptr) {
        if (count > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
        return pointer(static_cast<T *>(take(device_, count * sizeof(T), alignof(T), stream_)));
    }
    void deallocate(pointer place, size_type) noexcept { (void)give(::thrust::raw_pointer_cast(place), stream_); }

    std::uint32_t device() const noexcept { return device_; }
    const void *stream() const noexcept { return stream_; }
    bool operator==(const thrust_allocator &other) const noexcept { return device_ == other.device_ && stream_ == other.stream_; }
    bool operator!=(const thrust_allocator &other) const noexcept { return !(*this == other); }

  private:
    std::uint32_t device_;
    const void *stream_;
};

// Passed to thrust::cuda::par(): scratch memory of algorithms on one stream, reused from call to call.
class thrust_temporary {
  public:
    using value_type = char;
    explicit thrust_temporary(std::uint32_t device = 0, const void *stream = nullptr) noexcept : device_(device), stream_(stream) {}
    char *allocate(std::ptrdiff_t bytes) { return static_cast<char *>(take(device_, static_cast<std::size_t>(bytes), 256, stream_)); }
    void deallocate(char *place, std::size_t) noexcept { (void)give(place, stream_); }

  private:
    std::uint32_t device_;
    const void *stream_;
};

} // namespace vram
#endif
