#include "sim/memory/sim_content.h"

#include "os/os.h"

enum {
    PIECE_BYTES = 1 << 20,  // unit of writes: one that repeats four bytes is stored as a fill
    LEAST_PIECE = 64 << 10, // smaller pieces are not checked for a pattern: their pages are cheap
    MOVE_BYTES = 64 << 10   // step of an overlapping copy
};

// Part of a range with uniform contents.
struct part {
    enum vr_sim_held held;
    uint32_t word;
    uint64_t size_bytes;
    bool updated; // passed to a kernel since
};

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

void vr_sim_content_open(struct vr_sim_content *content, int file) {
    *content = (struct vr_sim_content){.end = vr_os_page_bytes()}; // place 0 is never used
    content->windows.file = file;
    content->windows.process = vr_os_process_id();
}

void vr_sim_content_release(struct vr_sim_content *content) {
    vr_sim_ranges_release(&content->extents);
    vr_map_release(&content->outputs);
    vr_sim_windows_release(&content->windows);
}

uint64_t vr_sim_content_place(struct vr_sim_content *content, uint64_t size_bytes) {
    const uint64_t place = content->end;
    content->end += vr_round_up(size_bytes, vr_os_page_bytes()) + vr_os_page_bytes(); // leaves one page unused between ranges
    return place;
}

// --- extents --------------------------------------------------------------------------------------------------------

static struct part part_at(const struct vr_sim_content *content, uint64_t at, uint64_t size_bytes) {
    const struct vr_sim_range *extent = vr_sim_ranges_holding(&content->extents, at);
    if (extent != NULL)
        return (struct part){.held = (enum vr_sim_held)extent->kind,
                             .word = (uint32_t)extent->owner,
                             .size_bytes = least_of(size_bytes, vr_sim_range_end(extent) - at)};
    extent = vr_sim_ranges_next(&content->extents, at);
    return (struct part){.size_bytes = extent == NULL ? size_bytes : least_of(size_bytes, extent->base - at)};
}

// Inserts an extent. The caller has reserved its node with vr_sim_ranges_reserve().
static void insert_extent(struct vr_sim_content *content, uint64_t from, uint64_t end, uint32_t kind, uint64_t owner) {
    const struct vr_sim_range extent = {.base = from, .span = end - from, .size_bytes = end - from, .kind = kind, .owner = owner};
    if (vr_sim_ranges_insert(&content->extents, &extent) != VRAM_OK) assert(!"room was reserved");
}

// Returns whether the kind has bytes in the file that no other process uses.
static bool is_own(uint32_t kind) { return kind == VR_SIM_BYTES || kind == VR_SIM_SUPPOSED; }

// Removes [at, end) from the extents. Returns whether it contained own bytes of the file.
static bool cut_extent(struct vr_sim_content *content, uint64_t at, uint64_t end) {
    bool bytes = false;
    const struct vr_sim_range *found;
    while ((found = vr_sim_ranges_overlap(&content->extents, at, end - at)) != NULL) {
        const struct vr_sim_range extent = *found;
        bytes = bytes || is_own(extent.kind);
        vr_sim_ranges_remove(&content->extents, extent.base);
        if (extent.base < at) insert_extent(content, extent.base, at, extent.kind, extent.owner);
        if (vr_sim_range_end(&extent) > end) insert_extent(content, end, vr_sim_range_end(&extent), extent.kind, extent.owner);
    }
    return bytes;
}

static bool is_same(const struct vr_sim_range *extent, uint32_t kind, uint64_t owner) {
    return extent != NULL && extent->kind == kind && extent->owner == owner;
}

// Inserts an extent into an empty range, merging it with equal neighbours.
static void insert_merged(struct vr_sim_content *content, uint64_t from, uint64_t end, uint32_t kind, uint64_t owner) {
    const struct vr_sim_range *before = vr_sim_ranges_holding(&content->extents, from - 1);
    if (is_same(before, kind, owner)) {
        from = before->base;
        vr_sim_ranges_remove(&content->extents, from);
    }
    const struct vr_sim_range *after = vr_sim_ranges_at(&content->extents, end);
    if (is_same(after, kind, owner)) {
        const uint64_t base = after->base;
        end = vr_sim_range_end(after);
        vr_sim_ranges_remove(&content->extents, base);
    }
    insert_extent(content, from, end, kind, owner);
}

static bool is_number(const struct vr_sim_range *extent, uint64_t number) { return extent->owner >> 32 == (uint32_t)number; }

