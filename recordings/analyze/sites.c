// Groups allocations by call site and by call stack; stacks are named by SHA-1 sums of their frames.
#include "analyze/sites.h"

#include <stdio.h>

#include "analyze/text_search.h"
#include "model/recording.h"
#include "vram/recording.h"

static uint32_t rotate_left(uint32_t x, unsigned by) { return x << by | x >> (32 - by); }

static void compress_block(uint32_t state[5], const unsigned char *block) {
    uint32_t w[80];
    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (unsigned i = 16; i < 80; i++) w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f, k;
        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5A827999;
        } else if (i < 40) {
            f = b ^ c ^ d;
            k = 0x6ED9EBA1;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8F1BBCDC;
        } else {
            f = b ^ c ^ d;
            k = 0xCA62C1D6;
        }
        const uint32_t next = rotate_left(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void vr_sha1_init(struct vr_sha1 *sha1) { *sha1 = (struct vr_sha1){.state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0}}; }

void vr_sha1_add(struct vr_sha1 *sha1, const void *bytes, size_t length) {
    const unsigned char *from = bytes;
    while (length != 0) {
        const size_t filled = (size_t)(sha1->length % sizeof sha1->block);
        size_t part = sizeof sha1->block - filled;
        if (part > length) part = length;
        memcpy(sha1->block + filled, from, part);
        sha1->length += part;
        from += part;
        length -= part;
        if (sha1->length % sizeof sha1->block == 0) compress_block(sha1->state, sha1->block);
    }
}

uint64_t vr_sha1_end(struct vr_sha1 *sha1) {
    static const unsigned char zeros[64];
    const uint64_t bits = sha1->length * 8;
    unsigned char tail[8];
    for (unsigned i = 0; i < 8; i++) tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    vr_sha1_add(sha1, "\x80", 1);
    vr_sha1_add(sha1, zeros, (120 - (size_t)(sha1->length % 64)) % 64);
    vr_sha1_add(sha1, tail, sizeof tail);
    return (uint64_t)sha1->state[0] << 32 | sha1->state[1];
}

enum vram_status vr_sites_init(struct vr_sites *sites, const struct vr_model *model) {
    uint8_t *kind = calloc((size_t)model->frames.count + 1, sizeof *kind);
    uint32_t *site = calloc((size_t)model->stacks.count + 1, sizeof *site);
    if (kind == NULL || site == NULL) {
        free(kind);
        free(site);
        return VRAM_NO_HOST_MEMORY;
    }
    *sites = (struct vr_sites){.model = model, .frame_kind = kind, .site = site};
    return VRAM_OK;
}

void vr_sites_release(struct vr_sites *sites) {
    free(sites->frame_kind);
    free(sites->site);
    *sites = (struct vr_sites){0};
}

void vr_sites_forget(struct vr_sites *sites) { memset(sites->site, 0, (size_t)sites->model->stacks.count * sizeof *sites->site); }

enum vr_frame_kind vr_sites_kind(struct vr_sites *sites, uint32_t frame) {
    const uint8_t *skipped = sites->model->frames.skipped;
    if (skipped != NULL && skipped[frame] != 0) return VR_FRAME_SKIPPED;
    if (sites->frame_kind[frame] == VR_FRAME_UNSEEN) sites->frame_kind[frame] = (uint8_t)vr_frame_kind(sites->model, frame);
    return (enum vr_frame_kind)sites->frame_kind[frame];
}

static uint32_t choose_frame(struct vr_sites *sites, uint64_t first, uint64_t end) {
    const uint32_t *frame = sites->model->stacks.frame;
    struct vr_site_choice choice = {.has = {false}};
    for (uint64_t i = first; i < end; i++) {
        if (vr_site_choice_add(&choice, vr_sites_kind(sites, frame[i]), frame[i])) break;
    }
    return (uint32_t)vr_site_choice_best(&choice);
}

