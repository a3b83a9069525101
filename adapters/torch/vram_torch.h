// vram_torch.h: one allocator for a whole process, as plain functions for PyTorch.
//
// torch.cuda.memory.CUDAPluggableAllocator takes two C symbols of a shared library, and further hooks as raw addresses. This header has all
// hooks that are plain C, and the queries that PyTorch does not answer in this mode. The module vram_torch.py uses both.
//
// The allocator is created at first use, with options from VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF, on NVIDIA's
// driver, or on a simulated one if the variable VRAM_SIM is set (vram_sim_parse() reads it). If that fails, so does the call that needed
// it, and the next call tries again. The allocator is never destroyed, because tensors may outlive any point at which that could be done.
//
// All functions may be called from any thread at any time. Nothing prints. A stream is a cudaStream_t or CUstream, which are the same
// pointer. A status is an `enum vram_status` as int, 0 for success.
#ifndef VRAM_TORCH_H
#define VRAM_TORCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VRAM_TORCH_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Makes the allocator follow this version of PyTorch ("2.6"). Call before the first use. The allocator then uses libcuda.so.1, PyTorch's
// driver, even if VRAM_SIM is set, and follows that version's rules unless the options say otherwise. Returns BAD_OPTION, changing nothing,
// if the option `pytorch` does not know the version.
VRAM_TORCH_API int vram_torch_follow(const char *version);

// --- hooks of PyTorch -------------------------------------------------------------------------------------------------------------
// Types are as in PyTorch's binding (its documentation says ssize_t where the binding has size_t; the bits are the same).

// Reports a hook's failure to PyTorch, which would treat a null pointer as valid memory. Has the signature of c10::detail::torchCheckFail()
// and may also throw a C++ exception, so a hook calls it last, with nothing held.
typedef void (*vram_torch_raise)(const char *function, const char *file, uint32_t line, const char *message);
// Sets the function that failing hooks call with one line of text. NULL (the default): they only return.
VRAM_TORCH_API void vram_torch_set_raise(vram_torch_raise function);

// Makes requests that run out of memory raise PyTorch's own class, torch.OutOfMemoryError. `folder` is that of PyTorch's libraries, which
// are loaded. Returns whether everything needed was found; if not, such requests raise like other failures, if a function for that is set.
VRAM_TORCH_API int vram_torch_use_oom_error(const char *folder);

// alloc_fn: allocates `size` bytes on `device` for use on `stream`. Returns NULL for 0 bytes. Raises, or returns NULL, on failure.
VRAM_TORCH_API void *vram_torch_malloc(ssize_t size, int device, void *stream);
// free_fn: frees a block. Uses only `pointer`. Never raises: PyTorch frees where no exception may pass.
VRAM_TORCH_API void vram_torch_free(void *pointer, ssize_t size, int device, void *stream);
// set_init_fn: creates the allocator, so that a problem is reported when CUDA is initialized. Raises.
VRAM_TORCH_API void vram_torch_init(int device_count);
// set_reset_fn: torch.cuda.empty_cache(). Raises.
VRAM_TORCH_API void vram_torch_reset(void);
// set_memory_fraction_fn: torch.cuda.set_per_process_memory_fraction(). Raises.
VRAM_TORCH_API void vram_torch_memory_fraction(double fraction, int device);
// set_base_alloc_fn: returns the first address of the segment that contains `pointer`, and its bytes in *size (may be NULL). If `pointer`
// is not in a live block, returns it and 0 bytes.
VRAM_TORCH_API void *vram_torch_base_alloc(void *pointer, size_t *size);
// set_record_stream_fn: Tensor.record_stream(). Ignores pointers of other allocators, as PyTorch's own allocator does. Raises.
VRAM_TORCH_API void vram_torch_record_stream(void *pointer, void *stream);

