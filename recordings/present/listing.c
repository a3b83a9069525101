// Lists the final segments and blocks, their statistics and the history, device by device.
#include <stdio.h>

#include "analyze/device_view.h"
#include "analyze/lifetimes.h"
#include "base/json.h"
#include "model/recording.h"
#include "vram/profile.h"

// Sums over the blocks of a final segment, which is a row of the model.
struct segment_sums {
    uint64_t allocated_bytes, pending_bytes, free_bytes, rounding_bytes, largest_free_bytes;
    size_t blocks;
};

static struct segment_sums sum_segment(const struct vr_model *model, size_t row) {
    const struct vr_blocks *blocks = &model->blocks;
    struct segment_sums sums = {0};
    for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
        const uint64_t size = blocks->size_bytes[b];
        sums.blocks++;
        if (vr_state_allocated(blocks->state[b])) {
            sums.allocated_bytes += size;
            sums.rounding_bytes += size > blocks->requested_bytes[b] ? size - blocks->requested_bytes[b] : 0;
        } else if (vr_state_active(blocks->state[b])) {
            sums.pending_bytes += size;
        } else {
            sums.free_bytes += size;
            if (size > sums.largest_free_bytes) sums.largest_free_bytes = size;
        }
    }
    return sums;
}

// ---- output. Rows go to a buffer that is written out as it fills, because a history may be long. ----

struct listing_output {
    const struct vr_view *view; // the current device
    bool many_devices;
    const struct vram_style *style;
    struct vr_text text;
    struct vr_json json; // writes to `text`; used only if as_json
    bool as_json;
    vram_write write;
    void *user;
};

// ---- writing in pieces ----

// Writes the buffer out if it has at least least_bytes. NO_HOST_MEMORY, IO.
static enum vram_status listing_flush(struct listing_output *listing, size_t least_bytes) {
    if (listing->text.failed) return VRAM_NO_HOST_MEMORY;
    if (listing->text.length < least_bytes || listing->text.length == 0) return VRAM_OK;
    if (!listing->write(listing->user, listing->text.bytes, listing->text.length)) return VRAM_IO;
    listing->text.length = 0;
    return VRAM_OK;
}

// ---- `stats`: a map of each large segment, one character per page, and the sums of all segments ----

#define PAGE_BYTES (20 * VR_MIB)

// The contents of one page of a segment.
struct stats_cell {
    uint64_t used;
    size_t blocks;
    char letter; // of the only block in use on the page
};

static char character(const struct stats_cell *page, uint64_t page_bytes) {
    if (page->used == 0) return ' ';
    if (page->blocks == 1) return page->letter;
    if (page->used >= page_bytes) return '*';
    return (char)('0' + page->used * 10 / page_bytes);
}

static void add_page_block(struct stats_cell *pages, size_t count, uint64_t begin, uint64_t size, char letter) {
    for (uint64_t at = begin; at < begin + size && at / PAGE_BYTES < count;) {
        struct stats_cell *page = &pages[at / PAGE_BYTES];
        const uint64_t page_end = (at / PAGE_BYTES + 1) * PAGE_BYTES, end = begin + size < page_end ? begin + size : page_end;
        page->used += end - at;
        page->blocks++;
        page->letter = letter;
        at = end;
    }
}

static enum vram_status draw_pages(struct vr_text *text, const struct vr_model *model, size_t row) {
    const struct vr_blocks *blocks = &model->blocks;
    const uint64_t total = model->segments.total_bytes[row], address = model->segments.address[row];
    const uint64_t pages_in_all = total / PAGE_BYTES + (total % PAGE_BYTES != 0);
    // A damaged file may claim any size. No device has more pages than this limit.
    const size_t count = pages_in_all < 1 << 16 ? (size_t)pages_in_all : 1 << 16;
    struct stats_cell *pages = calloc(count + 1, sizeof *pages);
    if (pages == NULL) return VRAM_NO_HOST_MEMORY;
    char letter = 'a';
    for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
        uint64_t end;
        if (!vr_state_active(blocks->state[b]) || blocks->address[b] < address) continue;
        if (!vr_add_u64(blocks->address[b] - address, blocks->size_bytes[b], &end) || end > total) continue;
        add_page_block(pages, count, blocks->address[b] - address, blocks->size_bytes[b], letter);
        letter = letter == 'z' ? 'a' : (char)(letter + 1);
    }
    vr_text_puts(text, "[");
    for (size_t p = 0; p < count; p++) {
        const uint64_t bytes = (uint64_t)(p + 1) * PAGE_BYTES <= total ? PAGE_BYTES : total % PAGE_BYTES;
        const char shown = character(&pages[p], bytes);
        vr_text_append(text, &shown, 1);
    }
    vr_text_puts(text, "]");
    free(pages);
    return VRAM_OK;
}