// Chooses as other tools do, ignoring the table and the frames excluded by the user.
static uint32_t choose_plain(const struct vr_sites *sites, uint64_t first, uint64_t end) {
    const uint32_t *frame = sites->model->stacks.frame;
    for (uint64_t i = first; i < end; i++) {
        if (vr_frame_is_python(sites->model, frame[i], true)) return frame[i];
    }
    return frame[first];
}

uint32_t vr_sites_frame(struct vr_sites *sites, uint32_t stack) {
    const struct vr_stacks *stacks = &sites->model->stacks;
    const uint64_t first = stacks->offset[stack], end = stacks->offset[stack + 1];
    if (first == end) return VR_NO_SITE;
    if (sites->site[stack] == 0)
        sites->site[stack] = 1 + (sites->plain ? choose_plain(sites, first, end) : choose_frame(sites, first, end));
    return sites->site[stack] - 1;
}

uint32_t vr_sites_innermost(struct vr_sites *sites, uint32_t stack) {
    const struct vr_stacks *stacks = &sites->model->stacks;
    const uint64_t first = stacks->offset[stack], end = stacks->offset[stack + 1];
    if (first == end) return VR_NO_SITE;
    if (vr_sites_kind(sites, stacks->frame[first]) != VR_FRAME_UNWINDER) return stacks->frame[first];
    for (uint64_t i = first; i < end; i++) {
        if (vr_frame_is_python(sites->model, stacks->frame[i], false)) return stacks->frame[i];
    }
    return vr_sites_frame(sites, stack);
}

bool vr_sites_folds(struct vr_sites *sites, uint32_t stack, uint32_t frame) {
    return vr_frame_kind_word(vr_sites_kind(sites, frame))[0] != '\0' && vr_sites_frame(sites, stack) != frame;
}

// Longest file or function name; longer ones are cut, because names are copied, and one long name can be in many frames.
#define NAME_BYTES "4096"

enum vram_status vr_sites_name(const struct vr_sites *sites, uint32_t frame, struct vr_arena *arena, const char **name) {
    if (frame == VR_NO_SITE) return vr_arena_copy(arena, "<no frames>", strlen("<no frames>"), name);
    const struct vr_frames *frames = &sites->model->frames;
    return vr_arena_printf(arena, name, "%." NAME_BYTES "s:%llu:%." NAME_BYTES "s", vr_model_string(sites->model, frames->filename[frame]),
                           (unsigned long long)frames->line[frame], vr_model_string(sites->model, frames->name[frame]));
}

// Bytes and count of one stack or one frame.
struct site_group {
    uint32_t id;
    bool hashed;
    uint64_t hash; // of a stack, computed if needed
    uint64_t bytes;
    uint64_t count;
};

// Maximum bytes of stack text hashed per report. A small file can describe stacks with enormous text (a long name, repeated); beyond this,
// stacks are compared by their number instead of their hash.
#define HASH_BUDGET ((uint64_t)256 << 20)

static uint64_t stack_text_bytes(const struct vr_model *model, uint32_t stack) {
    uint64_t bytes = 0;
    for (uint64_t i = model->stacks.offset[stack]; i < model->stacks.offset[stack + 1]; i++) {
        const uint32_t frame = model->stacks.frame[i];
        bytes +=
            12 + vr_model_string_length(model, model->frames.filename[frame]) + vr_model_string_length(model, model->frames.name[frame]);
    }
    return bytes;
}

