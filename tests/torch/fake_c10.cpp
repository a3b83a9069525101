// The relevant part of PyTorch, for a test: c10's throwing function, and a caller that keeps the adapter's functions as PyTorch's
// CUDAPluggableAllocator does, as std::function objects made from addresses.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#define EXPORT __attribute__((visibility("default")))

namespace c10::detail {
[[noreturn]] EXPORT void torchCheckFail(const char *function, const char *file, uint32_t line, const char *message);

void torchCheckFail(const char *function, const char *file, uint32_t line, const char *message) {
    throw std::runtime_error(std::string(function) + "|" + file + "|" + std::to_string(line) + "|" + message);
}
} // namespace c10::detail

// As in PyTorch, the constructor of one class and the virtual table of the other are found by name.
namespace c10 {
struct SourceLocation {
    const char *function;
    const char *file;
    uint32_t line;
};
class EXPORT Error : public std::exception {
  public:
    Error(SourceLocation location, std::string message);
    const char *what() const noexcept override { return text.c_str(); }

  private:
    std::string text;
};
class EXPORT OutOfMemoryError : public Error {
    using Error::Error;
};

Error::Error(SourceLocation location, std::string message)
    : text(std::string(location.function) + "|" + location.file + "|" + std::to_string(location.line) + "|" + message) {}

EXPORT void some_other_out_of_memory() { throw OutOfMemoryError({"", "", 0}, ""); }
} // namespace c10

namespace {
// Runs `call`; stores the text of its exception in `text`, else "".
template <typename Call> void catching(char *text, size_t capacity, Call call) {
    std::string what;
    try {
        call();
    } catch (const c10::OutOfMemoryError &error) {
        what = std::string("OutOfMemoryError|") + error.what();
    } catch (const std::exception &error) {
        what = error.what();
    }
    text[what.copy(text, capacity - 1)] = '\0';
}
} // namespace

extern "C" {
EXPORT void *fake_malloc(uint64_t address, size_t size, int device, void *stream, char *text, size_t capacity) {
    std::function<void *(size_t, int, void *)> function = reinterpret_cast<void *(*)(size_t, int, void *)>(address);
    void *result = nullptr;
    catching(text, capacity, [&] { result = function(size, device, stream); });
    return result;
}

EXPORT void fake_free(uint64_t address, void *pointer, size_t size, int device, void *stream) {
    std::function<void(void *, size_t, int, void *)> function = reinterpret_cast<void (*)(void *, size_t, int, void *)>(address);
    function(pointer, size, device, stream);
}

EXPORT void fake_init(uint64_t address, int device_count, char *text, size_t capacity) {
    std::function<void(int)> function = reinterpret_cast<void (*)(int)>(address);
    catching(text, capacity, [&] { function(device_count); });
}

EXPORT void fake_reset(uint64_t address, char *text, size_t capacity) {
    std::function<void()> function = reinterpret_cast<void (*)()>(address);
    catching(text, capacity, [&] { function(); });
}

EXPORT void fake_fraction(uint64_t address, double fraction, int device, char *text, size_t capacity) {
    std::function<void(double, int)> function = reinterpret_cast<void (*)(double, int)>(address);
    catching(text, capacity, [&] { function(fraction, device); });
}

EXPORT void *fake_base_alloc(uint64_t address, void *pointer, size_t *size) {
    std::function<void *(void *, size_t *)> function = reinterpret_cast<void *(*)(void *, size_t *)>(address);
    return function(pointer, size);
}

EXPORT void fake_record_stream(uint64_t address, void *pointer, void *stream, char *text, size_t capacity) {
    std::function<void(void *, void *)> function = reinterpret_cast<void (*)(void *, void *)>(address);
    catching(text, capacity, [&] { function(pointer, stream); });
}

// The filter is a function object with more than a pointer, as in PyTorch.
EXPORT void fake_begin_pool(uint64_t address, int device, uint64_t first, uint64_t second, char *text, size_t capacity) {
    using Id = std::pair<unsigned long long, unsigned long long>;
    std::function<void(int, Id, std::function<bool(void *)>)> function =
        reinterpret_cast<void (*)(int, Id, std::function<bool(void *)>)>(address);
    const std::string held(100, 'x');
    catching(text, capacity, [&] { function(device, {first, second}, [held](void *stream) { return stream == held.data(); }); });
}

EXPORT void fake_end_pool(uint64_t address, int device, uint64_t first, uint64_t second, char *text, size_t capacity) {
    using Id = std::pair<unsigned long long, unsigned long long>;
    std::function<void(int, Id)> function = reinterpret_cast<void (*)(int, Id)>(address);
    catching(text, capacity, [&] { function(device, {first, second}); });
}
}