struct order {
    uint64_t bytes, allocated;
    size_t row;
};

static int by_size(const void *a, const void *b) {
    const struct order *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    if (x->allocated != y->allocated) return VR_ORDER(y->allocated, x->allocated);
    return VR_ORDER(x->row, y->row);
}

struct stats_sums {
    uint64_t reserved, allocated, pending, free, rounding;
};

static enum vram_status put_pages_line(struct listing_output *listing, size_t row) {
    const struct vr_model *model = listing->view->model;
    const struct segment_sums sums = sum_segment(model, row);
    VR_TRY(draw_pages(&listing->text, model, row));
    vr_text_printf(&listing->text, " %s, %s free", vr_bytes(model->segments.total_bytes[row]).text, vr_bytes(sums.free_bytes).text);
    if (sums.rounding_bytes != 0) vr_text_printf(&listing->text, ", %s rounding", vr_bytes(sums.rounding_bytes).text);
    if (sums.pending_bytes != 0) vr_text_printf(&listing->text, ", %s pending", vr_bytes(sums.pending_bytes).text);
    if (model->segments.stream[row] != 0) vr_text_printf(&listing->text, ", stream %lld", (long long)model->segments.stream[row]);
    vr_text_puts(&listing->text, "\n");
    return listing_flush(listing, 64 * 1024);
}

static void put_sums(struct listing_output *listing, const struct stats_sums *sums) {
    const uint64_t segments = listing->view->segment_count;
    if (listing->as_json) {
        struct vr_json *json = &listing->json;
        vr_json_object(json, NULL);
        vr_json_u64(json, "device", listing->view->device);
        vr_json_u64(json, "segments", segments);
        vr_json_u64(json, "reserved_bytes", sums->reserved);
        vr_json_u64(json, "allocated_bytes", sums->allocated);
        vr_json_u64(json, "pending_bytes", sums->pending);
        vr_json_u64(json, "free_bytes", sums->free);
        vr_json_u64(json, "rounding_bytes", sums->rounding);
        vr_json_object_end(json);
        return;
    }
    vr_text_printf(&listing->text, "%s: %s reserved = %s allocated (%s of it rounding) + %s pending + %s free\n",
                   vr_counted(segments, "segment").text, vr_bytes(sums->reserved).text, vr_bytes(sums->allocated).text,
                   vr_bytes(sums->rounding).text, vr_bytes(sums->pending).text, vr_bytes(sums->free).text);
    vr_text_puts(&listing->text, "each character is 20 MiB. a-z: one block; 0-9: several blocks, the digit is the used tenths; *: several "
                                 "blocks, full; blank: free\n");
}

// Lists the statistics of the current device. Every list function fails with NO_HOST_MEMORY, LIMIT or IO.
static enum vram_status list_stats(struct listing_output *listing) {
    const struct vr_model *model = listing->view->model;
    const size_t count = listing->view->segment_count;
    struct order *order = malloc((count + 1) * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    struct stats_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        const size_t row = listing->view->segments[i];
        const struct segment_sums listed = sum_segment(model, row);
        order[i] = (struct order){model->segments.total_bytes[row], listed.allocated_bytes, row};
        sums.reserved += model->segments.total_bytes[row];
        sums.allocated += listed.allocated_bytes;
        sums.pending += listed.pending_bytes;
        sums.free += listed.free_bytes;
        sums.rounding += listed.rounding_bytes;
    }
    if (count != 0) qsort(order, count, sizeof *order, by_size);
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && order[i].bytes >= PAGE_BYTES && !listing->as_json && status == VRAM_OK; i++)
        status = put_pages_line(listing, order[i].row);
    free(order);
    put_sums(listing, &sums);
    return status;
}

// ---- `trace`: the history, one event per row ----

// The number of allocations, and of reservations, that began at each address so far.
struct address_uses {
    struct vr_map blocks, segments;
};

enum { NO_LABEL, BLOCK, SEGMENT };

static unsigned label_kind(uint8_t action) {
    switch (action) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_ANNOTATE: return BLOCK;
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_MAP:
    case VR_ACTION_SEGMENT_UNMAP: return SEGMENT;
    default: return NO_LABEL;
    }
}

