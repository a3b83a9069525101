// vram/status.h: the status of every call that can fail, its detail, and how text is delivered.
//
// VRAM_STATUS_MAP(X) lists every status with its constant and one English sentence. A function that fails leaves its out-parameters
// unchanged and, if it takes a `struct vram_error *`, fills it in. An error pointer may always be NULL.
#ifndef VRAM_STATUS_H
#define VRAM_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define VRAM_NODISCARD                   __attribute__((warn_unused_result))
#define VRAM_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define VRAM_NODISCARD
#define VRAM_PRINTF(format_index, first)
#endif

#if defined(VRAM_BUILD_SHARED) && (defined(__GNUC__) || defined(__clang__))
#define VRAM_API __attribute__((visibility("default")))
#else
#define VRAM_API
#endif

// Marks functions that a minor version may still change. With VRAM_WARN_EXPERIMENTAL defined, using one causes a warning.
#if defined(VRAM_WARN_EXPERIMENTAL) && (defined(__GNUC__) || defined(__clang__))
#define VRAM_EXPERIMENTAL __attribute__((deprecated("experimental: a minor version may change it")))
#else
#define VRAM_EXPERIMENTAL
#endif

// X(CONSTANT, sentence)
#define VRAM_STATUS_MAP(X)                                                                                                                 \
    X(OK, "success")                                                                                                                       \
    X(INVALID_ARGUMENT, "an argument is outside the range that the function accepts")                                                      \
    X(INVALID_POINTER, "the address is not from this allocator, or was already freed")                                                     \
    X(BAD_OPTION, "an option string is malformed or names an unknown option")                                                              \
    X(OUT_OF_MEMORY, "the device has too little free memory for the request, even after releasing the cache")                              \
    X(REJECTED, "the request exceeds the allowed share and was refused before any driver call")                                            \
    X(MISMATCH, "two things that should be equal differ")                                                                                  \
    X(NO_HOST_MEMORY, "not enough host memory for the library's tables")                                                                   \
    X(BAD_INPUT, "a file is damaged or has another format")                                                                                \
    X(IO, "a file could not be read or written")                                                                                           \
    X(LIMIT, "a fixed limit of this library was reached")                                                                                  \
    X(NO_DRIVER, "no CUDA driver found on this machine")                                                                                   \
    X(DRIVER, "a driver call failed")                                                                                                      \
    X(UNSUPPORTED, "not supported by the device, driver or build")                                                                         \
    X(ASLEEP, "the pool is asleep, and requests do not wake it")                                                                           \
    X(LENT, "memory of the graph is lent to a block that was not freed yet")

enum vram_status {
#define VRAM_STATUS_ENUM(name, sentence) VRAM_##name,
    VRAM_STATUS_MAP(VRAM_STATUS_ENUM)
#undef VRAM_STATUS_ENUM
};

// An unknown offset.
#define VRAM_NO_OFFSET UINT64_MAX

// Detail of a failure, filled on cold paths only. Lives on the caller's stack and owns nothing.
struct vram_error {
    enum vram_status status; // the same value the function returned
    int32_t driver_result;   // CUresult of the failed driver call; 0: none
    uint64_t offset;         // byte (files) or character (option strings) at which it failed, or VRAM_NO_OFFSET
    char message[512];       // one line, no newline, NUL-terminated, UTF-8
};

// Returns the constant's name ("VRAM_OUT_OF_MEMORY"). Never NULL. Any thread.
VRAM_API const char *vram_status_name(enum vram_status status);
// Returns one English sentence without a full stop. Never NULL. Any thread.
VRAM_API const char *vram_status_text(enum vram_status status);

// --- output ------------------------------------------------------------------------------------------------------------------------------
// The library never prints: it passes text to a function of the program.

// Receives text in pieces, in order; pieces are not NUL-terminated. Return false to stop the writer, which then returns VRAM_IO.
typedef bool (*vram_write)(void *user, const char *bytes, size_t length);

// The capabilities of the display. A zeroed struct means 100 columns of plain ASCII.
struct vram_style {
    unsigned columns; // line width; 0: 100; less than 60 counts as 60
    bool colour;      // ANSI colour escapes
    bool unicode;     // bars and charts of block characters
};

#ifdef __cplusplus
}
#endif
#endif