// --- private pools and graphs -------------------------------------------------------------------------------------------------------
// PyTorch's MempoolId_t: the two numbers of a pool, passed like a std::pair.
struct vram_torch_pool_id {
    uint64_t first;
    uint64_t second;
};
// set_begin_allocate_to_pool: routes the calling thread's requests to the pool or, after vram_torch_expect_capture(), those of the capture
// that is about to begin. Creates the pool at its first use. `filter` receives PyTorch's std::function that selects streams; as a C++
// object it is ignored. Raises.
VRAM_TORCH_API void vram_torch_begin_allocate_to_pool(int device, struct vram_torch_pool_id id, void *filter);
// set_end_allocate_to_pool_fn: ends the newest such route, of this thread if it is a thread's. Raises.
VRAM_TORCH_API void vram_torch_end_allocate_to_pool(int device, struct vram_torch_pool_id id);
// set_release_pool: drops one reference; every begin added one. Without references, unused memory is released at the next reset. Never
// raises: PyTorch releases where no exception may pass. Ignores unknown ids.
VRAM_TORCH_API void vram_torch_release_pool(int device, struct vram_torch_pool_id id);
// Makes the calling thread's next begin that of a capture on this stream. 0 cancels it.
VRAM_TORCH_API void vram_torch_expect_capture(uint64_t stream);
// Call around each launch of a graph whose memory is in the pool, while lend_graph_pools is on: vram_pool_launch_begin() and
// vram_pool_launch_end(). After another result than 0 the graph must not be launched, and end must not be called. An unknown id is ignored.
VRAM_TORCH_API int vram_torch_launch_begin(int device, struct vram_torch_pool_id id, uint64_t stream);
VRAM_TORCH_API void vram_torch_launch_end(int device, struct vram_torch_pool_id id);
// Returns the number of pools that have references or an open route.
VRAM_TORCH_API uint32_t vram_torch_pool_count(void);

// --- suspended memory (vram/sleep.h) ---------------------------------------------------------------------------------------------------
// Routes the calling thread's requests on `device` to the pool with this tag, which is created at its first use and kept until the process
// ends. "" is a pool that is never suspended. Regions nest; the newest wins. Returns INVALID_ARGUMENT beyond 63 characters.
VRAM_TORCH_API int vram_torch_tag_begin(int device, const char *tag);
// Ends the newest region with this tag, and releases the free memory in its pool.
VRAM_TORCH_API int vram_torch_tag_end(int device, const char *tag);
// Calls vram_pool_set_tag() for the pool with PyTorch's id.
VRAM_TORCH_API int vram_torch_tag_pool(int device, struct vram_torch_pool_id id, const char *tag);
// Calls vram_sleep() for the pools with these tags, each with its level (enum vram_sleep_level as int; NULL: keep all contents). A tag that
// is NULL names every pool that no earlier tag names. count 0: all pools of the device, with levels[0]. Stores the bytes released to the
// driver in *bytes (may be NULL).
VRAM_TORCH_API int vram_torch_sleep(int device, const char *const *tags, const int *levels, size_t count, int wakes, uint64_t *bytes);
VRAM_TORCH_API int vram_torch_wake(int device, const char *const *tags, size_t count, uint64_t *bytes);
// Calls vram_wake() for the pool with PyTorch's id; (0, 0) is the default pools.
VRAM_TORCH_API int vram_torch_wake_pool(int device, struct vram_torch_pool_id id, uint64_t *bytes);
// Lists suspended pools, one per line, separated by tabs: both numbers of the pool's id, level, whether requests wake it, bytes of live
// blocks, device bytes it will need, bytes on the host, and its tag.
VRAM_TORCH_API size_t vram_torch_sleepers(int device, char *text, size_t capacity);
// Stores the device bytes that the pool of a tag reserves now.
VRAM_TORCH_API int vram_torch_tag_bytes(int device, const char *tag, uint64_t *bytes);
// Calls vram_sleep_read().
VRAM_TORCH_API int vram_torch_kept(uint64_t address, uint64_t size_bytes, void *to);