// Prints a label such as "b7f03c0000000_2", the third allocation at its address. Prints "" if the event concerns no block or segment.
static enum vram_status find_label(struct address_uses *uses, const struct vr_history *history, size_t event, char *label,
                                   size_t capacity) {
    const uint8_t action = history->action[event];
    const unsigned kind = label_kind(action);
    label[0] = '\0';
    if (kind == NO_LABEL) return VRAM_OK;
    struct vr_map *map = kind == BLOCK ? &uses->blocks : &uses->segments;
    const bool begins = action == VR_ACTION_ALLOC || action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP;
    const uint32_t before = vr_map_get(map, history->address[event]);
    if (begins) VR_TRY(vr_map_set(map, history->address[event], before + 1));
    snprintf(label, capacity, "%c%llx_%u", kind == BLOCK ? 'b' : 's', (unsigned long long)history->address[event],
             begins || before == 0 ? before : before - 1);
    return VRAM_OK;
}

static const char *action_of(const struct vr_view *view, size_t event) {
    const struct vr_history *history = view->history;
    if (history->action[event] == VR_ACTION_UNKNOWN) return vr_model_string(view->model, history->unknown[event]);
    return vr_action_name((enum vr_action)history->action[event]);
}

static void put_trace_json(struct listing_output *listing, size_t event, const char *label) {
    const struct vr_history *history = listing->view->history;
    struct vr_json *json = &listing->json;
    const uint32_t has = vr_entry_has(history, event);
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", listing->view->device);
    vr_json_u64(json, "event", event);
    vr_json_string(json, "action", action_of(listing->view, event));
    if (label[0] != '\0') vr_json_string(json, "label", label);
    if (history->action[event] == VR_ACTION_OOM)
        vr_json_u64(json, "device_free_bytes", history->address[event]);
    else
        vr_json_u64(json, "address", history->address[event]);
    vr_json_u64(json, "bytes", history->size_bytes[event]);
    vr_json_i64(json, "stream", (int64_t)vr_entry_stream(history, event));
    if ((has & VR_HAS_TIME) != 0) vr_json_i64(json, "time_us", history->time_us[event]);
    vr_json_object_end(json);
}

static void put_trace_text(struct listing_output *listing, size_t event, const char *label) {
    const struct vr_history *history = listing->view->history;
    struct vr_text *text = &listing->text;
    const char *action = action_of(listing->view, event);
    vr_text_printf(text, "%9zu  ", event);
    if (history->action[event] == VR_ACTION_OOM) {
        vr_text_colour(text, listing->style, VR_RED);
        vr_text_printf(text, "out of memory: %s requested, %s free in the driver", vr_bytes(history->size_bytes[event]).text,
                       vr_bytes(history->address[event]).text);
        vr_text_colour(text, listing->style, VR_PLAIN);
    } else {
        const size_t length = strlen(action);
        vr_text_printable(text, action, length);
        if (label[0] != '\0') {
            vr_text_repeat(text, " ", length < 15 ? 15 - length : 1);
            vr_text_printf(text, "%-20s %10s", label, vr_bytes(history->size_bytes[event]).text);
        }
        if (vr_entry_stream(history, event) != 0) vr_text_printf(text, "  stream %lld", (long long)vr_entry_stream(history, event));
    }
    vr_text_puts(text, "\n");
}

static enum vram_status list_uses(struct listing_output *listing, struct address_uses *uses) {
    for (size_t event = 0; event < listing->view->history->count; event++) {
        char label[48];
        VR_TRY(find_label(uses, listing->view->history, event, label, sizeof label));
        if (listing->as_json)
            put_trace_json(listing, event, label);
        else
            put_trace_text(listing, event, label);
        VR_TRY(listing_flush(listing, 64 * 1024));
    }
    return VRAM_OK;
}

static enum vram_status list_trace(struct listing_output *listing) {
    struct address_uses uses = {.blocks = {0}};
    struct vr_lifetimes lifetimes;
    VR_TRY(vr_lifetimes_build(listing->view, VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes));
    enum vram_status status = VRAM_OK;
    // An allocation from before the recording is the first at its address.
    for (size_t row = 0; row < lifetimes.start_count && status == VRAM_OK; row++)
        status = vr_map_set(&uses.blocks, lifetimes.address[row], 1);
    vr_lifetimes_release(&lifetimes);
    if (status == VRAM_OK) status = list_uses(listing, &uses);
    vr_map_release(&uses.blocks);
    vr_map_release(&uses.segments);
    return status;
}

