// vram_torch.h: one allocator for a whole process, as plain functions that PyTorch can be given.
//
// torch.cuda.memory.CUDAPluggableAllocator takes two C symbols of a shared library, and further hooks as raw addresses. Here are all
// of them that are plain C, and the questions that PyTorch no longer answers in this mode. The module vram_torch.py makes use of both.
//
// The allocator is made at first use: options from VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF, on NVIDIA's driver,
// or on a simulated one where the variable VRAM_SIM is set (vram_sim_parse() reads it). If it cannot be made, the call that needed it
// fails and the next one tries again. It is never destroyed: tensors outlive every point where that could be done.
//
// All functions may be called from any thread at any time. Nothing prints. A stream is a cudaStream_t or CUstream, which are the same
// pointer; a status is an `enum vram_status` as int, 0 for success.
#ifndef VRAM_TORCH_H
#define VRAM_TORCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VRAM_TORCH_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Before the first use: the allocator serves a PyTorch of this version ("2.6"). It is made on the driver that PyTorch has, libcuda.so.1,
// whatever VRAM_SIM says, and where the versions differ the rules are that one's, unless the options say otherwise. BAD_OPTION for a
// version that the option `pytorch` does not know: nothing changes.
VRAM_TORCH_API int vram_torch_follow(const char *version);

// --- hooks of PyTorch -------------------------------------------------------------------------------------------------------------
// Types as PyTorch's binding has them (its pages say ssize_t where the binding says size_t; the bits are the same).

// How a hook tells PyTorch that it failed: PyTorch itself takes a null pointer for a tensor's memory. Has the signature of
// c10::detail::torchCheckFail() and, like it, may leave by a C++ exception: a hook calls it last, with nothing held.
typedef void (*vram_torch_raise)(const char *function, const char *file, uint32_t line, const char *message);
// From now on failing hooks call `function` with one line of text; NULL (the state at the start): they only return.
VRAM_TORCH_API void vram_torch_set_raise(vram_torch_raise function);

// From now on requests that fail for lack of memory raise PyTorch's own class for it (torch.OutOfMemoryError). `folder`: of its libraries,
// which are loaded. Whether all that it takes was found; without it they raise as others do, where a function for that was set.
VRAM_TORCH_API int vram_torch_use_oom_error(const char *folder);

// alloc_fn: `size` bytes on `device` for use on `stream`; NULL for 0 bytes. On failure raises, or returns NULL.
VRAM_TORCH_API void *vram_torch_malloc(ssize_t size, int device, void *stream);
// free_fn: takes a block back. Only `pointer` counts. Never raises: PyTorch frees where no exception may pass.
VRAM_TORCH_API void vram_torch_free(void *pointer, ssize_t size, int device, void *stream);
// set_init_fn: makes the allocator, so that what prevents it is said when CUDA is initialised. Raises.
VRAM_TORCH_API void vram_torch_init(int device_count);
// set_reset_fn: torch.cuda.empty_cache(). Raises.
VRAM_TORCH_API void vram_torch_reset(void);
// set_memory_fraction_fn: torch.cuda.set_per_process_memory_fraction(). Raises.
VRAM_TORCH_API void vram_torch_memory_fraction(double fraction, int device);
// set_base_alloc_fn: the first address of the segment that `pointer` lies in, and its bytes in *size (may be NULL). For a pointer that is
// in no live block: itself, and 0 bytes.
VRAM_TORCH_API void *vram_torch_base_alloc(void *pointer, size_t *size);
// set_record_stream_fn: Tensor.record_stream(). Pointers that are not this allocator's are ignored, as PyTorch's own allocator does.
// Raises.
VRAM_TORCH_API void vram_torch_record_stream(void *pointer, void *stream);

// --- private pools and graphs -------------------------------------------------------------------------------------------------------
// PyTorch's MempoolId_t: two numbers that name a pool, passed as a std::pair of them is.
struct vram_torch_pool_id {
    uint64_t first;
    uint64_t second;
};
// set_begin_allocate_to_pool: from now on requests of the calling thread go to the pool; or, after vram_torch_expect_capture(), those of
// the capture that is about to begin. The pool is made at its first use. `filter` is where PyTorch passes a std::function that says which
// streams are meant; it is an object of C++ and is not looked at. Raises.
VRAM_TORCH_API void vram_torch_begin_allocate_to_pool(int device, struct vram_torch_pool_id id, void *filter);
// set_end_allocate_to_pool_fn: undoes the newest of these, of this thread where it is a thread's. Raises.
VRAM_TORCH_API void vram_torch_end_allocate_to_pool(int device, struct vram_torch_pool_id id);
// set_release_pool: takes one reference away; every begin added one. Without any, memory that nobody uses goes back at the next reset.
// Never raises: PyTorch releases where no exception may pass. Unknown ids are ignored.
VRAM_TORCH_API void vram_torch_release_pool(int device, struct vram_torch_pool_id id);
// The calling thread's next begin is that of a capture on this stream. 0 takes it back.
VRAM_TORCH_API void vram_torch_expect_capture(uint64_t stream);
// How many pools there are: with references, or with a route that was not ended.
VRAM_TORCH_API uint32_t vram_torch_pool_count(void);