// Returns whether storing this would change nothing that a read can observe.
static bool extent_holds(const struct vr_sim_range *extent, uint64_t at, uint64_t size_bytes, enum vr_sim_held held, uint32_t word,
                         uint64_t number) {
    if (extent == NULL || extent->kind != held || (uint32_t)extent->owner != word || at + size_bytes > vr_sim_range_end(extent))
        return false;
    return held == VR_SIM_PASSED || held == VR_SIM_NOT_KEPT || is_number(extent, number) ||
           (extent->base == at && extent->span == size_bytes);
}

static void renumber_extent(struct vr_sim_range *extent, uint64_t number) {
    extent->owner = (uint64_t)(uint32_t)number << 32 | (uint32_t)extent->owner;
}

// Sets the contents of the range. `number` is that of the write.
static bool put_extent(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, enum vr_sim_held held, uint32_t word,
                       uint64_t number) {
    const uint64_t end = at + size_bytes;
    struct vr_sim_range *around = vr_sim_ranges_holding(&content->extents, at);
    if (extent_holds(around, at, size_bytes, held, word, number)) {
        if (number != 0 && around->span == size_bytes) renumber_extent(around, number);
        return true;
    }
    if (vr_sim_ranges_reserve(&content->extents, 3) != VRAM_OK) return false; // two remainders and the new extent
    const bool bytes = cut_extent(content, at, end);
    if (bytes && !is_own(held)) vr_sim_windows_discard(&content->windows, at, size_bytes, 0);
    if (held == VR_SIM_PASSED || held == VR_SIM_NOT_KEPT) number = 0;
    if (held != VR_SIM_UNWRITTEN) insert_merged(content, at, end, held, (uint64_t)(uint32_t)number << 32 | word);
    return true;
}

// Returns whether the part already has bytes in the file for the whole range.
static bool has_bytes(const struct part *part, uint64_t size_bytes) {
    return part->held == VR_SIM_SHARED || (part->held == VR_SIM_BYTES && part->size_bytes == size_bytes);
}

// Returns whether the range is exactly one earlier write in the file. If so, renumbers it as the next write.
static bool is_rewritten(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes) {
    struct vr_sim_range *extent = vr_sim_ranges_at(&content->extents, at);
    if (extent == NULL || extent->kind != VR_SIM_BYTES || extent->span != size_bytes) return false;
    renumber_extent(extent, ++content->writes);
    return true;
}

static bool pass_part(struct vr_sim_content *content, uint64_t at, const struct part *part) {
    const bool written = part->held == VR_SIM_FILL || is_own(part->held) || part->held == VR_SIM_NOT_KEPT;
    return !written || put_extent(content, at, part->size_bytes, VR_SIM_PASSED, 0, 0);
}

// --- outputs of kernels ----------------------------------------------------------------------------------------------

#define LEFT_FILL    ((uint32_t)1 << 31) // in the lower half: it holds the length of a fill that was left
#define ANY_BLOCKS   (LEFT_FILL - 1)
#define OUTPUTS_MOST ((size_t)1 << 20) // all places are forgotten when there are this many

static bool note_output(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, uint64_t left_bytes) {
    const uint64_t blocks = least_of(vr_round_up(size_bytes, VR_SIM_BLOCK_BYTES) / VR_SIM_BLOCK_BYTES, ANY_BLOCKS);
    const uint64_t reach = left_bytes > 0 ? LEFT_FILL | left_bytes : blocks;
    if (content->outputs.count >= OUTPUTS_MOST) vr_map_release(&content->outputs);
    return vr_map_set(&content->outputs, at, (content->writes & UINT32_MAX) << 32 | reach) == VRAM_OK;
}

static uint64_t left_bytes(uint64_t output) { return (output & LEFT_FILL) != 0 ? output & ANY_BLOCKS : 0; }

// Returns whether the data at `at` was written before a kernel got the place `begun`, where the read starts, as an output.
static bool is_stale(const struct vr_sim_content *content, uint64_t output, uint64_t begun, uint64_t at) {
    const struct vr_sim_range *extent = vr_sim_ranges_holding(&content->extents, at);
    if (output == 0 || extent == NULL || (!is_own(extent->kind) && extent->kind != VR_SIM_FILL)) return false;
    const uint32_t blocks = (output & LEFT_FILL) != 0 ? ANY_BLOCKS : (uint32_t)output;
    const bool reached = blocks == ANY_BLOCKS || at - begun < (uint64_t)blocks * VR_SIM_BLOCK_BYTES;
    return reached && (int32_t)((uint32_t)(extent->owner >> 32) - (uint32_t)(output >> 32)) <= 0;
}

