// recorder.h: records a program's device memory like PyTorch's memory snapshot, with public functions only: it compares the allocator's
// state after every call with the previous one.
#ifndef EXAMPLE_RECORDER_H
#define EXAMPLE_RECORDER_H

#include <stdio.h>
#include <vram/vram.h>

struct recorder;

// Creates a recorder for device 0 of the allocator; both arguments are borrowed. Any failure ends the program, since this is an example.
struct recorder *recorder_create(struct vram_allocator *allocator, struct vram_driver *driver);
void recorder_destroy(struct recorder *recorder);

// Push and pop the synthetic call stack.
void recorder_enter(struct recorder *recorder, const char *function, int line);
void recorder_leave(struct recorder *recorder);
#define CALL(recorder, ...)                                                                                                                \
    do {                                                                                                                                   \
        recorder_enter((recorder), __func__, __LINE__);                                                                                    \
        __VA_ARGS__;                                                                                                                       \
        recorder_leave((recorder));                                                                                                        \
    } while (0)

// Call the allocator. The innermost frame is the line of the call.
uint64_t recorder_malloc(struct recorder *recorder, uint64_t size_bytes, uint64_t stream, const char *function, int line);
#define TENSOR(recorder, size_bytes, stream) recorder_malloc((recorder), (size_bytes), (stream), __func__, __LINE__)
void recorder_free(struct recorder *recorder, uint64_t address);
void recorder_record_stream(struct recorder *recorder, uint64_t address, uint64_t stream);
void recorder_empty_cache(struct recorder *recorder);

// Writes the snapshot as JSON.
void recorder_write(struct recorder *recorder, FILE *file);

#endif
