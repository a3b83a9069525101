// From the tail to a block, and the index of blocks.
#include "history/log_inside.h"

// Every other span goes, its blocks to the one before it: the last one, too, since their number is even.
_Static_assert(VR_LOG_SPANS_MAX % 2 == 0, "no span remains single");
static void halve_spans(struct vram_log *log) {
    size_t kept = 0;
    for (size_t i = 0; i < log->span_count; i += 2) {
        struct vr_log_span span = log->spans[i];
        const struct vr_log_span *next = &log->spans[i + 1];
        if (next->first_us < span.first_us) span.first_us = next->first_us;
        if (next->last_us > span.last_us) span.last_us = next->last_us;
        log->spans[kept++] = span;
    }
    log->last_span_blocks += log->span_blocks;
    log->span_count = kept;
    log->span_blocks *= 2;
}

// Where there is no memory the span goes without an entry: its blocks are found from the one before.
static void note_span(struct vram_log *log, const struct vr_log_block_header *header, uint64_t events_before) {
    if (header->events == 0) return;
    if (log->span_count == VR_LOG_SPANS_MAX && log->last_span_blocks == log->span_blocks) halve_spans(log);
    if (log->span_count != 0 && log->last_span_blocks < log->span_blocks) {
        struct vr_log_span *last = &log->spans[log->span_count - 1];
        if (header->first_us < last->first_us) last->first_us = header->first_us;
        if (header->last_us > last->last_us) last->last_us = header->last_us;
        log->last_span_blocks++;
        return;
    }
    void *spans = log->spans;
    enum vram_status status = vr_grow(&spans, &log->span_capacity, log->span_count + 1, sizeof *log->spans);
    log->spans = spans;
    if (status != VRAM_OK) return;
    log->spans[log->span_count++] =
        (struct vr_log_span){header->offset, header->sequence, events_before, header->first_us, header->last_us};
    log->last_span_blocks = 1;
}

enum vram_status vr_log_put_locked(struct vram_log *log) {
    struct vr_log_block_header header;
    uint64_t before = log->file.end;
    log->room = 0;
    enum vram_status status = vr_log_make_block(&log->maker, log->file.sequence, log->file.end, &header);
    if (status == VRAM_OK) status = vr_logfile_put(&log->file, &log->maker.block);
    if (status != VRAM_OK) {
        log->stopped = status;
        return status;
    }
    vr_log_encoder_clear(&log->maker.encoder); // until now the tail's events might have had to be put again
    note_span(log, &header, log->events - header.events);
    // The next block may be as large as this one, and the index comes after it.
    uint64_t needed = log->file.end + (log->file.end - before) + VR_LOG_TRAILER_BYTES + log->span_count * sizeof *log->spans;
    if (needed > log->max_bytes && log->stopped == VRAM_OK) log->stopped = VRAM_LIMIT;
    return VRAM_OK;
}

static void write_new_rows(struct vram_log *log) {
    const struct vr_builder *builder = &log->builder;
    struct vr_log_sections *out = &log->maker.tables;
    struct vr_log_table table;
    vr_log_write_strings(out, &builder->strings, log->packed_strings, builder->strings.count - log->packed_strings);
    vr_log_table_frames(&builder->frames, &table);
    vr_log_write_table(out, VR_LOG_FRAMES, &table, log->packed_frames, builder->frames.count - log->packed_frames);
    vr_log_write_stacks(out, &builder->stacks, log->packed_stacks, builder->stacks.count - log->packed_stacks);
    vr_log_table_modules(log->modules, &table);
    vr_log_write_table(out, VR_LOG_MODULES, &table, log->packed_modules, log->module_count - log->packed_modules);
    vr_log_table_annotations(log->annotations, &table);
    vr_log_write_rows(out, VR_LOG_ANNOTATIONS, &table, log->packed_annotations, log->annotation_count);
    vr_log_table_settings(log->settings, &table);
    vr_log_write_rows(out, VR_LOG_SETTINGS, &table, log->packed_settings, log->setting_count);
}

static void note_packed(struct vram_log *log) {
    log->packed_strings = log->builder.strings.count;
    log->packed_frames = log->builder.frames.count;
    log->packed_stacks = log->builder.stacks.count;
    log->packed_modules = log->module_count;
    log->packed_annotations += log->annotation_count;
    log->packed_settings += log->setting_count;
    log->annotation_count = log->setting_count = 0;
}

static bool has_new_rows(const struct vram_log *log) {
    return log->builder.strings.count != log->packed_strings || log->builder.frames.count != log->packed_frames ||
           log->builder.stacks.count != log->packed_stacks || log->module_count != log->packed_modules;
}

struct sealing {
    struct vram_log *log;
    enum vram_status status;
};

static enum vram_status seal(struct vram_log *log) {
    write_new_rows(log);
    VR_TRY(vr_log_put_locked(log));
    note_packed(log);
    return VRAM_OK;
}

static void seal_elsewhere(void *argument) {
    struct sealing *sealing = argument;
    sealing->status = seal(sealing->log);
}

// Seldom, and with tables of columns on the stack: whoever appended may have little.
enum vram_status vr_log_seal_locked(struct vram_log *log) {
    log->room = 0;
    if (log->file.used == 0 && !has_new_rows(log)) return VRAM_OK;
    struct sealing sealing = {.log = log};
    vr_os_on_spare_stack(seal_elsewhere, &sealing);
    return sealing.status;
}

enum vram_status vr_log_finish_locked(struct vram_log *log) {
    uint64_t index_offset = log->file.end;
    struct vr_log_block_header header;
    struct vr_log_table table;
    enum vram_status status = vr_log_seal_locked(log);
    if (status == VRAM_OK) {
        index_offset = log->file.end;
        vr_log_table_index(log->spans, &table);
        if (log->span_count == 0) vr_log_write_empty(&log->maker.tables, VR_LOG_INDEX);
        vr_log_write_table(&log->maker.tables, VR_LOG_INDEX, &table, 0, log->span_count);
        status = vr_log_make_block(&log->maker, log->file.sequence, log->file.end, &header);
    }
    if (status == VRAM_OK) status = vr_logfile_put(&log->file, &log->maker.block);
    if (status != VRAM_OK) {
        // What is there stays, with its tail: it is read as that of a program that was killed.
        vr_logfile_abandon(&log->file);
        return status;
    }
    return vr_logfile_finish(&log->file, index_offset);
}