void vr_sim_content_count_launch(struct vr_sim_content *content) { content->launches++; }

void vr_sim_content_note_fill(struct vr_sim_content *content) {
    content->small_fills[content->next_small_fill++ % VR_SIM_SMALL_FILLS] =
        (struct vr_sim_small_fill){.number = content->writes, .launch = content->launches};
}

// Returns the length of a recent small fill that starts at `at` and was not overwritten, or 0.
static uint64_t small_fill_at(struct vr_sim_content *content, uint64_t at) {
    const struct vr_sim_range *extent = vr_sim_ranges_at(&content->extents, at);
    if (extent == NULL || extent->span > VR_SIM_SMALL_FILL_BYTES || (extent->kind != VR_SIM_BYTES && extent->kind != VR_SIM_FILL)) return 0;
    for (size_t i = 0; i < VR_SIM_SMALL_FILLS; i++) {
        const struct vr_sim_small_fill *fill = &content->small_fills[i];
        if (fill->number == 0 || !is_number(extent, fill->number)) continue;
        return content->launches - fill->launch <= VR_SIM_FILL_LAUNCHES ? extent->span : 0;
    }
    return 0;
}

bool vr_sim_content_pass(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool updates) {
    const uint64_t left = updates ? small_fill_at(content, at) : 0;
    if (!note_output(content, at, size_bytes, left)) return false;
    if (left > 0 && (at + left) % VR_SIM_BLOCK_BYTES == 0) return true;
    for (uint64_t place = at + left, end = at + size_bytes; place < end;) {
        const struct part part = part_at(content, place, end - place);
        if (part.held == VR_SIM_UNWRITTEN || part.held == VR_SIM_SHARED) return true;
        if (!pass_part(content, place, &part)) return false;
        place += part.size_bytes;
        if (place % VR_SIM_BLOCK_BYTES == 0) return true;
    }
    return true;
}

bool vr_sim_content_lose(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes) {
    for (uint64_t end = at + size_bytes; at < end;) {
        const struct part part = part_at(content, at, end - at);
        if (!pass_part(content, at, &part)) return false;
        at += part.size_bytes;
    }
    return true;
}

// --- patterns -------------------------------------------------------------------------------------------------------

static uint32_t rotate_word(uint32_t word, uint64_t bytes) {
    const unsigned shift = (unsigned)(bytes % 4) * 8;
    return shift == 0 ? word : word << shift | word >> (32 - shift);
}

uint32_t vr_sim_content_word(uint32_t pattern, uint64_t at) { return rotate_word(pattern, at); }

// Does not write pages that are already zero: a fresh page then takes no host memory.
void vr_sim_content_clear(unsigned char *bytes, uint64_t size_bytes) {
    static const unsigned char zeros[VR_SIM_CLEARED_BYTES];
    for (uint64_t span; size_bytes > 0; bytes += span, size_bytes -= span) {
        span = least_of(size_bytes, sizeof zeros - (uintptr_t)bytes % sizeof zeros);
        if (memcmp(bytes, zeros, (size_t)span) != 0) memset(bytes, 0, (size_t)span);
    }
}

void vr_sim_content_paint(unsigned char *bytes, uint64_t at, uint64_t size_bytes, uint32_t word) {
    if (word == 0) {
        vr_sim_content_clear(bytes, size_bytes);
        return;
    }
    const uint32_t first = rotate_word(word, 4 - at % 4); // the byte at `at` in the lowest place
    if (first == rotate_word(first, 1)) {
        memset(bytes, (int)(first & 0xff), (size_t)size_bytes);
        return;
    }
    uint64_t done = least_of(size_bytes, sizeof first);
    memcpy(bytes, &first, (size_t)done);
    for (uint64_t more; done < size_bytes; done += more) { // doubles the painted part
        more = least_of(done, size_bytes - done);
        memcpy(bytes + done, bytes, (size_t)more);
    }
}

static bool paint_file(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, uint32_t word) {
    for (uint64_t span; size_bytes > 0; at += span, size_bytes -= span) {
        span = vr_sim_windows_span(at, size_bytes);
        unsigned char *bytes = vr_sim_windows_write(&content->windows, at, span);
        if (bytes == NULL) return false;
        vr_sim_content_paint(bytes, at, span, word);
    }
    return true;
}

