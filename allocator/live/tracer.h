// tracer.h: what records the history of one allocator.
//
//   tracer ── rings: the newest events of each device, the last for pinned host memory
//     ├── marks: annotations and steps, of all devices
//     ├── stacks: each distinct call stack once; blocks and events hold their numbers
//     └── stream: where events go instead, when there is a file
//
// A tracer is made with the first vram_history_start() of an allocator and lives as long as it: live blocks keep numbers of its stacks.
// What the options say is in atomics: whoever tells reads them under the lock of what it tells, and every change is followed by taking all
// of those locks once, so that nobody uses what was replaced.
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

// Bit a: action a (enum vr_record_action) is not stored. Above them: events carry stacks, compile contexts.
enum { VR_TRACER_SKIPS = (1 << VR_RECORD_COUNT) - 1, VR_TRACER_STACKS = 1 << 30, VR_TRACER_CONTEXTS = 1 << 29 };

// A file that events are streamed into. Its lock is the log's own; `words` are guarded by `mutex`, which whoever uses the log holds, or
// else the tracer's.
struct vr_stream {
    struct vram_log *log;
    char *pattern; // of the file's name, if a child of this process is to have a file of its own; NULL: it has none
    uint64_t max_bytes;
    struct vr_mutex mutex;
    uint32_t *words; // the log's string for each number of a text; 0: not asked yet
    size_t word_capacity;
    _Atomic uint64_t events; // that came
    _Atomic uint64_t lost;
};

// Two readings of both clocks give the rate.
struct vr_instant {
    uint64_t ticks;
    uint64_t epoch_ns;
};
struct vr_instant vr_instant_now(void);
// The time of `ticks` on the line through two instants; the first one's where they are the same.
uint64_t vr_instant_ns(const struct vr_instant *from, const struct vr_instant *to, uint64_t ticks);

struct vr_tracer {
    struct vr_listener listener;
    struct vram_allocator *allocator;
    enum vram_status (*stop)(struct vram_allocator *allocator); // vram_history_stop(), which is above this file; NULL: never started
    struct vram_stacks *stacks;
    struct vr_instant origin;
    _Atomic uint32_t kind;  // enum vram_stack_kind
    _Atomic uint32_t flags; // VR_TRACER_ bits
    // Where the events of each ring go instead; NULL: into the ring. Changed under the locks that order the ring's events, so that the
    // state of that moment stands between the last event of one file and the first of the next.
    _Atomic(struct vr_stream *) streams[VR_TRACER_RINGS];
    _Atomic bool recording;
    _Atomic uint32_t marks_of; // the thread whose marks are recorded; 0: every thread's
    struct vr_mutex mutex;     // guards start, stop and snapshots against each other, and what follows
    uint64_t max_entries;      // written with marks_mutex as well: pools fall asleep without this mutex
    struct vr_stream *stream;  // the file that is written now; NULL: none
    struct vram_host *host;    // whose memory is recorded too
    struct vr_host_listener host_listener;
    struct vr_mutex marks_mutex;
    struct vr_marks marks;
    struct vr_ring rings[VR_TRACER_RINGS];
    struct vr_tracer *next; // of the list of tracers, for forks
};

// The allocator's tracer; NULL when its history was never started.
struct vr_tracer *vr_tracer_of(struct vram_allocator *allocator);
// The allocator's tracer, made if need be. NO_HOST_MEMORY.
enum vram_status vr_tracer_make(struct vram_allocator *allocator, uint32_t max_frames, struct vr_tracer **tracer);

// From now on a child of this process gets a file of its own for this one, by the pattern. Without memory for it, it gets none.
void vr_tracer_set_pattern(struct vr_tracer *tracer, const char *pattern);

// Records an event (two, of a free that is complete) in a ring. Under the lock that orders it.
void vr_tracer_notify(struct vr_tracer *tracer, uint32_t ring, const struct vr_record *record);
// The model's name of a record's action.
enum vr_action vr_tracer_action(enum vr_record_action action);

// --- live_stream.c
// -------------------------------------------------------------------------------------------------------------------------
enum vram_status vr_stream_open(const struct vram_history_options *options, struct vr_stream **stream, struct vram_error *error);
enum vram_status vr_stream_close(struct vr_stream *stream);
// In the child of a fork, with the stream's mutex: leaves the file to the parent. *made: the child's own file, NULL without a pattern.
void vr_stream_leave(struct vr_stream *stream, struct vr_stream **made);
// completes: a free and, behind it, its completion. The event's ticks are not looked at: it is written down now.
void vr_stream_event(struct vr_stream *stream, struct vram_stacks *stacks, uint32_t ring, const struct vr_event *event, bool completes);
enum vram_status vr_stream_mark(struct vr_stream *stream, const struct vr_mark *mark);
struct vr_copied;
// Writes the settings only, for a file that may not come to its end.
enum vram_status vr_stream_settings(struct vr_stream *stream, const struct vr_copied *copied);
struct vr_oom_facts;
// Adds what an out of memory adds to the settings.
enum vram_status vr_stream_oom(struct vr_stream *stream, const struct vr_oom_facts *facts);
// Writes settings and state, that of the moment after the last event. IO, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stream_state(struct vr_stream *stream, const struct vr_copied *copied);

#endif
