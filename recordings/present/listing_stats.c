// `stats`: large segments page by page, in one character each, and the sums of all segments.
#include "present/listing.h"

#define PAGE_BYTES (20 * VR_MIB)

// What one page of a segment shows.
struct stats_cell {
    uint64_t used;
    size_t blocks;
    char letter; // of the only block in use there
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
    // A damaged file may claim any size; no device has more pages than this.
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

static enum vram_status put_pages_line(struct vr_listing *listing, size_t row) {
    const struct vr_model *model = listing->view->model;
    const struct vr_segment_sums sums = vr_segment_sum(model, row);
    VR_TRY(draw_pages(&listing->text, model, row));
    vr_text_printf(&listing->text, " %s, %s free", vr_bytes(model->segments.total_bytes[row]).text, vr_bytes(sums.free_bytes).text);
    if (sums.rounding_bytes != 0) vr_text_printf(&listing->text, ", %s rounding", vr_bytes(sums.rounding_bytes).text);
    if (sums.pending_bytes != 0) vr_text_printf(&listing->text, ", %s pending", vr_bytes(sums.pending_bytes).text);
    if (model->segments.stream[row] != 0) vr_text_printf(&listing->text, ", stream %lld", (long long)model->segments.stream[row]);
    vr_text_puts(&listing->text, "\n");
    return vr_listing_flush(listing, 64 * 1024);
}

static void put_sums(struct vr_listing *listing, const struct stats_sums *sums) {
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
    vr_text_printf(&listing->text, "%s segment%s: %s reserved = %s allocated (%s of it rounding) + %s pending + %s free\n",
                   vr_count(segments).text, segments == 1 ? "" : "s", vr_bytes(sums->reserved).text, vr_bytes(sums->allocated).text,
                   vr_bytes(sums->rounding).text, vr_bytes(sums->pending).text, vr_bytes(sums->free).text);
    vr_text_puts(&listing->text, "one character is 20 MiB: a-z one block, 0-9 tenths full of several, * full of several, blank free\n");
}

enum vram_status vr_list_stats(struct vr_listing *listing) {
    const struct vr_model *model = listing->view->model;
    const size_t count = listing->view->segment_count;
    struct order *order = malloc((count + 1) * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    struct stats_sums sums = {0};
    for (size_t i = 0; i < count; i++) {
        const size_t row = listing->view->segments[i];
        const struct vr_segment_sums listed = vr_segment_sum(model, row);
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