// Hashes the lines "file:line:function" of the frames, innermost first. The hash is 0 for no frames, so that such stacks come first.
static void hash_stack(struct vr_sites *sites, struct site_group *group) {
    const struct vr_model *model = sites->model;
    const uint64_t first = model->stacks.offset[group->id], end = model->stacks.offset[group->id + 1];
    const uint64_t text = stack_text_bytes(model, group->id);
    if (group->hashed || first == end || text > HASH_BUDGET - sites->hashed_bytes) return;
    sites->hashed_bytes += text;
    struct vr_sha1 sha1;
    vr_sha1_init(&sha1);
    for (uint64_t i = first; i < end; i++) {
        const uint32_t frame = model->stacks.frame[i];
        const uint32_t file = model->frames.filename[frame], function = model->frames.name[frame];
        char line[32];
        const int length = snprintf(line, sizeof line, ":%llu:", (unsigned long long)model->frames.line[frame]);
        vr_sha1_add(&sha1, vr_model_string(model, file), vr_model_string_length(model, file));
        vr_sha1_add(&sha1, line, (size_t)length);
        vr_sha1_add(&sha1, vr_model_string(model, function), vr_model_string_length(model, function));
        vr_sha1_add(&sha1, "\n", 1);
    }
    group->hash = vr_sha1_end(&sha1);
    group->hashed = true;
}

static enum vram_status stack_name(struct vr_sites *sites, struct site_group *group, struct vr_arena *arena, const char **name) {
    const struct vr_stacks *stacks = &sites->model->stacks;
    if (stacks->offset[group->id] == stacks->offset[group->id + 1]) return vr_arena_copy(arena, "", 0, name);
    hash_stack(sites, group);
    if (!group->hashed) return vr_arena_printf(arena, name, "stack %u", (unsigned)group->id);
    return vr_arena_printf(arena, name, "%016llx", (unsigned long long)group->hash);
}

static int compare_stacks(struct vr_sites *sites, struct site_group *a, struct site_group *b) {
    hash_stack(sites, a);
    hash_stack(sites, b);
    if (a->hash != b->hash) return VR_ORDER(a->hash, b->hash);
    return VR_ORDER(a->id, b->id);
}

// A site's text in three pieces, read byte by byte.
struct site_text {
    const char *pieces[3];
    char line[32];
    unsigned piece;
};

static void site_text_init(struct site_text *text, const struct vr_sites *sites, uint32_t frame) {
    const struct vr_frames *frames = &sites->model->frames;
    *text = (struct site_text){.pieces = {"<no frames>", "", ""}};
    if (frame == VR_NO_SITE) return;
    (void)snprintf(text->line, sizeof text->line, ":%llu:", (unsigned long long)frames->line[frame]);
    text->pieces[0] = vr_model_string(sites->model, frames->filename[frame]);
    text->pieces[1] = text->line;
    text->pieces[2] = vr_model_string(sites->model, frames->name[frame]);
}

static int site_text_next(struct site_text *text) {
    while (text->piece < 2 && *text->pieces[text->piece] == '\0') text->piece++;
    if (*text->pieces[text->piece] == '\0') return 0;
    return (unsigned char)*text->pieces[text->piece]++;
}

static int compare_sites(struct vr_sites *sites, struct site_group *a, struct site_group *b) {
    const struct vr_frames *frames = &sites->model->frames;
    struct site_text x, y;
    site_text_init(&x, sites, a->id);
    site_text_init(&y, sites, b->id);
    const bool framed = a->id != VR_NO_SITE && b->id != VR_NO_SITE;
    if (framed && frames->filename[a->id] == frames->filename[b->id]) x.piece = y.piece = 1;
    for (;;) {
        const int p = site_text_next(&x), q = site_text_next(&y);
        if (p != q || p == 0) return p - q;
    }
}

static int by_id(const void *a, const void *b) {
    const struct site_group *x = a, *y = b;
    return VR_ORDER(x->id, y->id);
}

