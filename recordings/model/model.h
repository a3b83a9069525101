// model.h: a recording as plain columns: segments, blocks and events of every device, without pointers into live state. Readers of files
// and the allocator's snapshot fill it; analysis and replay read it.
//
// Everything is an array indexed by a small number: a string, frame or stack id, a row of segments or blocks, or a row of a device's
// history. String 0 is "", stack 0 the empty stack. Arrays of n+1 offsets end with the total.
#ifndef VR_MODEL_MODEL_H
#define VR_MODEL_MODEL_H

#include "base/base.h"

// The top level of the file that the model was read from.
enum vr_form { VR_FORM_DICT, VR_FORM_SEGMENT_LIST };

// The actions of a history, under PyTorch's names. X(CONSTANT, "name in files")
#define VR_ACTIONS(X)                                                                                                                      \
    X(ALLOC, "alloc")                                                                                                                      \
    X(FREE_REQUESTED, "free_requested")                                                                                                    \
    X(FREE_COMPLETED, "free_completed")                                                                                                    \
    X(FREE, "free")                                                                                                                        \
    X(SEGMENT_ALLOC, "segment_alloc")                                                                                                      \
    X(SEGMENT_FREE, "segment_free")                                                                                                        \
    X(SEGMENT_MAP, "segment_map")                                                                                                          \
    X(SEGMENT_UNMAP, "segment_unmap")                                                                                                      \
    X(SNAPSHOT, "snapshot")                                                                                                                \
    X(OOM, "oom")                                                                                                                          \
    X(USER_DEFINED, "user_defined")                                                                                                        \
    X(ANNOTATE, "annotate")                                                                                                                \
    X(UNKNOWN, "unknown")

enum vr_action {
#define VR_ACTION_ENUM(name, text) VR_ACTION_##name,
    VR_ACTIONS(VR_ACTION_ENUM)
#undef VR_ACTION_ENUM
        VR_ACTION_COUNT
};
const char *vr_action_name(enum vr_action action);

enum vr_block_state {
    VR_STATE_INACTIVE,
    VR_STATE_ALLOCATED,     // "active_allocated"
    VR_STATE_PENDING_FREE,  // "active_pending_free"
    VR_STATE_AWAITING_FREE, // "active_awaiting_free", the older name
    VR_STATE_UNKNOWN,
    VR_STATE_COUNT
};
const char *vr_block_state_name(enum vr_block_state state);
// Return whether a block is allocated (not yet freed by the program) or active (not yet reusable).
VR_INLINE bool vr_state_allocated(uint8_t state) { return state == VR_STATE_ALLOCATED; }
VR_INLINE bool vr_state_active(uint8_t state) { return state != VR_STATE_INACTIVE && state != VR_STATE_UNKNOWN; }

enum vr_segment_kind { VR_KIND_UNKNOWN, VR_KIND_SMALL, VR_KIND_LARGE };

// Distinct strings. String i is bytes[offset[i] .. offset[i+1]-1), followed by a NUL; string 0 is "". Bytes are UTF-8 as in the file, with
// surrogates as encoded there.
struct vr_strings {
    char *bytes;
    uint64_t *offset; // count + 1
    uint32_t count;   // at least 1
};

// Distinct frames.
struct vr_frames {
    uint32_t *name;     // string id
    uint32_t *filename; // string id
    int64_t *line;      // two's complement of the file's number: PyTorch writes an unknown line as 2^64 - 1
    uint32_t count;
    uint8_t *skipped; // by frame: nonzero if the user excluded it as a call site (analyze/sites.c); NULL: no frame is excluded
};

// Distinct stacks: frame ids, innermost first. Stack 0 is empty.
struct vr_stacks {
    uint32_t *frame;  // frame ids of all stacks, one after the other
    uint64_t *offset; // count + 1
    uint32_t count;   // at least 1
};