// --- writing --------------------------------------------------------------------------------------------------------

bool vr_sim_content_fill(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, uint32_t word) {
    const struct part part = part_at(content, at, size_bytes);
    if (part.held == VR_SIM_SHARED && word == 0) return vr_sim_windows_zero(&content->windows, at, size_bytes, true);
    // A small fill inside bytes is stored as bytes to avoid fragmenting the extent, unless a block may start there.
    const bool inside = at % VR_SIM_BLOCK_BYTES != 0 && size_bytes < VR_SIM_SMALL_FILL_BYTES && has_bytes(&part, size_bytes);
    if (part.held == VR_SIM_SHARED || inside) return paint_file(content, at, size_bytes, word);
    return put_extent(content, at, size_bytes, VR_SIM_FILL, word, ++content->writes);
}

// Marks contents as not kept or unknown. In shared memory, other processes see zeros.
static bool hold_nothing(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, enum vr_sim_held held) {
    const struct part part = part_at(content, at, size_bytes);
    if (part.held == VR_SIM_SHARED) return vr_sim_windows_zero(&content->windows, at, size_bytes, true);
    return put_extent(content, at, size_bytes, held, 0, 0);
}

bool vr_sim_content_forget(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes) {
    return hold_nothing(content, at, size_bytes, VR_SIM_NOT_KEPT);
}

static bool write_file(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const unsigned char *bytes) {
    for (uint64_t span; size_bytes > 0; at += span, bytes += span, size_bytes -= span) {
        span = vr_sim_windows_span(at, size_bytes);
        unsigned char *to = vr_sim_windows_write(&content->windows, at, span);
        if (to == NULL) return false;
        memmove(to, bytes, (size_t)span);
    }
    return true;
}

// Returns whether the range repeats four bytes, and stores them in *pattern.
static bool repeats_pattern(const unsigned char *bytes, uint64_t size_bytes, uint32_t *pattern) {
    if (size_bytes < LEAST_PIECE || memcmp(bytes, bytes + sizeof *pattern, (size_t)size_bytes - sizeof *pattern) != 0) return false;
    memcpy(pattern, bytes, sizeof *pattern);
    return true;
}

static bool write_piece(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const unsigned char *bytes) {
    uint32_t pattern;
    const uint64_t number = content->writes;
    if (repeats_pattern(bytes, size_bytes, &pattern))
        return put_extent(content, at, size_bytes, VR_SIM_FILL, vr_sim_content_word(pattern, at), number);
    return put_extent(content, at, size_bytes, VR_SIM_BYTES, 0, number) && write_file(content, at, size_bytes, bytes);
}

bool vr_sim_content_write(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes) {
    const unsigned char *from = bytes;
    const struct part part = part_at(content, at, size_bytes);
    if (part.held == VR_SIM_SHARED || is_rewritten(content, at, size_bytes)) return write_file(content, at, size_bytes, from);
    content->writes++;
    for (uint64_t span; size_bytes > 0; at += span, from += span, size_bytes -= span) {
        span = least_of(size_bytes, PIECE_BYTES);
        if (!write_piece(content, at, span, from)) return false;
    }
    return true;
}

// --- reading --------------------------------------------------------------------------------------------------------

static bool read_backing_file(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, unsigned char *bytes) {
    for (uint64_t span; size_bytes > 0; at += span, bytes += span, size_bytes -= span) {
        span = vr_sim_windows_span(at, size_bytes);
        const unsigned char *from = vr_sim_windows_read(&content->windows, at);
        if (from == NULL) from = vr_sim_windows_write(&content->windows, at, span); // shared, and not mapped here before
        if (from == NULL) return false;
        memcpy(bytes, from, (size_t)span);
    }
    return true;
}

static void add_gap(struct vr_sim_read *read, unsigned char *bytes, uint64_t size_bytes) {
    const size_t count = read->gap_count;
    if (count > 0 && read->gaps[count - 1].bytes + read->gaps[count - 1].size_bytes == bytes) {
        read->gaps[count - 1].size_bytes += size_bytes;
    } else if (count < VR_SIM_GAPS) {
        read->gaps[count].bytes = bytes;
        read->gaps[count].size_bytes = size_bytes;
        read->gap_count++;
    }
}

