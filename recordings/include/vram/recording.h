// vram/recording.h: a recording of device memory, read from a file.
//
// A recording is what PyTorch's memory snapshot holds: segments and blocks, the history of every device, settings and
// annotations. The reader knows the pickles that PyTorch writes (both writers, protocols 2 to 5), the same data as JSON, bare
// lists of segments, HTML pages with a pickle inside, and vram's own files (.vram); it tells them apart by their first bytes. Nothing in a
// file is ever executed, and no file makes the reader hold more than a few times its size. A recording is immutable: any number of threads
// may use it at once.
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

// Where bytes come from. read() puts at most `capacity` bytes into `buffer` and returns how many, 0 at the end, SIZE_MAX when
// it cannot read on. `name` stands in messages; NULL for none. `bytes`: how many there will be, where the caller knows; tables are then
// made as large as they will have to be; 0 for not known. A number that is wrong changes nothing else. `most_memory_bytes`: what reading
// may take, buffers too; 0: what the input's length explains. Borrowed for the length of one call.
struct vram_input {
    size_t (*read)(void *context, void *buffer, size_t capacity);
    void *context;
    const char *name;
    uint64_t bytes;
    uint64_t most_memory_bytes;
};

// Reads one recording to its end. *recording is given to the caller: vram_recording_destroy(). BAD_INPUT for what is no
// recording, LIMIT for a file that unpacks to far more than its size, IO when read() fails, NO_HOST_MEMORY; *error (may be
// NULL) says what, and its offset is the byte of the input (of the embedded data, for an HTML page). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read(const struct vram_input *input, struct vram_recording **recording,
                                                             struct vram_error *error);
// The same from `size` bytes at `data`, which are borrowed for the call. `name` may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_memory(const void *data, size_t size, const char *name,
                                                                    struct vram_recording **recording, struct vram_error *error);
// The same from the plain file at `path`. IO also when it cannot be opened.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_read_file(const char *path, struct vram_recording **recording,
                                                                  struct vram_error *error);
// Takes the recording back. NULL is ignored.
VRAM_API void vram_recording_destroy(struct vram_recording *recording);

// The two shapes: a dictionary with history and settings, or a bare list of segments.
enum vram_recording_form { VRAM_RECORDING_DICT, VRAM_RECORDING_SEGMENT_LIST };
VRAM_API enum vram_recording_form vram_get_recording_form(const struct vram_recording *recording);
// How the file ended. OPEN and CUT are only of vram's own files (docs/reference/formats/recording.md).
enum vram_recording_ending {
    VRAM_RECORDING_WHOLE, // as it should
    VRAM_RECORDING_OPEN,  // not closed: the program was killed or writes still; everything recorded until then is there
    VRAM_RECORDING_CUT    // in the middle, or damaged there: what stood before that is there
};
VRAM_API enum vram_recording_ending vram_get_recording_ending(const struct vram_recording *recording);
// One more than the largest device ordinal that has a segment or an event; 0 for an empty recording.
VRAM_API uint32_t vram_recording_device_count(const struct vram_recording *recording);
// Whether a device number of this recording stands for pinned host memory, not for a GPU. False for a device that is not there.
VRAM_API bool vram_recording_device_is_host(const struct vram_recording *recording, uint32_t device);
// Events of `device`, or of all devices for VRAM_ALL_DEVICES. 0 for a device that is not there.
#define VRAM_ALL_DEVICES UINT32_MAX
VRAM_API uint64_t vram_recording_event_count(const struct vram_recording *recording, uint32_t device);
// Segments and blocks of all devices.
VRAM_API uint64_t vram_recording_segment_count(const struct vram_recording *recording);
VRAM_API uint64_t vram_recording_block_count(const struct vram_recording *recording);
// The JSON text of a key of allocator_settings ("true", "-1", "\"expandable_segments:True\""), or NULL. Borrowed from the recording.
// What JSON has no word for is a dictionary of one key: a tuple {"$tuple": [...]}, an infinity {"$float": "inf"}.
VRAM_API const char *vram_recording_setting(const struct vram_recording *recording, const char *key);

// --- row by row --------------------------------------------------------------------------------------------------------------------------
// A recording's rows as plain structs, for programs that want all of it in a form of their own.
//
// Everything is counted from 0 and is given in the order of the file. Strings are NUL-terminated, "" for none, and borrowed from the
// recording. Stacks are numbers below vram_recording_stack_count(), 0 for none; a stack is a list of numbers of frames. Functions fill *row
// and return true; false, with *row untouched, for a row that is not there. Any number of threads at once.

// The texts of an event, as tables show them. X(member, "column")
#define VRAM_EVENT_TEXTS(X)                                                                                                                \
    X(category, "category")                                                                                                                \
    X(context, "compile_context") /* region of compiled code */                                                                            \
    X(metadata, "user_metadata")  /* the user's words */

