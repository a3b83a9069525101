// log_inside.h: the internal state of a log, held until it is written into a block.
#ifndef VR_HISTORY_LOG_INSIDE_H
#define VR_HISTORY_LOG_INSIDE_H

#include "history/logfile.h"
#include "model/builder.h"
#include "vram/log.h"

enum { VR_LOG_SPANS_MAX = 1 << 14 };

// The lock guards everything. Dictionaries are held whole, because equal contents get equal ids. Of everything else only the rows of the
// tail are held, plus one span of blocks per index entry.
struct vram_log {
    struct vr_mutex lock;
    bool serialized; // by the caller: the lock is not taken
    struct vr_logfile file;
    uint64_t block_events;
    uint64_t max_bytes;       // UINT64_MAX: no limit
    enum vram_status stopped; // status of every further call: OK, IO, LIMIT
    uint64_t events;          // in blocks and tail; those of the tail are also in the maker's encoder
    // The last event. If the next one differs from it only in action, address, size, time and stack, its ids are known.
    struct vram_log_event usual;
    bool has_usual;
    size_t room; // number of events that need only the comparison with `usual`; 0: unknown
    struct vr_builder builder;
    struct vr_module *modules;
    size_t module_count;
    size_t module_capacity;
    // Number of rows already in blocks.
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
    // The index so far: each span covers `span_blocks` blocks, the last one fewer.
    struct vr_log_span *spans;
    size_t span_count;
    size_t span_capacity;
    size_t span_blocks;
    size_t last_span_blocks;
    struct vr_log_maker maker;
};

// Packs the tail and all dictionary rows that are in no block into a block; without such rows does nothing. Sets log->stopped on failure.
enum vram_status vr_log_seal_locked(struct vram_log *log);
// Makes a block of log->maker, appends it to the file and adds it to the index. Sets log->stopped on failure, or when the file has reached
// its maximum size.
enum vram_status vr_log_put_locked(struct vram_log *log);
// Writes the index block and the trailer.
enum vram_status vr_log_finish_locked(struct vram_log *log);
// Writes the sections of a state into log->maker.tables. INVALID_ARGUMENT for a stack that is not the log's, or impossible states or sizes.
enum vram_status vr_log_state_sections(struct vram_log *log, const struct vram_log_segment *segments, size_t count);

#endif