static bool read_part(struct vr_sim_content *content, uint64_t at, const struct part *part, unsigned char *to, struct vr_sim_read *read) {
    if (part->updated) read->passed_bytes += part->size_bytes;
    if (part->held == VR_SIM_BYTES || part->held == VR_SIM_SHARED) return read_backing_file(content, at, part->size_bytes, to);
    if (part->held == VR_SIM_SUPPOSED) {
        read->passed_bytes += part->size_bytes;
        add_gap(read, to, part->size_bytes);
        return read_backing_file(content, at, part->size_bytes, to);
    }
    vr_sim_content_paint(to, at, part->size_bytes, part->word);
    if (part->held == VR_SIM_UNWRITTEN) read->unwritten_bytes += part->size_bytes;
    if (part->held == VR_SIM_NOT_KEPT) read->not_kept_bytes += part->size_bytes;
    if (part->held == VR_SIM_PASSED) read->passed_bytes += part->size_bytes;
    if (part->held == VR_SIM_UNWRITTEN || part->held == VR_SIM_PASSED) add_gap(read, to, part->size_bytes);
    return true;
}

// Returns the part as a read that starts at `begun` sees it.
static struct part visible_at(const struct vr_sim_content *content, uint64_t output, uint64_t begun, uint64_t at, uint64_t size_bytes) {
    struct part part = part_at(content, at, size_bytes);
    if (!is_stale(content, output, begun, at)) return part;
    const uint64_t left = left_bytes(output), done = at - begun;
    if (done >= left) return (struct part){.held = VR_SIM_PASSED, .size_bytes = part.size_bytes};
    part.size_bytes = least_of(part.size_bytes, left - done);
    part.updated = true;
    return part;
}

bool vr_sim_content_read(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, struct vr_sim_read *read) {
    const uint64_t begun = at, output = vr_map_get(&content->outputs, at);
    unsigned char *to = bytes;
    while (size_bytes > 0) {
        const struct part part = visible_at(content, output, begun, at, size_bytes);
        if (!read_part(content, at, &part, to, read)) return false;
        at += part.size_bytes;
        to += part.size_bytes;
        size_bytes -= part.size_bytes;
    }
    return true;
}

// --- results of kernels ---------------------------------------------------------------------------------------------

static enum vr_sim_level level_of_part(const struct part *part) {
    if (part->held == VR_SIM_SUPPOSED) return (enum vr_sim_level)part->word;
    if (part->updated) return VR_SIM_LIKELY;
    return part->held == VR_SIM_FILL || part->held == VR_SIM_BYTES || part->held == VR_SIM_SHARED ? VR_SIM_KNOWN : VR_SIM_UNKNOWN;
}

bool vr_sim_content_look(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, void *bytes, uint8_t *levels) {
    const uint64_t begun = at, output = vr_map_get(&content->outputs, at);
    struct vr_sim_read unseen = {0};
    unsigned char *to = bytes;
    while (size_bytes > 0) {
        const struct part part = visible_at(content, output, begun, at, size_bytes);
        if (!read_part(content, at, &part, to, &unseen)) return false;
        memset(levels, (int)level_of_part(&part), (size_t)part.size_bytes);
        at += part.size_bytes;
        to += part.size_bytes;
        levels += part.size_bytes;
        size_bytes -= part.size_bytes;
    }
    return true;
}

bool vr_sim_content_result(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, const void *bytes, enum vr_sim_level level) {
    if (bytes == NULL) return hold_nothing(content, at, size_bytes, VR_SIM_PASSED);
    if (level == VR_SIM_KNOWN || part_at(content, at, size_bytes).held == VR_SIM_SHARED)
        return vr_sim_content_write(content, at, size_bytes, bytes);
    return put_extent(content, at, size_bytes, VR_SIM_SUPPOSED, (uint32_t)level, ++content->writes) &&
           write_file(content, at, size_bytes, bytes);
}

// --- copying --------------------------------------------------------------------------------------------------------

static bool copy_bytes(struct vr_sim_content *content, uint64_t to, uint64_t from, uint64_t size_bytes, enum vr_sim_level level) {
    for (uint64_t span; size_bytes > 0; to += span, from += span, size_bytes -= span) {
        span = vr_sim_windows_span(from, size_bytes);
        const unsigned char *bytes = vr_sim_windows_read(&content->windows, from);
        if (bytes == NULL) bytes = vr_sim_windows_write(&content->windows, from, span);
        if (bytes == NULL || !vr_sim_content_result(content, to, span, bytes, level)) return false;
    }
    return true;
}

