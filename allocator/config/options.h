// options.h: the settings of an allocator and the parser of PyTorch's option strings.
//
// The grammar, keys, units, defaults and reset rules are those of PYTORCH_CUDA_ALLOC_CONF; docs/differences.md lists the differences
// (separators are checked, trailing garbage in numbers is an error, more spellings are accepted). One X-macro table (options.def) names
// every key and generates parser, printer, suggestions and docs.
#ifndef VR_CONFIG_OPTIONS_H
#define VR_CONFIG_OPTIONS_H

#include "base/text.h"
#include "vram/options.h"

#define VR_ROUNDUP_BUCKETS 16
#define VR_UNLIMITED       UINT64_MAX
#define VR_RESERVE_CLASSES 16
#define VR_CLASS_NAME      32

// A version of PyTorch as a number that grows with the version.
#define VR_PYTORCH(major, minor) ((major)*100u + (minor))
#define VR_PYTORCH_NEWEST        VR_PYTORCH(2, 15)
// From this version on, the free block in the oldest segment is reused among blocks of equal size; before 2.12, the one at the lowest
// address.
#define VR_PYTORCH_OLDEST_FIRST VR_PYTORCH(2, 13)
// Only this version reused the block whose record it had created first, wherever the block is.
#define VR_PYTORCH_NUMBERED VR_PYTORCH(2, 12)
// From this version on, ending a MemPool waits for its pending frees and returns its cache.
#define VR_PYTORCH_POOL_END_EMPTIES VR_PYTORCH(2, 6)
// From this version on, a capture concerns the requests of streams that take part in it; before, all requests of its device.
#define VR_PYTORCH_STREAMS_CAPTURE VR_PYTORCH(2, 13)

// Maximum padding of a request, in bytes.
#define VR_PADDING_MAX       4096
#define VR_ALIGNMENT_KIB_MAX 16

enum vr_backend { VR_BACKEND_NATIVE, VR_BACKEND_ASYNC };

// A reservation of address space: a fraction of the device's memory, or bytes. Unset: both 0.
struct vr_reserve {
    double fraction;
    uint64_t bytes;
};

// Every setting, in bytes. Plain data: copied freely, owns nothing.
struct vr_options {
    // generic
    uint64_t large_segment_bytes;          // segment for sizes in (1 MiB, 10 MiB); default 20 MiB
    uint64_t max_split_bytes;              // blocks of this size and more are not split; VR_UNLIMITED by default
    uint64_t max_non_split_rounding_bytes; // how much larger an oversize block may be than its request; default large_segment_bytes
    double garbage_collection_threshold;   // 0 = off, else in (0, 1)
    uint32_t roundup_divisions[VR_ROUNDUP_BUCKETS]; // divisor per power of two from 1 MiB up; 0 and 1 = round to 512
    bool expandable_segments;
    bool pinned_use_background_threads;
    uint64_t pinned_max_round_threshold_bytes; // VR_UNLIMITED by default
    uint64_t pinned_max_cached_bytes;          // VR_UNLIMITED by default
    // CUDA
    enum vr_backend backend;
    bool release_lock_on_malloc;
    bool pinned_use_host_register;
    uint32_t pinned_register_threads;
    uint64_t pinned_reserve_segment_bytes;
    bool pinned_free_catch_all;
    bool graph_capture_record_stream_reuse;
    double per_process_memory_fraction;
    bool throw_on_malloc_oom;
    struct vr_reserve expandable_reserve;
    struct {
        char name[VR_CLASS_NAME];
        struct vr_reserve reserve;
    } reserve_classes[VR_RESERVE_CLASSES];
    uint32_t reserve_class_count;
    uint32_t request_padding_bytes; // added to each request before it is rounded
    uint32_t base_alignment_kib;    // of requests of 2 MiB and more in expandable segments; 0: no alignment
    // Beyond PyTorch.
    bool reclaim_streams;
    bool share_live_pools;
    bool lend_graph_pools;
    bool reuse_oversize;
    bool search_after_wait;
    bool paged;
    bool sleepable;
    bool grow_ahead;
    struct vr_reserve warm;
    bool verify; // vram/verify.h
    bool verify_halt;
    bool verify_leaks;
    uint64_t verify_quarantine_bytes;
    uint32_t pytorch; // VR_PYTORCH() of the version whose rules apply
};

// Sets every default.
void vr_options_init(struct vr_options *options);

// Returns whether the options are valid: the large segment has 11 MiB or more, and neither of the two limits that depend on it is below it;
// fractions are in their ranges; divisors and threads are powers of two (a divisor may be 0); classes have distinct names. Recorded
// settings (recorded_options.h) need not be valid.
bool vr_options_check(const struct vr_options *options);

// Reads `text` (NUL-terminated; NULL and "" are empty) into *options: first resets the options that PyTorch resets at each parse
// (max_split, roundup divisions, garbage collection, non-split rounding), then reads key by key. On failure leaves *options unchanged;
// *error (may be NULL) gives the position and, for an unknown key, the nearest known one. BAD_OPTION, LIMIT.
enum vram_status vr_options_parse(struct vr_options *options, const char *text, struct vram_error *error);
// Sets only the option `key`, from the text of its value; NULL: to its default. A default that depends on the large segment's size is
// updated with it. On failure leaves *options unchanged; error offsets count characters of "key:value". BAD_OPTION, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_options_set(struct vr_options *options, const char *key, const char *value, struct vram_error *error);
// Calls visit for every option with its value. NO_HOST_MEMORY.
enum vram_status vr_options_visit(const struct vr_options *options, vram_option_visitor visit, void *user, struct vram_error *error);

// Appends an option string that produces these options when it is read into fresh ones; "" if all are defaults.
void vr_options_print(const struct vr_options *options, struct vr_text *text);

// Returns the first of VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF that is set, even to "" (PyTorch's order); *variable is
// its name. Returns NULL if none is set. Must not run while another thread changes the environment.
const char *vr_options_environment(const char **variable);

// Returns the divisor for a request of size_bytes (0 = round to 512). size_bytes must not be 0.
VR_INLINE uint32_t vr_options_divisor(const struct vr_options *options, uint64_t size_bytes) {
    assert(size_bytes != 0);
    const unsigned log = vr_log2_floor(size_bytes);
    const unsigned bucket = log <= 20 ? 0 : log - 20 >= VR_ROUNDUP_BUCKETS ? VR_ROUNDUP_BUCKETS - 1 : log - 20;
    return options->roundup_divisions[bucket];
}

#endif