// ---- segments, blocks, and the loop over devices ----

enum { FLUSH_BYTES = 64 * 1024 };

// --- segments ----------------------------------------------------------------------------------------------------------
static const char *segment_kind_name(const struct vr_segments *segments, size_t row) {
    static const char *const names[] = {"", "small", "large"};
    return names[segments->kind[row]];
}

static void put_listed_segment(struct vr_json *json, const struct vr_view *view, size_t row) {
    const struct vr_segments *segments = &view->model->segments;
    const struct segment_sums sums = sum_segment(view->model, row);
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
    const struct segment_sums sums = sum_segment(model, row);
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

static enum vram_status list_segments(struct listing_output *listing) {
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
            status = listing_flush(listing, FLUSH_BYTES);
        } else {
            add_segment_row(&table, listing->view->model, listing->view->segments[i]);
        }
    }
    if (!listing->as_json) vr_table_print(&table, &listing->text, listing->style, 0);
    vr_table_release(&table);
    return status == VRAM_OK ? listing_flush(listing, FLUSH_BYTES) : status;
}

// --- memory ------------------------------------------------------------------------------------------------------------
static const char *path_tail(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

// Prints a frame as part of a folded line. Replaces separators in it.
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

static void begin_folded(struct listing_output *listing, uint64_t stream, const char *state) {
    if (listing->many_devices) vr_text_printf(&listing->text, "device_%u;", listing->view->device);
    vr_text_printf(&listing->text, "stream_%lld;%s", (long long)stream, state);
}

static void put_folded(struct listing_output *listing, uint64_t stream, const char *state, uint32_t stack, uint64_t bytes) {
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

static enum vram_status list_memory(struct listing_output *listing) {
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
            VR_TRY(listing_flush(listing, FLUSH_BYTES));
        }
    }
    return VRAM_OK;
}

// --- the public calls --------------------------------------------------------------------------------------------------
static const struct {
    const char *name;
    enum vram_status (*list)(struct listing_output *listing);
} listings[VRAM_LISTING_COUNT] = {
    [VRAM_LISTING_STATS] = {"stats", list_stats},
    [VRAM_LISTING_SEGMENTS] = {"segments", list_segments},
    [VRAM_LISTING_MEMORY] = {"memory", list_memory},
    [VRAM_LISTING_TRACE] = {"trace", list_trace},
};

const char *vram_listing_name(enum vram_listing listing) { return (unsigned)listing < VRAM_LISTING_COUNT ? listings[listing].name : NULL; }

static enum vram_status each_device(struct listing_output *listing, const struct vr_model *model, enum vram_listing which,
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
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                   "recording and write must not be NULL, and the listing must be a valid enum value");
}

// Keeps an error that is already set: its text says whether there are too many devices or events.
static enum vram_status finish_listing(enum vram_status status, struct vram_error *error) {
    if (status == VRAM_OK || (error != NULL && error->status == status)) return status;
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
}

enum vram_status vram_listing_text(const struct vram_recording *recording, enum vram_listing which, const struct vram_style *style,
                                   vram_write write, void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL || (unsigned)which >= VRAM_LISTING_COUNT) return refuse_address(error);
    static const struct vram_style plain = {0};
    struct listing_output listing = {.style = style == NULL ? &plain : style, .write = write, .user = user};
    enum vram_status status = each_device(&listing, vr_recording_model(recording), which, error);
    if (status == VRAM_OK) status = listing_flush(&listing, 0);
    vr_text_release(&listing.text);
    return finish_listing(status, error);
}

enum vram_status vram_listing_json(const struct vram_recording *recording, enum vram_listing which, const char *file, vram_write write,
                                   void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL || (unsigned)which >= VRAM_LISTING_COUNT) return refuse_address(error);
    struct listing_output listing = {.as_json = true, .write = write, .user = user};
    vr_json_init(&listing.json, &listing.text, false);
    vr_json_object(&listing.json, NULL);
    vr_json_string(&listing.json, "file", file);
    vr_json_array(&listing.json, listings[which].name);
    enum vram_status status = each_device(&listing, vr_recording_model(recording), which, error);
    vr_json_array_end(&listing.json);
    vr_json_object_end(&listing.json);
    if (status == VRAM_OK) status = listing_flush(&listing, 0);
    vr_text_release(&listing.text);
    return finish_listing(status, error);
}