// --- memory that sleeps (vram/sleep.h) -------------------------------------------------------------------------------------------------
// From now on requests of the calling thread on `device` go to the pool with this tag, which is made at its first use and lives as long as
// the process; "": to one that does not sleep. Regions nest, the newest counts. INVALID_ARGUMENT beyond 63 characters.
VRAM_TORCH_API int vram_torch_tag_begin(int device, const char *tag);
// Ends the newest region with this tag. What is free in its pool goes back.
VRAM_TORCH_API int vram_torch_tag_end(int device, const char *tag);
// vram_pool_set_tag() of the pool with PyTorch's id.
VRAM_TORCH_API int vram_torch_tag_pool(int device, struct vram_torch_pool_id id, const char *tag);
// vram_sleep() of the pools with these tags, each with its level (enum vram_sleep_level as int; NULL: all are kept). count 0: all of the
// device, with levels[0]. *bytes (may be NULL) what went back to the driver.
VRAM_TORCH_API int vram_torch_sleep(int device, const char *const *tags, const int *levels, size_t count, int wakes, uint64_t *bytes);
VRAM_TORCH_API int vram_torch_wake(int device, const char *const *tags, size_t count, uint64_t *bytes);
// What sleeps: a line each of both numbers of the pool's id, level, whether requests wake it, bytes of live blocks, bytes of the device
// that it will need, bytes on the host, and its tag, with tabs between them.
VRAM_TORCH_API size_t vram_torch_sleepers(int device, char *text, size_t capacity);
// What the pool of a tag holds of the device's memory now.
VRAM_TORCH_API int vram_torch_tag_bytes(int device, const char *tag, uint64_t *bytes);
// vram_sleep_read().
VRAM_TORCH_API int vram_torch_kept(uint64_t address, uint64_t size_bytes, void *to);

// --- the same for programs: never raise -----------------------------------------------------------------------------------------------

// Statuses as vram_malloc(), and whatever prevented the allocator. *address is untouched on failure.
VRAM_TORCH_API int vram_torch_allocate(uint64_t size_bytes, int device, uint64_t stream, uint64_t *address);
// INVALID_POINTER for what is no live block; 0 is ignored.
VRAM_TORCH_API int vram_torch_release(uint64_t address);
VRAM_TORCH_API int vram_torch_use_on(uint64_t address, uint64_t stream);
VRAM_TORCH_API int vram_torch_empty_cache(void);
VRAM_TORCH_API int vram_torch_set_fraction(int device, double fraction);
VRAM_TORCH_API int vram_torch_fraction(int device, double *fraction);
// vram_configure(): an option string for the running allocator.
VRAM_TORCH_API int vram_torch_configure(const char *conf);
// Whether an option string is right, without making anything. conf may be NULL.
VRAM_TORCH_API int vram_torch_check_options(const char *conf);
VRAM_TORCH_API int vram_torch_reset_peak_stats(int device);
VRAM_TORCH_API int vram_torch_reset_accumulated_stats(int device);
// Free and total bytes by the driver.
VRAM_TORCH_API int vram_torch_memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);
VRAM_TORCH_API int vram_torch_device_count(uint32_t *count);
// Verifies the allocator's state; MISMATCH with the first broken sentence in vram_torch_error().
VRAM_TORCH_API int vram_torch_check(void);

// vram_history_start_text(): the memory history, by the words of VRAM_HISTORY; "off" stops it.
VRAM_TORCH_API int vram_torch_history(const char *text);
// vram_snapshot_save(): the state and its history into a file.
VRAM_TORCH_API int vram_torch_snapshot_save(const char *path);
// vram_annotate(): a name for a live block. vram_set_metadata(): words for what the calling thread does from now on.
VRAM_TORCH_API int vram_torch_annotate(uint64_t address, const char *text);
VRAM_TORCH_API int vram_torch_set_metadata(const char *text);

// vram_add_oom_observer(), for the rest of the process.
struct vram_oom;
VRAM_TORCH_API int vram_torch_add_oom_observer(void (*observer)(const struct vram_oom *oom, void *user));

// --- texts ------------------------------------------------------------------------------------------------------------------------
// `text` gets at most `capacity` bytes with the NUL and may be NULL for 0. Returned is the length without the NUL that was wanted; 0 and
// an empty text where there is nothing to say, or on failure (then vram_torch_error() has why).

// One JSON object of PyTorch's flat names: vram_stats_json().
VRAM_TORCH_API size_t vram_torch_stats_json(int device, char *text, size_t capacity);
// The table of torch.cuda.memory_summary(): vram_stats_summary().
VRAM_TORCH_API size_t vram_torch_summary(int device, int abbreviated, char *text, size_t capacity);
// The option string in force: vram_configuration().
VRAM_TORCH_API size_t vram_torch_configuration(char *text, size_t capacity);
// What vram_torch_set_metadata() said last in the calling thread.
VRAM_TORCH_API size_t vram_torch_metadata(char *text, size_t capacity);
// The report of the newest request that failed for lack of memory, of any thread. PyTorch's backward pass runs on threads of its own.
VRAM_TORCH_API size_t vram_torch_oom_text(char *text, size_t capacity);
// One line about the newest failure of any function here, in the calling thread.
VRAM_TORCH_API size_t vram_torch_error(char *text, size_t capacity);
// The library's version. Never NULL.
VRAM_TORCH_API const char *vram_torch_version(void);

#ifdef __cplusplus
}
#endif
#endif