// The optional keys that a segment, block or event has in the file.
enum {
    VR_HAS_DEVICE = 1u << 0,
    VR_HAS_ADDRESS = 1u << 1,
    VR_HAS_TOTAL_SIZE = 1u << 2,
    VR_HAS_ALLOCATED_SIZE = 1u << 3,
    VR_HAS_ACTIVE_SIZE = 1u << 4,
    VR_HAS_REQUESTED_SIZE = 1u << 5,
    VR_HAS_STREAM = 1u << 6,
    VR_HAS_SEGMENT_TYPE = 1u << 7,
    VR_HAS_POOL_ID = 1u << 8,
    VR_HAS_EXPANDABLE = 1u << 9,
    VR_HAS_FRAMES = 1u << 10,
    VR_HAS_BLOCKS = 1u << 11,
    VR_HAS_SIZE = 1u << 12,
    VR_HAS_STATE = 1u << 13,
    VR_HAS_HISTORY = 1u << 14,
    VR_HAS_ACTION = 1u << 15,
    VR_HAS_TIME = 1u << 16,
    VR_HAS_DEVICE_FREE = 1u << 17,
    VR_HAS_COMPILE_CONTEXT = 1u << 18,
    VR_HAS_USER_METADATA = 1u << 19,
    VR_HAS_COUNTER = 1u << 20,
    VR_HAS_THREAD = 1u << 21,
    VR_HAS_CATEGORY = 1u << 22,
    VR_HAS_POOL_LIST = 1u << 23, // the pool id is a list of two instead of PyTorch's pair
    VR_HAS_CPP_FRAMES = 1u << 24,
    VR_HAS_ADDR = 1u << 25, // a block has `addr` (written by other tools) instead of `address`
};

// Segments of all devices, in file order.
struct vr_segments {
    uint32_t *device;
    uint64_t *address;
    uint64_t *total_bytes;
    uint64_t *allocated_bytes;
    uint64_t *active_bytes;
    uint64_t *requested_bytes;
    uint64_t *stream;     // two's complement of the file's number
    uint64_t *pool_first; // private pool id; (0,0) is the default pool
    uint64_t *pool_second;
    uint64_t *counter; // registration counter, if the file has one
    uint32_t *stack;
    uint32_t *has; // VR_HAS_ bits
    uint8_t *kind; // enum vr_segment_kind
    uint8_t *expandable;
    uint64_t *first_block; // count + 1: rows of struct vr_blocks
    size_t count;
};

// Blocks of all segments, segment by segment in file order. A missing address or requested size is derived by rule R2 of the data's README
// (address: running sum; requested size: from the block's history, otherwise its size).
struct vr_blocks {
    uint64_t *address;
    uint64_t *size_bytes;
    uint64_t *requested_bytes;
    uint32_t *stack;
    uint32_t *has;
    uint8_t *state; // enum vr_block_state
    size_t count;
};

// An entry of a block's `history` (torch 2.0): an allocation that had the block, newest first.
struct vr_tenant {
    uint64_t block; // row of struct vr_blocks
    uint64_t address;
    uint64_t size_bytes; // `real_size`
    uint32_t stack;      // `frames`
    uint32_t cpp_stack;  // `cpp_frames`
    uint32_t has;        // VR_HAS_ADDRESS, VR_HAS_SIZE, VR_HAS_FRAMES, VR_HAS_CPP_FRAMES
};

// One device's events, oldest first: a column for each field. An ALIKE column stores the XOR with the value that most events have: event i
// has the value apart[i] ^ common.
struct vr_history {
#define VR_COLUMN_DENSE(type, column)  type *column;
#define VR_COLUMN_SPARSE(type, column) type *column;
#define VR_COLUMN_ALIKE(type, column)                                                                                                      \
    struct {                                                                                                                               \
        type *apart;                                                                                                                       \
        type common;                                                                                                                       \
    } column;
#define VR_FIELD(column, type, density, ...) VR_COLUMN_##density(type, column)
#include "model/entry_fields.def"
#undef VR_COLUMN_DENSE
#undef VR_COLUMN_SPARSE
#undef VR_COLUMN_ALIKE
    size_t count;
};
VR_INLINE uint64_t vr_entry_stream(const struct vr_history *history, size_t event) {
    return history->stream.apart[event] ^ history->stream.common;
}
// Returns whether it is obvious that all events have the same stream and keys: both columns are then the shared array of zeros.
VR_INLINE bool vr_entries_alike(const struct vr_history *history) {
    return (const void *)history->stream.apart == (const void *)history->has.apart;
}
VR_INLINE uint32_t vr_entry_has(const struct vr_history *history, size_t event) { return history->has.apart[event] ^ history->has.common; }

struct vr_annotation {
    uint32_t name; // string ids
    uint32_t stage;
    int64_t device;
    int64_t time_us;
};

// A setting as in the file: its key, and its value as JSON text.
struct vr_setting {
    uint32_t key;
    uint32_t value;
};

