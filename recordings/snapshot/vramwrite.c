// Writes a model as one of vram's recording files: dictionaries in parts, the events device by device, and everything else in a last block.
#include "snapshot/formats.h"

#include "history/logblock.h"

enum { BATCH_EVENTS = 4096, ROWS_AT_ONCE = 1 << 15 };
#define STRING_BYTES_AT_ONCE VR_MIB

struct file_writer {
    const struct vr_model *model;
    vram_write write;
    void *user;
    struct vr_log_maker maker;
    uint64_t sequence;
    uint64_t offset;
    uint64_t events;
    struct vr_log_span *spans;
    size_t span_count;
    size_t span_capacity;
};

static enum vram_status send_bytes(struct file_writer *writer, const void *bytes, size_t length) {
    writer->offset += length;
    return writer->write(writer->user, bytes, length) ? VRAM_OK : VRAM_IO;
}

// Writes the maker's contents as a block.
static enum vram_status send_block(struct file_writer *writer) {
    struct vr_log_block_header header;
    if (writer->maker.tables.out.count == 0 && writer->maker.batch.count == 0) return VRAM_OK;
    VR_TRY(vr_log_make_block(&writer->maker, writer->sequence++, writer->offset, &header));
    if (header.events != 0) {
        void *spans = writer->spans;
        enum vram_status status = vr_grow(&spans, &writer->span_capacity, writer->span_count + 1, sizeof *writer->spans);
        writer->spans = spans;
        VR_TRY(status);
        writer->spans[writer->span_count++] =
            (struct vr_log_span){header.offset, header.sequence, writer->events, header.first_us, header.last_us};
        writer->events += header.events;
    }
    size_t padding = (size_t)(vr_round_up(writer->maker.block.count, 8) - writer->maker.block.count);
    vr_bytes_add(&writer->maker.block, (const unsigned char[8]){0}, padding);
    if (writer->maker.block.failed) return VRAM_NO_HOST_MEMORY;
    return send_bytes(writer, writer->maker.block.data, writer->maker.block.count);
}

static enum vram_status send_dictionaries(struct file_writer *writer) {
    const struct vr_model *model = writer->model;
    struct vr_log_sections *out = &writer->maker.tables;
    struct vr_log_table table;
    for (uint32_t first = 1, next; first < model->strings.count; first = next) {
        const uint64_t *offset = model->strings.offset;
        for (next = first + 1; next < model->strings.count && next - first < ROWS_AT_ONCE;) {
            if (offset[next + 1] - offset[first] > STRING_BYTES_AT_ONCE) break;
            next++;
        }
        vr_log_write_strings(out, &model->strings, first, next - first);
        VR_TRY(send_block(writer));
    }
    vr_log_table_frames(&model->frames, &table);
    for (uint32_t first = 0, count; first < model->frames.count; first += count) {
        count = model->frames.count - first < ROWS_AT_ONCE ? model->frames.count - first : ROWS_AT_ONCE;
        vr_log_write_table(out, VR_LOG_FRAMES, &table, first, count);
        VR_TRY(send_block(writer));
    }
    for (uint32_t first = 1, count; first < model->stacks.count; first += count) {
        count = model->stacks.count - first < ROWS_AT_ONCE ? model->stacks.count - first : ROWS_AT_ONCE;
        vr_log_write_stacks(out, &model->stacks, first, count);
        VR_TRY(send_block(writer));
    }
    vr_log_table_modules(model->modules, &table);
    vr_log_write_table(out, VR_LOG_MODULES, &table, 0, model->module_count);
    return send_block(writer);
}

// Copies events [first, first + count) of the history into the maker's batch.
static void fill_batch(struct vr_log_batch *batch, const struct vr_history *history, uint32_t device, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t row = first + i;
        batch->column[VR_LOG_COLUMN_DEVICE][i] = device;
#define VALUE_DENSE(member)                               history->member[row]
#define VALUE_SPARSE(member)                              history->member[row]
#define VALUE_ALIKE(member)                               vr_entry_##member(history, row)
#define VR_FIELD(member, type, density, number, LOG, ...) batch->column[VR_LOG_COLUMN_##LOG][i] = (uint64_t)VALUE_##density(member);
#include "model/entry_fields.def"
    }
    batch->count = count;
    batch->time_unit_ns = 1000;
}

static enum vram_status send_events(struct file_writer *writer) {
    const struct vr_model *model = writer->model;
    VR_TRY(vr_log_batch_reserve(&writer->maker.batch, BATCH_EVENTS));
    for (size_t device = 0; device < model->history_count; device++) {
        const struct vr_history *history = &model->histories[device];
        uint32_t number = vr_model_is_host(model, device) ? UINT32_MAX : (uint32_t)device;
        for (size_t first = 0; first < history->count; first += BATCH_EVENTS) {
            size_t count = history->count - first < BATCH_EVENTS ? history->count - first : BATCH_EVENTS;
            fill_batch(&writer->maker.batch, history, number, first, count);
            VR_TRY(send_block(writer));
        }
    }
    return VRAM_OK;
}