// Merges rows with the same id; returns the number of rows left.
static size_t merge_groups(struct site_group *rows, size_t count) {
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_id);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && rows[kept - 1].id == rows[i].id) {
            rows[kept - 1].bytes += rows[i].bytes;
            rows[kept - 1].count += rows[i].count;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

// How groups are compared and named, which differs between grouping by stack and by site.
struct site_naming {
    int (*compare)(struct vr_sites *sites, struct site_group *a, struct site_group *b);
    enum vram_status (*name)(struct vr_sites *sites, struct site_group *group, struct vr_arena *arena, const char **name);
};

static enum vram_status site_name(struct vr_sites *sites, struct site_group *group, struct vr_arena *arena, const char **name) {
    return vr_sites_name(sites, group->id, arena, name);
}

static const struct site_naming by_stack = {compare_stacks, stack_name};
static const struct site_naming by_site = {compare_sites, site_name};

// Returns whether a comes before b: more bytes, more allocations, smaller name. Compares names only for ties.
static bool group_before(struct vr_sites *sites, const struct site_naming *naming, struct site_group *a, struct site_group *b) {
    if (a->bytes != b->bytes) return a->bytes > b->bytes;
    if (a->count != b->count) return a->count > b->count;
    return naming->compare(sites, a, b) < 0;
}

// Moves the first `top` rows to the front, sorted.
static size_t select_top(struct vr_sites *sites, const struct site_naming *naming, struct site_group *rows, size_t count, size_t top) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct site_group row = rows[i];
        if (kept == top && (top == 0 || !group_before(sites, naming, &row, &rows[top - 1]))) continue;
        // The row that drops out takes the new row's place, so that none is lost for the next grouping.
        if (kept == top) {
            rows[i] = rows[top - 1];
        } else {
            rows[i] = rows[kept++];
        }
        size_t at = kept - 1;
        for (; at > 0 && group_before(sites, naming, &row, &rows[at - 1]); at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
    return kept;
}

// Merged rows, of which the `top` largest are selected.
struct site_rows {
    struct site_group *rows;
    size_t count, top;
};

static enum vram_status name_top(struct vr_sites *sites, const struct site_naming *naming, const struct site_rows *from,
                                 struct vr_arena *arena, const struct vram_report_group **named, size_t *named_count) {
    struct site_group *rows = from->rows;
    const size_t kept = select_top(sites, naming, rows, from->count, from->top);
    void *room;
    VR_TRY(vr_arena_array(arena, kept, sizeof(struct vram_report_group), &room));
    struct vram_report_group *groups = room;
    for (size_t i = 0; i < kept; i++) {
        groups[i] = (struct vram_report_group){.bytes = rows[i].bytes, .count = rows[i].count};
        VR_TRY(naming->name(sites, &rows[i], arena, &groups[i].name));
    }
    *named = groups;
    *named_count = kept;
    return VRAM_OK;
}

static enum vram_status group_rows(struct vr_sites *sites, struct site_group *rows, size_t count, size_t top, struct vr_arena *arena,
                                   struct vram_report_live *live) {
    // All empty stacks are the same.
    for (size_t i = 0; i < count; i++) {
        if (sites->model->stacks.offset[rows[i].id] == sites->model->stacks.offset[rows[i].id + 1]) rows[i].id = 0;
    }
    count = merge_groups(rows, count);
    live->distinct_stacks = count;
    VR_TRY(name_top(sites, &by_stack, &(struct site_rows){rows, count, top}, arena, &live->stacks, &live->stack_count));
    for (size_t i = 0; i < count; i++) rows[i].id = vr_sites_frame(sites, rows[i].id);
    count = merge_groups(rows, count);
    live->distinct_sites = count;
    return name_top(sites, &by_site, &(struct site_rows){rows, count, top}, arena, &live->sites, &live->site_count);
}

// Collects one row per allocation live after `event`. The caller frees *rows, even if there are none.
static enum vram_status collect_rows(const struct vr_lifetimes *lifetimes, int64_t event, struct site_group **rows, size_t *row_count) {
    size_t count = 0;
    for (size_t i = 0; i < lifetimes->count; i++) count += vr_lifetimes_live_at(lifetimes, i, event);
    *rows = malloc((count + 1) * sizeof **rows);
    if (*rows == NULL) return VRAM_NO_HOST_MEMORY;
    *row_count = 0;
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (!vr_lifetimes_live_at(lifetimes, i, event)) continue;
        (*rows)[(*row_count)++] = (struct site_group){.id = lifetimes->stack[i], .bytes = lifetimes->size_bytes[i], .count = 1};
    }
    return VRAM_OK;
}