// A program file or shared library that stacks run through. A frame is unresolved if its filename is a module's path and its name is "0x"
// and a hexadecimal number: the return address minus the module's load address; its line is 0.
struct vr_module {
    uint32_t path;     // string ids
    uint32_t build_id; // in hexadecimal; "" if absent
};

// A key that no column holds, on a row of a table or at the top level, kept so that writing a recording loses nothing. A key that a column
// holds is also kept here if the column cannot express its value in the file (None, another type, an unknown word); writers then write this
// value.
enum vr_owner {
    VR_OWNER_TOP,
    VR_OWNER_SEGMENT,
    VR_OWNER_BLOCK,
    VR_OWNER_EVENT,
    VR_OWNER_FRAME,
    VR_OWNER_ANNOTATION,
    VR_OWNER_TENANT,
    VR_OWNER_COUNT
};
struct vr_extra {
    uint8_t owner;   // enum vr_owner
    uint32_t device; // index in histories for an event; otherwise 0
    uint64_t row;    // of the owner's table; 0 for the top level
    uint32_t key;    // string id
    uint32_t value;  // string id of the value as JSON text (recordings/snapshot/literals.h); "": the file does not have the key
};

// Kinds of contents that the model lacks, so that no writer can reproduce the file.
enum vr_loss {
    VR_LOSS_NONE,
    VR_LOSS_TOO_MUCH,   // the file has more extras than are kept for its size
    VR_LOSS_NOT_A_LIST, // a tuple or a set was read as a list
    VR_LOSS_NUMBER,     // a number of a pool id is not an integer
    VR_LOSS_KEY,        // a dictionary that became a row has a key that is not a string
    VR_LOSS_FRAME,      // two frames have the same name, file and line, but different extras
};

// The way one of vram's own files ended.
enum vr_ending {
    VR_ENDING_WHOLE, // complete; also for all other files
    VR_ENDING_OPEN,  // not closed: the program was killed or is still writing; everything recorded until then is present
    VR_ENDING_CUT    // truncated or damaged; everything before that point is present
};

struct vr_model {
    enum vr_form form;
    enum vr_ending ending;
    uint64_t damaged_at; // CUT: the file offset of the damaged block; 0: the file ends there, undamaged
    struct vr_strings strings;
    struct vr_frames frames;
    struct vr_stacks stacks;
    struct vr_segments segments;
    struct vr_blocks blocks;
    struct vr_tenant *tenants; // by block
    size_t tenant_count;
    struct vr_history *histories; // indexed by device ordinal; may be longer or shorter than the devices in use
    size_t history_count;
    size_t host_count; // 1 if the last history (and that `device` of segments) is pinned host memory; otherwise 0
    struct vr_annotation *annotations;
    size_t annotation_count;
    struct vr_setting *settings; // entries of allocator_settings, in file order; nested dictionaries are JSON text
    size_t setting_count;
    uint32_t *top_level_keys; // string ids, in file order
    size_t top_level_key_count;
    struct vr_module *modules;
    size_t module_count;
    struct vr_extra *extras; // by owner, device, row; within a row in file order
    size_t extra_count;
    enum vr_loss loss; // the first loss of the file's data
    uint32_t lost_key; // string id of the key with the lost value; 0: it has no name
};

VR_INLINE const char *vr_model_string(const struct vr_model *model, uint32_t id) {
    return model->strings.bytes + model->strings.offset[id];
}
VR_INLINE size_t vr_model_string_length(const struct vr_model *model, uint32_t id) {
    return (size_t)(model->strings.offset[id + 1] - model->strings.offset[id] - 1);
}

// Returns whether a device number of the model means pinned host memory.
VR_INLINE bool vr_model_is_host(const struct vr_model *model, uint64_t device) {
    return model->host_count != 0 && device + 1 == model->history_count;
}

// Frees every column and zeroes *model.
void vr_model_release(struct vr_model *model);
// Frees strings, frames and stacks only, and zeroes them, so that the caller can replace them.
void vr_model_release_names(struct vr_model *model);
// Checks that every id and offset is in range and monotonic. BAD_INPUT names the first that is not.
enum vram_status vr_model_check(const struct vr_model *model, struct vram_error *error);
// Returns the JSON text of a setting, or NULL if the recording does not have the key.
const char *vr_model_setting(const struct vr_model *model, const char *key);

#endif
