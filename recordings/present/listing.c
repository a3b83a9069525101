// Listings: the loop over devices, and the final segments and blocks.
#include "present/listing.h"

#include <stdio.h>

#include "model/recording.h"

enum { FLUSH_BYTES = 64 * 1024 };

static const struct {
    const char *name;
    enum vram_status (*list)(struct vr_listing *listing);
} listings[VRAM_LISTING_COUNT] = {
    [VRAM_LISTING_STATS] = {"stats", vr_list_stats},
    [VRAM_LISTING_SEGMENTS] = {"segments", vr_list_segments},
    [VRAM_LISTING_MEMORY] = {"memory", vr_list_memory},
    [VRAM_LISTING_TRACE] = {"trace", vr_list_trace},
};

const char *vram_listing_name(enum vram_listing listing) { return (unsigned)listing < VRAM_LISTING_COUNT ? listings[listing].name : NULL; }

static enum vram_status each_device(struct vr_listing *listing, const struct vr_model *model, enum vram_listing which,
                                    struct vram_error *error) {
    struct vr_views views;
    VR_TRY(vr_views_build(model, &views, error));
    enum vram_status status = VRAM_OK;
    listing->many_devices = views.count > 1;
    for (size_t d = 0; d < views.count && status == VRAM_OK; d++) {
        listing->view = &views.view[d];
        if (listing->many_devices && !listing->as_json && which != VRAM_LISTING_MEMORY)
            vr_text_printf(&listing->text, "%s\n", vr_view_name(listing->view).text);
        status = listings[which].list(listing);
    }
    vr_views_release(&views);
    return status;
}

static enum vram_status refuse_address(struct vram_error *error) {
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and write must not be NULL, and the listing must be one");
}

// Too many devices are told apart from too many events by the sentence that stands there already.
static enum vram_status finish_listing(enum vram_status status, struct vram_error *error) {
    if (status == VRAM_OK || (error != NULL && error->status == status)) return status;
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
}

enum vram_status vram_listing_text(const struct vram_recording *recording, enum vram_listing which, const struct vram_style *style,
                                   vram_write write, void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL || (unsigned)which >= VRAM_LISTING_COUNT) return refuse_address(error);
    static const struct vram_style plain = {0};
    struct vr_listing listing = {.style = style == NULL ? &plain : style, .write = write, .user = user};
    enum vram_status status = each_device(&listing, vr_recording_model(recording), which, error);
    if (status == VRAM_OK) status = vr_listing_flush(&listing, 0);
    vr_text_release(&listing.text);
    return finish_listing(status, error);
}

enum vram_status vram_listing_json(const struct vram_recording *recording, enum vram_listing which, const char *file, vram_write write,
                                   void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL || (unsigned)which >= VRAM_LISTING_COUNT) return refuse_address(error);
    struct vr_listing listing = {.as_json = true, .write = write, .user = user};
    vr_json_init(&listing.json, &listing.text, false);
    vr_json_object(&listing.json, NULL);
    vr_json_string(&listing.json, "file", file);
    vr_json_array(&listing.json, listings[which].name);
    enum vram_status status = each_device(&listing, vr_recording_model(recording), which, error);
    vr_json_array_end(&listing.json);
    vr_json_object_end(&listing.json);
    if (status == VRAM_OK) status = vr_listing_flush(&listing, 0);
    vr_text_release(&listing.text);
    return finish_listing(status, error);
}

// --- segments ----------------------------------------------------------------------------------------------------------
static const char *segment_kind_name(const struct vr_segments *segments, size_t row) {
    static const char *const names[] = {"", "small", "large"};
    return names[segments->kind[row]];
}

static void put_listed_segment(struct vr_json *json, const struct vr_view *view, size_t row) {
    const struct vr_segments *segments = &view->model->segments;
    const struct vr_segment_sums sums = vr_segment_sum(view->model, row);
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", view->device);
    vr_json_u64(json, "address", segments->address[row]);
    vr_json_u64(json, "bytes", segments->total_bytes[row]);
    vr_json_string(json, "kind", segments->kind[row] == VR_KIND_UNKNOWN ? NULL : segment_kind_name(segments, row));
    vr_json_bool(json, "expandable", segments->expandable[row] != 0);
    vr_json_i64(json, "stream", (int64_t)segments->stream[row]);
    vr_json_array(json, "pool");
    vr_json_u64(json, NULL, segments->pool_first[row]);
    vr_json_u64(json, NULL, segments->pool_second[row]);
    vr_json_array_end(json);
    vr_json_u64(json, "blocks", sums.blocks);
    vr_json_u64(json, "allocated_bytes", sums.allocated_bytes);
    vr_json_u64(json, "pending_bytes", sums.pending_bytes);
    vr_json_u64(json, "free_bytes", sums.free_bytes);
    vr_json_u64(json, "rounding_bytes", sums.rounding_bytes);
    vr_json_u64(json, "largest_free_bytes", sums.largest_free_bytes);
    vr_json_object_end(json);
}

