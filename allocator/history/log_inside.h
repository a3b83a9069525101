// log_inside.h: a log from the inside: who keeps what until it is in a block.
#ifndef VR_HISTORY_LOG_INSIDE_H
#define VR_HISTORY_LOG_INSIDE_H

#include "history/logfile.h"
#include "model/builder.h"
#include "vram/log.h"

enum { VR_LOG_SPANS_MAX = 1 << 14 };

// Everything is under the lock. Dictionaries are held whole, because equal contents get equal ids; of everything else only what the tail
// holds, too, and a span of blocks for the index each time.
struct vram_log {
    struct vr_mutex lock;
    bool serialized; // by the caller: the lock is not taken
    struct vr_logfile file;
    uint64_t block_events;
    uint64_t max_bytes;          // UINT64_MAX: none
    enum vram_status stopped;    // what every further call gives: OK, IO, LIMIT
    uint64_t events;             // in blocks and tail; those of the tail are in the maker's encoder, too
    struct vram_log_event usual; // as the last event but for action, address, size, time and stack: what it names is known
    bool has_usual;
    size_t room; // for so many events nothing has to be looked at but whether they are as usual; 0 where it is not known
    struct vr_builder builder;
    struct vr_module *modules;
    size_t module_count;
    size_t module_capacity;
    // Rows that blocks hold already.
    uint32_t packed_strings;
    uint32_t packed_frames;
    uint32_t packed_stacks;
    size_t packed_modules;
    uint64_t packed_annotations;
    uint64_t packed_settings;
    // Rows of the tail.
    struct vr_annotation *annotations;
    size_t annotation_count;
    size_t annotation_capacity;
    struct vr_setting *settings;
    size_t setting_count;
    size_t setting_capacity;
    // The index so far: each span is `span_blocks` blocks, the last one fewer.
    struct vr_log_span *spans;
    size_t span_count;
    size_t span_capacity;
    size_t span_blocks;
    size_t last_span_blocks;
    struct vr_log_maker maker;
};

// Packs the tail and whatever dictionary rows no block holds into a block; nothing where there is nothing. Sets log->stopped when it fails.
enum vram_status vr_log_seal_locked(struct vram_log *log);
// Makes a block of log->maker, puts it into the file and notes it for the index. Sets log->stopped when it fails, or when the file is as
// large as it may be.
enum vram_status vr_log_put_locked(struct vram_log *log);
// The block with the index, and the trailer.
enum vram_status vr_log_finish_locked(struct vram_log *log);
// Sections of a state, in log->maker.tables. INVALID_ARGUMENT for a stack that is not the log's, or states and sizes that cannot be.
enum vram_status vr_log_state_sections(struct vram_log *log, const struct vram_log_segment *segments, size_t count);

#endif
