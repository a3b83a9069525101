// vram/recording.h: a recording of device memory, read from a file.
//
// A recording has the contents of PyTorch's memory snapshot: segments and blocks, the history of every device, settings and annotations.
// The reader accepts the pickles that PyTorch writes (both writers, protocols 2 to 5), the same data as JSON, bare lists of
// segments, HTML pages with an embedded pickle, and vram's own files (.vram). It detects the format by the first bytes. It never executes
// anything from a file, and never allocates more than a few times the file's size. A recording is immutable: any number of threads may use
// it at once.
#ifndef VRAM_RECORDING_H
#define VRAM_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/allocator.h"
#include "vram/stack.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_recording;

// A source of bytes. read() writes at most `capacity` bytes to `buffer` and returns their number, 0 at the end, SIZE_MAX on failure. `name`
// (may be NULL) appears in messages. `bytes` is the expected total, used to size tables in advance, or 0 if unknown; a wrong number is
// harmless. `most_memory_bytes` limits the memory that reading may take, buffers included; 0 derives the limit from the input's length.
// Borrowed for the duration of one call.
struct vram_input {
    size_t (*read)(void *context, void *buffer, size_t capacity);
    void *context;
    const char *name;
    uint64_t bytes;
    uint64_t most_memory_bytes;
};

// Reads one recording to its end. The caller owns *recording: vram_recording_destroy(). BAD_INPUT if the input is not a recording, LIMIT if
// it unpacks to far more than its size, IO if read() fails, NO_HOST_MEMORY; *error (may be NULL) explains the failure, and its offset is
// the byte of the input (for an HTML page, of the embedded data). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read(const struct vram_input *input, struct vram_recording **recording,
                                                             struct vram_error *error);
// Reads a recording from the `size` bytes at `data`, which are borrowed for the call. `name` may be NULL. Otherwise as
// vram_recording_read().
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_memory(const void *data, size_t size, const char *name,
                                                                    struct vram_recording **recording, struct vram_error *error);
// Reads a recording from the regular file at `path`. Also IO if it cannot be opened. Otherwise as vram_recording_read().
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_file(const char *path, struct vram_recording **recording,
                                                                  struct vram_error *error);
// Frees the recording. NULL is ignored.
VRAM_API void vram_recording_destroy(struct vram_recording *recording);

// The top level of the file: a dictionary with history and settings, or a bare list of segments.
enum vram_recording_form { VRAM_RECORDING_DICT, VRAM_RECORDING_SEGMENT_LIST };
VRAM_API enum vram_recording_form vram_get_recording_form(const struct vram_recording *recording);
// The way the file ended. Only vram's own files (docs/reference/formats/recording.md) can be OPEN or CUT.
enum vram_recording_ending {
    VRAM_RECORDING_WHOLE, // complete
    VRAM_RECORDING_OPEN,  // not closed: the program was killed or is still writing; everything recorded until then is present
    VRAM_RECORDING_CUT    // truncated or damaged; everything before that point is present
};
VRAM_API enum vram_recording_ending vram_get_recording_ending(const struct vram_recording *recording);
// Returns the largest device ordinal of a segment or event, plus one; 0 for an empty recording.
VRAM_API uint32_t vram_recording_device_count(const struct vram_recording *recording);
// Returns whether a device number of this recording means pinned host memory instead of a GPU. False for an unknown device.
VRAM_API bool vram_recording_device_is_host(const struct vram_recording *recording, uint32_t device);
// Returns the number of events of `device`, or of all devices for VRAM_ALL_DEVICES. 0 for an unknown device.
#define VRAM_ALL_DEVICES UINT32_MAX
VRAM_API uint64_t vram_recording_event_count(const struct vram_recording *recording, uint32_t device);
// Return the number of segments and blocks of all devices.
VRAM_API uint64_t vram_recording_segment_count(const struct vram_recording *recording);
VRAM_API uint64_t vram_recording_block_count(const struct vram_recording *recording);
// Returns the JSON text of a key of allocator_settings ("true", "-1", "\"expandable_segments:True\""), or NULL. Borrowed from the
// recording. Values that JSON cannot express are dictionaries of one key: a tuple is {"$tuple": [...]}, an infinity {"$float": "inf"}.
VRAM_API const char *vram_recording_setting(const struct vram_recording *recording, const char *key);

// --- rows --------------------------------------------------------------------------------------------------------------------------------
// A recording's rows as plain structs, for programs that convert all of it.
//
// Indices count from 0 in the order of the file. Strings are NUL-terminated, "" if absent, and borrowed from the recording. Stacks are
// numbers below vram_recording_stack_count(), 0 if absent; a stack is a list of frame numbers. Functions fill *row and return true, or
// return false, leaving *row unchanged, if the row does not exist. Safe from any number of threads at once.

// The texts of an event, as tables show them. X(member, "column")
#define VRAM_EVENT_TEXTS(X)                                                                                                                \
    X(category, "category")                                                                                                                \
    X(context, "compile_context") /* region of compiled code */                                                                            \
    X(metadata, "user_metadata")  /* the user's words */

// An event of one device. address, size_bytes and stream are 0 if the file does not have them.
struct vram_recorded_event {
    const char *action;  // "alloc", "free_requested", ...
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // the request; for segment actions, the segment's size
    uint64_t stream;     // two's complement of the file's number
    int64_t time_us;     // since the epoch; 0 unless has_time
    struct vram_pool_id pool;
    uint32_t stack;
    uint32_t thread; // the system's thread id; 0: unknown
    bool has_time;
#define VRAM_EVENT_TEXT_MEMBER(member, column) const char *member;
    VRAM_EVENT_TEXTS(VRAM_EVENT_TEXT_MEMBER)
#undef VRAM_EVENT_TEXT_MEMBER
};
VRAM_API bool vram_recording_event(const struct vram_recording *recording, uint32_t device, uint64_t index,
                                   struct vram_recorded_event *row);