static void add_segment_row(struct vr_table *table, const struct vr_model *model, size_t row) {
    const struct vr_segments *segments = &model->segments;
    const struct vr_segment_sums sums = vr_segment_sum(model, row);
    vr_table_cell(table, "%llx", (unsigned long long)segments->address[row]);
    vr_table_cell(table, "%s", vr_bytes(segments->total_bytes[row]).text);
    vr_table_cell(table, "%s%s", segment_kind_name(segments, row), segments->expandable[row] ? " expandable" : "");
    vr_table_cell(table, "%lld", (long long)segments->stream[row]);
    vr_table_cell(table, "%llu,%llu", (unsigned long long)segments->pool_first[row], (unsigned long long)segments->pool_second[row]);
    vr_table_cell(table, "%s", vr_count(sums.blocks).text);
    vr_table_cell(table, "%s", vr_bytes(sums.allocated_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(sums.pending_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(sums.free_bytes).text);
    vr_table_cell(table, "%s", vr_bytes(sums.largest_free_bytes).text);
}

enum vram_status vr_list_segments(struct vr_listing *listing) {
    static const struct vr_table_column columns[] = {{"address", VR_LEFT, VR_PLAIN, false},    {"size", VR_RIGHT, VR_BOLD, false},
                                                     {"kind", VR_LEFT, VR_PLAIN, false},       {"stream", VR_RIGHT, VR_PLAIN, false},
                                                     {"pool", VR_RIGHT, VR_DIM, false},        {"blocks", VR_RIGHT, VR_PLAIN, false},
                                                     {"allocated", VR_RIGHT, VR_PLAIN, false}, {"pending", VR_RIGHT, VR_PLAIN, false},
                                                     {"free", VR_RIGHT, VR_PLAIN, false},      {"largest free", VR_RIGHT, VR_PLAIN, false}};
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < listing->view->segment_count && status == VRAM_OK; i++) {
        if (listing->as_json) {
            put_listed_segment(&listing->json, listing->view, listing->view->segments[i]);
            status = vr_listing_flush(listing, FLUSH_BYTES);
        } else {
            add_segment_row(&table, listing->view->model, listing->view->segments[i]);
        }
    }
    if (!listing->as_json) vr_table_print(&table, &listing->text, listing->style, 0);
    vr_table_release(&table);
    return status == VRAM_OK ? vr_listing_flush(listing, FLUSH_BYTES) : status;
}

// --- memory ------------------------------------------------------------------------------------------------------------
static const char *path_tail(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

// A frame as a part of a folded line: nothing in it may be taken for a separator.
static void put_listed_frame(struct vr_text *text, const struct vr_model *model, uint32_t frame) {
    struct vr_text part = {0};
    vr_text_printf(&part, "%s:%lld:%s", path_tail(vr_model_string(model, model->frames.filename[frame])),
                   (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
    for (size_t i = 0; i < part.length; i++) {
        if (part.bytes[i] == ';') part.bytes[i] = ',';
    }
    vr_text_puts(text, ";");
    vr_text_printable(text, vr_text_string(&part), part.length);
    if (part.failed) text->failed = true;
    vr_text_release(&part);
}

static void begin_folded(struct vr_listing *listing, uint64_t stream, const char *state) {
    if (listing->many_devices) vr_text_printf(&listing->text, "device_%u;", listing->view->device);
    vr_text_printf(&listing->text, "stream_%lld;%s", (long long)stream, state);
}

static void put_folded(struct vr_listing *listing, uint64_t stream, const char *state, uint32_t stack, uint64_t bytes) {
    const struct vr_model *model = listing->view->model;
    const uint64_t first = model->stacks.offset[stack];
    begin_folded(listing, stream, state);
    if (stack == 0) vr_text_puts(&listing->text, ";<no frames>");
    for (uint64_t i = model->stacks.offset[stack + 1]; stack != 0 && i-- > first;)
        put_listed_frame(&listing->text, model, model->stacks.frame[i]);
    vr_text_printf(&listing->text, " %llu\n", (unsigned long long)bytes);
}

static void put_block(struct vr_json *json, const struct vr_view *view, uint64_t stream, const char *state, uint64_t b) {
    const struct vr_blocks *blocks = &view->model->blocks;
    const struct vr_model *model = view->model;
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", view->device);
    vr_json_i64(json, "stream", (int64_t)stream);
    vr_json_string(json, "state", state);
    vr_json_u64(json, "address", blocks->address[b]);
    vr_json_u64(json, "bytes", blocks->size_bytes[b]);
    vr_json_u64(json, "requested_bytes", blocks->requested_bytes[b]);
    vr_json_array(json, "frames");
    for (uint64_t i = model->stacks.offset[blocks->stack[b]]; i < model->stacks.offset[blocks->stack[b] + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        char line[32];
        struct vr_text text = {0};
        snprintf(line, sizeof line, ":%lld:", (long long)model->frames.line[frame]);
        vr_text_puts(&text, vr_model_string(model, model->frames.filename[frame]));
        vr_text_puts(&text, line);
        vr_text_puts(&text, vr_model_string(model, model->frames.name[frame]));
        vr_json_string(json, NULL, vr_text_string(&text));
        if (text.failed) json->out->failed = true;
        vr_text_release(&text);
    }
    vr_json_array_end(json);
    vr_json_object_end(json);
}

enum vram_status vr_list_memory(struct vr_listing *listing) {
    const struct vr_model *model = listing->view->model;
    const struct vr_blocks *blocks = &model->blocks;
    for (size_t i = 0; i < listing->view->segment_count; i++) {
        const size_t row = listing->view->segments[i];
        const uint64_t stream = model->segments.stream[row];
        for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
            const char *state = vr_block_state_name((enum vr_block_state)blocks->state[b]);
            const uint64_t size = blocks->size_bytes[b], asked = blocks->requested_bytes[b];
            const uint64_t rounding = vr_state_allocated(blocks->state[b]) && asked < size ? size - asked : 0;
            if (listing->as_json) {
                put_block(&listing->json, listing->view, stream, state, b);
            } else {
                put_folded(listing, stream, state, blocks->stack[b], size - rounding);
                if (rounding != 0) begin_folded(listing, stream, state);
                if (rounding != 0) vr_text_printf(&listing->text, ";<gaps> %llu\n", (unsigned long long)rounding);
            }
            VR_TRY(vr_listing_flush(listing, FLUSH_BYTES));
        }
    }
    return VRAM_OK;
}
