// vram/walk.h: now vram/recording.h; this name is kept for one release.
#ifndef VRAM_WALK_H
#define VRAM_WALK_H
#include "vram/recording.h"
<<<<<<< HEAD
#include "vram/stack.h"

#ifdef __cplusplus
    extern "C" {
#endif

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
// Which frame stands for each stack: the innermost Python frame outside torch itself, else the innermost frame, or where that one only
// recorded the stack what tells more (docs/guides/profile.md); VRAM_NO_FRAME for none.
// frames has room for vram_recording_stack_count() numbers. NO_HOST_MEMORY.
#define VRAM_NO_FRAME UINT32_MAX
    VRAM_API VRAM_NODISCARD enum vram_status vram_recording_sites(const struct vram_recording *recording, uint32_t *frames);
    VRAM_API bool vram_recording_frame(const struct vram_recording *recording, uint32_t frame, struct vram_frame *row);

#ifdef __cplusplus
}
#endif
=======
>>>>>>> main
#endif