static bool copy_part(struct vr_sim_content *content, uint64_t to, uint64_t from, const struct part *part) {
    switch (part->held) {
    case VR_SIM_FILL: return vr_sim_content_fill(content, to, part->size_bytes, rotate_word(part->word, to - from));
    case VR_SIM_BYTES:
    case VR_SIM_SHARED: return copy_bytes(content, to, from, part->size_bytes, VR_SIM_KNOWN);
    case VR_SIM_SUPPOSED: return copy_bytes(content, to, from, part->size_bytes, (enum vr_sim_level)part->word);
    default: return hold_nothing(content, to, part->size_bytes, part->held);
    }
}

// Copies in pieces through host memory, in the direction that reads each piece before it is overwritten.
static bool move_content(struct vr_sim_content *content, uint64_t to, uint64_t from, uint64_t size_bytes) {
    unsigned char *bytes = malloc(MOVE_BYTES);
    bool moved = bytes != NULL;
    for (uint64_t done = 0, span; moved && done < size_bytes; done += span) {
        span = least_of(size_bytes - done, MOVE_BYTES);
        const uint64_t at = to < from ? done : size_bytes - done - span;
        struct vr_sim_read read = {0};
        moved = vr_sim_content_read(content, from + at, span, bytes, &read);
        if (moved && read.unwritten_bytes + read.passed_bytes == span)
            moved = hold_nothing(content, to + at, span, read.passed_bytes == 0 ? VR_SIM_UNWRITTEN : VR_SIM_PASSED);
        else if (moved)
            moved = vr_sim_content_write(content, to + at, span, bytes);
    }
    free(bytes);
    return moved;
}

bool vr_sim_content_copy(struct vr_sim_content *content, uint64_t to, uint64_t from, uint64_t size_bytes) {
    if (to == from) return true;
    if (to < from + size_bytes && from < to + size_bytes) return move_content(content, to, from, size_bytes);
    const uint64_t begun = from, output = vr_map_get(&content->outputs, from);
    while (size_bytes > 0) {
        const struct part part = visible_at(content, output, begun, from, size_bytes);
        if (!copy_part(content, to, from, &part)) return false;
        to += part.size_bytes;
        from += part.size_bytes;
        size_bytes -= part.size_bytes;
    }
    return true;
}

// --- sharing and freeing --------------------------------------------------------------------------------------------

bool vr_sim_content_share(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes) {
    if (!vr_sim_windows_lengthen(&content->windows, at + size_bytes)) return false;
    for (uint64_t place = at, end = at + size_bytes; place < end;) {
        const struct part part = part_at(content, place, end - place);
        if (part.held == VR_SIM_FILL && part.word != 0 && !paint_file(content, place, part.size_bytes, part.word)) return false;
        const bool zero = part.held == VR_SIM_UNWRITTEN || part.held == VR_SIM_NOT_KEPT || part.held == VR_SIM_PASSED ||
                          (part.held == VR_SIM_FILL && part.word == 0);
        if (zero && !vr_sim_windows_zero(&content->windows, place, part.size_bytes, false)) return false;
        place += part.size_bytes;
    }
    if (vr_sim_ranges_reserve(&content->extents, 3) != VRAM_OK) return false;
    (void)cut_extent(content, at, at + size_bytes);
    insert_extent(content, at, at + size_bytes, VR_SIM_SHARED, 0);
    return true;
}

void vr_sim_content_drop(struct vr_sim_content *content, uint64_t at, uint64_t size_bytes, bool kept) {
    const struct part part = part_at(content, at, size_bytes);
    const bool part_of_extent = part.held != VR_SIM_UNWRITTEN || part.size_bytes < size_bytes;
    // A piece of a pool may cut an extent in the middle: that needs two nodes, of which the removal provides one.
    if (part_of_extent && vr_sim_ranges_reserve(&content->extents, 2) == VRAM_OK) (void)cut_extent(content, at, at + size_bytes);
    if (!kept) vr_sim_windows_discard(&content->windows, at, size_bytes, content->end);
}

bool vr_sim_content_check(const struct vr_sim_content *content) {
    const struct vr_sim_range *extent = vr_sim_ranges_next(&content->extents, 0);
    for (; extent != NULL; extent = vr_sim_ranges_next(&content->extents, vr_sim_range_end(extent)))
        if (extent->kind <= VR_SIM_UNWRITTEN || extent->kind > VR_SIM_SUPPOSED || vr_sim_range_end(extent) > content->end) return false;
    return vr_sim_ranges_check(&content->extents) && vr_sim_windows_check(&content->windows);
}
