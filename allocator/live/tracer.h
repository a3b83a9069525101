// tracer.h: records the history of one allocator.
//
//   tracer ── rings: the newest events of each device, the last for pinned host memory
//     ├── marks: annotations and steps, of all devices
//     ├── stacks: each distinct call stack once; blocks and events hold their numbers
//     └── stream: where events go instead, when there is a file
//
// A tracer is made with the first vram_history_start() of an allocator and lives as long as it: live blocks keep numbers of its stacks.
// The options are in atomics. A function that records reads them under the lock of the recorded object. Every change takes all of those
// locks once afterwards, so that no thread uses a replaced option.
#ifndef VR_LIVE_TRACER_H
#define VR_LIVE_TRACER_H

#include "core/record.h"
#include "history/ring.h"
#include "history/thread_text.h"
#include "host/host_notify.h"
#include "live/marks.h"
#include "model/model.h"
#include "os/os.h"
#include "vram/history.h"
#include "vram/log.h"
#include "vram/stack.h"

enum { VR_TRACER_HOST = VRAM_MAX_DEVICES, VR_TRACER_RINGS };

// Bit a: action a (enum vr_record_action) is not stored. Higher bits: events carry stacks, compile contexts.
enum { VR_TRACER_SKIPS = (1 << VR_RECORD_COUNT) - 1, VR_TRACER_STACKS = 1 << 30, VR_TRACER_CONTEXTS = 1 << 29 };

// A file that receives events. The log has a lock of its own; `mutex` guards `words`. A thread that uses the log holds `mutex` or the
// tracer's mutex.
struct vr_stream {
    struct vram_log *log;
    char *pattern; // for a child's own file name; NULL: a child gets no file
    uint64_t max_bytes;
    struct vr_mutex mutex;
    uint32_t *words; // the log's string for each number of a text; 0: unknown
    size_t word_capacity;
    _Atomic uint64_t events; // received
    _Atomic uint64_t lost;
};

// A reading of both clocks; two readings give the rate.
struct vr_instant {
    uint64_t ticks;
    uint64_t epoch_ns;
};
struct vr_instant vr_instant_now(void);
// Returns the time of `ticks` on the line through two instants, or the first one's if both are equal.
uint64_t vr_instant_ns(const struct vr_instant *from, const struct vr_instant *to, uint64_t ticks);

struct vr_tracer {
    struct vr_listener listener;
    struct vram_allocator *allocator;
    enum vram_status (*stop)(struct vram_allocator *allocator); // vram_history_stop(), which is above this file; NULL: never started
    struct vram_stacks *stacks;
    struct vr_instant origin;
    _Atomic uint32_t kind;  // enum vram_stack_kind
    _Atomic uint32_t flags; // VR_TRACER_ bits
    // Destination of each ring's events; NULL: the ring. Changed under the locks that order the ring's events, so that a state is between
    // the last event of one file and the first of the next.
    _Atomic(struct vr_stream *) streams[VR_TRACER_RINGS];
    _Atomic bool recording;
    _Atomic uint32_t marks_of; // the only thread whose marks are recorded; 0: all threads
    struct vr_mutex mutex;     // serializes start, stop and snapshots, and guards the fields below
    uint64_t max_entries;      // written with marks_mutex as well: memory goes away without this mutex
    struct vr_stream *stream;  // the current file; NULL: none
    struct vram_host *host;    // pinned memory that is also recorded
    struct vr_host_listener host_listener;
    struct vr_mutex marks_mutex;
    struct vr_marks marks;
    struct vr_ring rings[VR_TRACER_RINGS];
    struct vr_tracer *next; // in the list of tracers, for forks
};

// Returns the allocator's tracer, or NULL if its history was never started.
struct vr_tracer *vr_tracer_of(struct vram_allocator *allocator);
// Gets the allocator's tracer, creating it if needed. NO_HOST_MEMORY.
enum vram_status vr_tracer_make(struct vram_allocator *allocator, uint32_t max_frames, struct vr_tracer **tracer);

// Lets each child of this process open a file of its own by this pattern from now on. Without memory for the pattern, children get no file.
void vr_tracer_set_pattern(struct vr_tracer *tracer, const char *pattern);

// Records an event in a ring (two events for a completed free). Called under the lock that orders it.
void vr_tracer_notify(struct vr_tracer *tracer, uint32_t ring, const struct vr_record *record);
// Returns the model's action for a record's action.
enum vr_action vr_tracer_action(enum vr_record_action action);

// --- live_stream.c ----------------------------------------------------------------------------------------------------------------------
enum vram_status vr_stream_open(const struct vram_history_options *options, struct vr_stream **stream, struct vram_error *error);
enum vram_status vr_stream_close(struct vr_stream *stream);
// Leaves the file to the parent. Called in the child of a fork with the stream's mutex held. *made: the child's own file, or NULL without a
// pattern.
void vr_stream_leave(struct vr_stream *stream, struct vr_stream **made);
// completes: also write the completion of a free. The event's ticks are ignored: it is written with the current time.
void vr_stream_event(struct vr_stream *stream, struct vram_stacks *stacks, uint32_t ring, const struct vr_event *event, bool completes);
enum vram_status vr_stream_mark(struct vr_stream *stream, const struct vr_mark *mark);
struct vr_copied;
// Writes only the settings, for a file that may never be finished.
enum vram_status vr_stream_settings(struct vr_stream *stream, const struct vr_copied *copied);
struct vr_oom_facts;
// Adds the settings of an OOM.
enum vram_status vr_stream_oom(struct vr_stream *stream, const struct vr_oom_facts *facts);
// Writes settings, and the state after the last event. IO, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stream_state(struct vr_stream *stream, const struct vr_copied *copied);

#endif