// --- functions for programs: never raise ----------------------------------------------------------------------------------------------

// Returns the statuses of vram_malloc(), or why the allocator could not be created. Leaves *address unchanged on failure.
VRAM_TORCH_API int vram_torch_allocate(uint64_t size_bytes, int device, uint64_t stream, uint64_t *address);
// Returns INVALID_POINTER if the address is not a live block; ignores 0.
VRAM_TORCH_API int vram_torch_release(uint64_t address);
VRAM_TORCH_API int vram_torch_use_on(uint64_t address, uint64_t stream);
VRAM_TORCH_API int vram_torch_empty_cache(void);
VRAM_TORCH_API int vram_torch_set_fraction(int device, double fraction);
VRAM_TORCH_API int vram_torch_fraction(int device, double *fraction);
// Calls vram_configure(): sets options of the running allocator.
VRAM_TORCH_API int vram_torch_configure(const char *conf);
// Checks an option string without creating anything. conf may be NULL.
VRAM_TORCH_API int vram_torch_check_options(const char *conf);
VRAM_TORCH_API int vram_torch_reset_peak_stats(int device);
VRAM_TORCH_API int vram_torch_reset_accumulated_stats(int device);
// Stores the driver's free and total bytes.
VRAM_TORCH_API int vram_torch_memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes);
VRAM_TORCH_API int vram_torch_device_count(uint32_t *count);
// Verifies the allocator's state. Returns MISMATCH, with the first violation in vram_torch_error().
VRAM_TORCH_API int vram_torch_check(void);

// Calls vram_history_start_text(): starts the memory history with the words of VRAM_HISTORY; "off" stops it.
VRAM_TORCH_API int vram_torch_history(const char *text);
// Calls vram_snapshot_save(): writes the state and its history to a file.
VRAM_TORCH_API int vram_torch_snapshot_save(const char *path);
// vram_torch_annotate() calls vram_annotate(): names a live block. vram_torch_set_metadata() calls vram_set_metadata(): labels the calling
// thread's events from now on.
VRAM_TORCH_API int vram_torch_annotate(uint64_t address, const char *text);
VRAM_TORCH_API int vram_torch_set_metadata(const char *text);

// Calls vram_add_oom_observer(), for the rest of the process.
struct vram_oom;
VRAM_TORCH_API int vram_torch_add_oom_observer(void (*observer)(const struct vram_oom *oom, void *user));

// --- texts ------------------------------------------------------------------------------------------------------------------------
// These functions write at most `capacity` bytes with the NUL into `text`, which may be NULL if `capacity` is 0. They return the full
// length without the NUL; 0, with an empty text, if there is nothing to say or on failure (vram_torch_error() then has the reason).

// Writes one JSON object with PyTorch's flat names: vram_stats_json().
VRAM_TORCH_API size_t vram_torch_stats_json(int device, char *text, size_t capacity);
// Writes the table of torch.cuda.memory_summary(): vram_stats_summary().
VRAM_TORCH_API size_t vram_torch_summary(int device, int abbreviated, char *text, size_t capacity);
// Writes the option string in force: vram_configuration().
VRAM_TORCH_API size_t vram_torch_configuration(char *text, size_t capacity);
// Writes the calling thread's last vram_torch_set_metadata().
VRAM_TORCH_API size_t vram_torch_metadata(char *text, size_t capacity);
// Writes the report of the newest request of any thread that ran out of memory. PyTorch's backward pass runs on its own threads.
VRAM_TORCH_API size_t vram_torch_oom_text(char *text, size_t capacity);
// Writes one line about the calling thread's newest failure of any function here.
VRAM_TORCH_API size_t vram_torch_error(char *text, size_t capacity);
// Returns the library's version. Never returns NULL.
VRAM_TORCH_API const char *vram_torch_version(void);

#ifdef __cplusplus
}
#endif
#endif