enum vram_status vr_sites_at_peak(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, size_t top, struct vr_arena *arena,
                                  struct vram_report_live *live) {
    struct site_group *rows;
    size_t count;
    VR_TRY(collect_rows(lifetimes, lifetimes->peak_event, &rows, &count));
    const enum vram_status status = group_rows(sites, rows, count, top, arena, live);
    free(rows);
    return status;
}

enum vram_status vr_sites_at(struct vr_sites *sites, const struct vr_lifetimes *lifetimes, int64_t event, size_t top,
                             struct vr_arena *arena, const struct vram_report_group **groups, size_t *group_count) {
    struct site_group *rows;
    size_t count;
    VR_TRY(collect_rows(lifetimes, event, &rows, &count));
    for (size_t i = 0; i < count; i++) rows[i].id = vr_sites_frame(sites, rows[i].id);
    const enum vram_status status =
        name_top(sites, &by_site, &(struct site_rows){rows, merge_groups(rows, count), top}, arena, groups, group_count);
    free(rows);
    return status;
}

static_assert(VR_NO_SITE == VRAM_NO_FRAME, "the value is passed on unchanged");

enum vram_status vram_recording_sites(const struct vram_recording *recording, uint32_t *frames) {
    VR_REQUIRE(recording && frames);
    const struct vr_model *model = vr_recording_model(recording);
    struct vr_sites sites;
    VR_TRY(vr_sites_init(&sites, model));
    for (uint32_t stack = 0; stack < model->stacks.count; stack++) frames[stack] = vr_sites_frame(&sites, stack);
    vr_sites_release(&sites);
    return VRAM_OK;
}

size_t vram_site_of_frames(const struct vram_frame *frames, size_t count) {
    struct vr_site_choice choice = {.has = {false}};
    if (frames == NULL || count == 0) return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct vr_frame_text text = {.file = frames[i].filename,
                                           .file_length = strlen(frames[i].filename),
                                           .name = frames[i].name,
                                           .name_length = strlen(frames[i].name)};
        if (vr_site_choice_add(&choice, vr_frame_kind_of(&text), i)) break;
    }
    return (size_t)vr_site_choice_best(&choice);
}

static bool is_skipped(const struct vr_model *model, const struct vr_finder *finder, uint32_t frame) {
    char text[VR_FINDER_BYTES];
    (void)snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(model, model->frames.filename[frame]),
                   (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
    return vr_finder_matches(finder, text);
}

// Reasons for excluding a frame, in model->frames.skipped.
enum { FOR_GOOD = 1, FOR_NOW = 2 };

static enum vram_status skip_frames(struct vram_recording *recording, const char *expression, uint8_t keeps, uint8_t why,
                                    struct vram_error *error) {
    struct vr_model *model = &recording->model;
    const bool some = *expression != '\0';
    struct vr_finder finder;
    if (some) VR_TRY(vr_finder_init(&finder, expression, true, error));
    uint8_t *skipped = calloc((size_t)model->frames.count + 1, sizeof *skipped);
    if (skipped == NULL) {
        if (some) vr_finder_release(&finder);
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    }
    for (uint32_t i = 0; i < model->frames.count; i++) {
        if (model->frames.skipped != NULL) skipped[i] = model->frames.skipped[i] & keeps;
        if (some && is_skipped(model, &finder, i)) skipped[i] |= why;
    }
    if (some) vr_finder_release(&finder);
    free(model->frames.skipped);
    model->frames.skipped = skipped;
    return VRAM_OK;
}

enum vram_status vram_recording_skip_frames(struct vram_recording *recording, const char *expression, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && expression);
    return skip_frames(recording, expression, FOR_GOOD | FOR_NOW, FOR_GOOD, error);
}

enum vram_status vr_sites_skip_for_now(struct vram_recording *recording, const char *expression, struct vram_error *error) {
    return skip_frames(recording, expression, FOR_GOOD, FOR_NOW, error);
}