// Copies the segments, with device numbers as in the file.
static enum vram_status copy_segments(const struct vr_model *model, struct vr_segments *segments, uint64_t **block_counts) {
    *segments = model->segments;
    segments->device = malloc((segments->count + 1) * sizeof *segments->device);
    *block_counts = malloc((segments->count + 1) * sizeof **block_counts);
    if (segments->device == NULL || *block_counts == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < segments->count; i++) {
        uint32_t device = model->segments.device[i];
        segments->device[i] = vr_model_is_host(model, device) ? UINT32_MAX : device;
        (*block_counts)[i] = segments->first_block[i + 1] - segments->first_block[i];
    }
    return VRAM_OK;
}

static enum vram_status write_state(struct file_writer *writer) {
    const struct vr_model *model = writer->model;
    struct vr_segments segments;
    uint64_t *block_counts = NULL;
    struct vr_log_table table;
    enum vram_status status = copy_segments(model, &segments, &block_counts);
    if (status == VRAM_OK) {
        vr_log_table_segments(&segments, block_counts, &table);
        if (segments.count == 0) vr_log_write_empty(&writer->maker.tables, VR_LOG_SEGMENTS);
        vr_log_write_table(&writer->maker.tables, VR_LOG_SEGMENTS, &table, 0, segments.count);
        vr_log_table_blocks(&model->blocks, &table);
        vr_log_write_table(&writer->maker.tables, VR_LOG_BLOCKS, &table, 0, model->blocks.count);
        vr_log_table_tenants(model->tenants, &table);
        vr_log_write_table(&writer->maker.tables, VR_LOG_TENANTS, &table, 0, model->tenant_count);
    }
    free(segments.device);
    free(block_counts);
    return status;
}

static enum vram_status send_rest(struct file_writer *writer) {
    const struct vr_model *model = writer->model;
    struct vr_log_sections *out = &writer->maker.tables;
    struct vr_log_shape shape = {model->form, model->history_count, model->host_count};
    struct vr_log_table table;
    vr_log_table_shape(&shape, &table);
    vr_log_write_table(out, VR_LOG_SHAPE, &table, 0, 1);
    vr_log_table_annotations(model->annotations, &table);
    vr_log_write_table(out, VR_LOG_ANNOTATIONS, &table, 0, model->annotation_count);
    vr_log_table_settings(model->settings, &table);
    vr_log_write_table(out, VR_LOG_SETTINGS, &table, 0, model->setting_count);
    vr_log_table_keys(model->top_level_keys, &table);
    vr_log_write_table(out, VR_LOG_KEYS, &table, 0, model->top_level_key_count);
    vr_log_table_extras(model->extras, &table);
    vr_log_write_table(out, VR_LOG_EXTRAS, &table, 0, model->extra_count);
    VR_TRY(write_state(writer));
    return send_block(writer);
}

static enum vram_status send_end(struct file_writer *writer) {
    unsigned char trailer[VR_LOG_TRAILER_BYTES];
    struct vr_log_table table;
    memcpy(trailer, &writer->offset, 8);
    memcpy(trailer + 8, VR_LOG_END, 8);
    vr_log_table_index(writer->spans, &table);
    if (writer->span_count == 0) vr_log_write_empty(&writer->maker.tables, VR_LOG_INDEX);
    vr_log_write_table(&writer->maker.tables, VR_LOG_INDEX, &table, 0, writer->span_count);
    VR_TRY(send_block(writer));
    return send_bytes(writer, trailer, sizeof trailer);
}

static enum vram_status send_file(struct file_writer *writer) {
    unsigned char header[VR_LOG_HEADER_BYTES];
    vr_log_put_file_header(&(struct vr_log_file_header){.version = VR_LOG_VERSION, .producer = "vram convert"}, header);
    VR_TRY(send_bytes(writer, header, sizeof header));
    VR_TRY(send_dictionaries(writer));
    VR_TRY(send_events(writer));
    VR_TRY(send_rest(writer));
    return send_end(writer);
}

enum vram_status vr_log_write_model(const struct vr_model *model, vram_write write, void *user, struct vram_error *error) {
    struct file_writer writer = {.model = model, .write = write, .user = user};
    enum vram_status status = send_file(&writer);
    vr_log_maker_release(&writer.maker);
    free(writer.spans);
    return status == VRAM_OK ? VRAM_OK : vr_fail(error, status, VRAM_NO_OFFSET, "cannot write the recording: %s", vram_status_text(status));
}