// An event of one device. address, size_bytes and stream are 0 where the file has none.
struct vram_recorded_event {
    const char *action;  // "alloc", "free_requested", ...
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // what was asked for; of segments what they have
    uint64_t stream;     // two's complement of what the file says
    int64_t time_us;     // since the epoch; 0 unless has_time
    struct vram_pool_id pool;
    uint32_t stack;
    uint32_t thread; // the system's number; 0: none
    bool has_time;
#define VRAM_EVENT_TEXT_MEMBER(member, column) const char *member;
    VRAM_EVENT_TEXTS(VRAM_EVENT_TEXT_MEMBER)
#undef VRAM_EVENT_TEXT_MEMBER
};
VRAM_API bool vram_recording_event(const struct vram_recording *recording, uint32_t device, uint64_t index,
                                   struct vram_recorded_event *row);

// A segment; its blocks are block_count rows from first_block on.
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

// A mark: "START" and "END" of something named, or "STEP".
struct vram_recorded_annotation {
    const char *name;
    const char *stage;
    int64_t device;
    int64_t time_us;
};
VRAM_API bool vram_recording_annotation(const struct vram_recording *recording, uint64_t index, struct vram_recorded_annotation *row);

// A setting; its value is JSON text.
VRAM_API bool vram_recording_setting_at(const struct vram_recording *recording, uint64_t index, const char **key, const char **value);

// Distinct stacks, the empty one included, and distinct frames. A line of 0 is unknown.
VRAM_API uint32_t vram_recording_stack_count(const struct vram_recording *recording);
VRAM_API uint32_t vram_recording_frame_count(const struct vram_recording *recording);
// The frames of a stack, innermost first, borrowed from the recording; *count is 0 for a stack that is not there.
VRAM_API const uint32_t *vram_recording_stack(const struct vram_recording *recording, uint32_t stack, uint64_t *count);
// Which frame stands for each stack: the program's own line, else what says most of it (docs/guides/profile.md); VRAM_NO_FRAME for none.
// frames has room for vram_recording_stack_count() numbers. NO_HOST_MEMORY.
#define VRAM_NO_FRAME UINT32_MAX
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_sites(const struct vram_recording *recording, uint32_t *frames);
// The same of a stack's frames, innermost first: which of them; SIZE_MAX where there are none.
VRAM_API size_t vram_site_of_frames(const struct vram_frame *frames, size_t count);
// From now on no stack is told by a frame whose "file:line:function" the extended regular expression is found in, but where it has no
// other: for wrappers of the program's own. What other calls skipped stays skipped. INVALID_ARGUMENT with a sentence, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_skip_frames(struct vram_recording *recording, const char *expression,
                                                                    struct vram_error *error);
VRAM_API bool vram_recording_frame(const struct vram_recording *recording, uint32_t frame, struct vram_frame *row);

// --- names for machine code --------------------------------------------------------------------------------------------------------------
// Names for the machine code in a recording, found after the fact.
//
// A recording that was made by `vram run` or with vram/stack.h has frames of machine code as offsets in a module. They are resolved on
// any machine that has the modules (or files with the same build ids), and, for lines and inlined functions, their debug information and
// elfutils' libdw. Files are told by build id: a module that was rebuilt since is not asked.

// All-zero means every default.
struct vram_symbols_options {
    const char *const *debug_dirs; // folders with .build-id/ab/cdef....debug, searched before /usr/lib/debug; may be NULL
    size_t debug_dir_count;
    bool names_only; // symbol tables only, which is quicker
};

struct vram_symbols_counts {
    uint64_t frames;          // distinct frames that were not resolved
    uint64_t named;           // of them, have a name now
    uint64_t lined;           // of them, have a line now
    uint64_t modules;         // that those frames are in
    uint64_t modules_missing; // of them, have no file with their build id here
};

// Resolves what can be. *counts (may be NULL) says how much that was; what could not stays as it is. Nobody else may use the recording
// meanwhile. NO_HOST_MEMORY, INVALID_ARGUMENT for a NULL recording; it is unchanged then.
VRAM_API VRAM_NODISCARD enum vram_status
vram_recording_symbolize(struct vram_recording *recording, const struct vram_symbols_options *options, struct vram_symbols_counts *counts);

// A frame of the address offsets[index]; its strings are borrowed for the call. `filename` is "" and `line` 0 where no source is known.
// False ends the search.
typedef bool vram_symbol_found(void *user, size_t index, const struct vram_frame *frame);
// The same without a recording, of one module (its file) and `count` return addresses in it, given as offsets from its beginning, ascending
// and distinct. Calls `found` for each frame, of one address from the innermost inlined function outwards, and not for an address of which
// nothing is known. build_id: in hexadecimal; NULL or "": any file at that path. options may be NULL. NO_HOST_MEMORY; INVALID_ARGUMENT for
// NULL and for another order of the offsets.
VRAM_API VRAM_NODISCARD enum vram_status vram_symbolize(const char *module, const char *build_id, const uint64_t *offsets, size_t count,
                                                        const struct vram_symbols_options *options, vram_symbol_found *found, void *user);

#ifdef __cplusplus
}
#endif
#endif