// A segment; its blocks are the block_count rows from first_block.
struct vram_recorded_segment {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t allocated_bytes;
    uint64_t active_bytes;
    uint64_t requested_bytes;
    uint64_t stream;
    uint64_t first_block;
    uint64_t block_count;
    struct vram_pool_id pool;
    uint32_t device;
    uint32_t stack;
    const char *kind; // "small", "large" or ""
    bool expandable;
};
VRAM_API bool vram_recording_segment(const struct vram_recording *recording, uint64_t index, struct vram_recorded_segment *row);

// A block of a segment.
struct vram_recorded_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes;
    uint32_t stack;
    const char *state; // "inactive", "active_allocated", ...
};
VRAM_API bool vram_recording_block(const struct vram_recording *recording, uint64_t index, struct vram_recorded_block *row);

// A mark: the "START" or "END" of a named span, or a "STEP".
struct vram_recorded_annotation {
    const char *name;
    const char *stage;
    int64_t device;
    int64_t time_us;
};
VRAM_API bool vram_recording_annotation(const struct vram_recording *recording, uint64_t index, struct vram_recorded_annotation *row);

// Reads a setting; its value is JSON text.
VRAM_API bool vram_recording_setting_at(const struct vram_recording *recording, uint64_t index, const char **key, const char **value);

// Return the number of distinct stacks, including the empty one, and of distinct frames. A frame's line 0 means unknown.
VRAM_API uint32_t vram_recording_stack_count(const struct vram_recording *recording);
VRAM_API uint32_t vram_recording_frame_count(const struct vram_recording *recording);
// Returns the frames of a stack, innermost first, borrowed from the recording; *count is 0 if the stack does not exist.
VRAM_API const uint32_t *vram_recording_stack(const struct vram_recording *recording, uint32_t stack, uint64_t *count);
// Finds the frame that is the call site of each stack: the program's own line, otherwise the most informative frame
// (docs/guides/profile.md); VRAM_NO_FRAME if the stack has no frames. `frames` has room for vram_recording_stack_count() numbers.
// NO_HOST_MEMORY.
#define VRAM_NO_FRAME UINT32_MAX
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_sites(const struct vram_recording *recording, uint32_t *frames);
// Returns the index of the call site's frame among `frames`, innermost first, by the same rules; SIZE_MAX if there are none.
VRAM_API size_t vram_site_of_frames(const struct vram_frame *frames, size_t count);
// Excludes frames whose "file:line:function" matches the extended regular expression from being a call site, unless the stack has no other
// frame: for the program's own wrappers. Expressions of several calls add up. INVALID_ARGUMENT with a message, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_skip_frames(struct vram_recording *recording, const char *expression,
                                                                    struct vram_error *error);
VRAM_API bool vram_recording_frame(const struct vram_recording *recording, uint32_t frame, struct vram_frame *row);

// --- symbols -----------------------------------------------------------------------------------------------------------------------------
// Symbolizes the machine code in a recording after the fact.
//
// A recording made by `vram run` or with vram/stack.h has frames of machine code as offsets in a module. Any machine can resolve them that
// has the modules (or files with the same build ids) and, for lines and inlined functions, their debug information and elfutils' libdw.
// Files are matched by build id: a module that was rebuilt since is not used.

// A zeroed struct selects the defaults.
struct vram_symbols_options {
    const char *const *debug_dirs; // folders with .build-id/ab/cdef....debug, searched before /usr/lib/debug; may be NULL
    size_t debug_dir_count;
    bool names_only; // use symbol tables only, which is faster
};

struct vram_symbols_counts {
    uint64_t frames;          // distinct frames that were unresolved
    uint64_t named;           // of those frames, how many have a name now
    uint64_t lined;           // of those frames, how many have a line now
    uint64_t modules;         // modules that those frames are in
    uint64_t modules_missing; // of those modules, how many have no file with the same build id here
};

// Resolves the frames that it can and leaves the others unchanged. *counts (may be NULL) receives the numbers. No other thread may use the
// recording meanwhile. NO_HOST_MEMORY, INVALID_ARGUMENT for a NULL recording; the recording is then unchanged.
VRAM_API VRAM_NODISCARD enum vram_status
vram_recording_symbolize(struct vram_recording *recording, const struct vram_symbols_options *options, struct vram_symbols_counts *counts);

// Receives a frame of the address offsets[index]; its strings are borrowed for the call. `filename` is "" and `line` 0 if the source is
// unknown. Return false to end the search.
typedef bool vram_symbol_found(void *user, size_t index, const struct vram_frame *frame);
// Resolves `count` return addresses of one module (a file) without a recording. They are offsets from the module's beginning, ascending and
// distinct. Calls `found` for each frame of an address, from the innermost inlined function outwards; not at all for an unknown address.
// build_id is in hexadecimal; NULL or "" accepts any file at that path. options may be NULL. NO_HOST_MEMORY; INVALID_ARGUMENT for NULL or
// for offsets in another order.
VRAM_API VRAM_NODISCARD enum vram_status vram_symbolize(const char *module, const char *build_id, const uint64_t *offsets, size_t count,
                                                        const struct vram_symbols_options *options, vram_symbol_found *found, void *user);

#ifdef __cplusplus
}
#endif
#endif
