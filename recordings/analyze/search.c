#include "analyze/search.h"

#include <stdio.h>

enum { UNSEEN, NO, YES };
enum { LEAST_DIGITS = 6, MOST_DIGITS = 16 };

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Reads "0x7f03c", "b7f03c0000000_2" or bare digits.
static void read_address(struct vr_search *search, const char *text) {
    const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const bool label = (text[0] == 'b' || text[0] == 's') && is_hex(text[1]);
    const char *digits = text + (hex ? 2 : label ? 1 : 0);
    size_t length = 0;
    while (is_hex(digits[length])) length++;
    if (length == 0 || length > MOST_DIGITS || (!hex && digits[length] != '_' && length < LEAST_DIGITS)) return;
    const char *end = digits + length;
    int64_t version = -1;
    if (*end == '_' && end[1] >= '0' && end[1] <= '9') {
        char *rest;
        version = strtoll(end + 1, &rest, 10);
        end = rest;
    }
    if (*end != '\0') return;
    search->address = strtoull(digits, NULL, 16);
    search->digits = (unsigned)length;
    search->version = version;
    search->has_address = true;
}

enum vram_status vr_search_init(struct vr_search *search, const struct vr_model *model, const char *text, bool regex,
                                struct vram_error *error) {
    struct vr_search made = {.model = model, .version = -1};
    VR_TRY(vr_finder_init(&made.finder, text, regex, error));
    if (!regex) read_address(&made, text);
    made.frame = calloc((size_t)model->frames.count + 1, 1);
    made.stack = calloc((size_t)model->stacks.count + 1, 1);
    made.string = calloc((size_t)model->strings.count + 1, 1);
    if (made.frame == NULL || made.stack == NULL || made.string == NULL) {
        vr_search_release(&made);
        return VRAM_NO_HOST_MEMORY;
    }
    *search = made;
    return VRAM_OK;
}

void vr_search_release(struct vr_search *search) {
    vr_finder_release(&search->finder);
    free(search->frame);
    free(search->stack);
    free(search->string);
    *search = (struct vr_search){.model = NULL};
}

bool vr_search_frame(struct vr_search *search, uint32_t frame) {
    if (search->frame[frame] == UNSEEN) {
        const struct vr_frames *frames = &search->model->frames;
        char text[VR_FINDER_BYTES];
        snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(search->model, frames->filename[frame]),
                 (long long)frames->line[frame], vr_model_string(search->model, frames->name[frame]));
        search->frame[frame] = vr_finder_matches(&search->finder, text) ? YES : NO;
    }
    return search->frame[frame] == YES;
}

bool vr_search_stack(struct vr_search *search, uint32_t stack) {
    if (search->stack[stack] == UNSEEN) {
        const struct vr_stacks *stacks = &search->model->stacks;
        bool found = false;
        for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1] && !found; i++)
            found = vr_search_frame(search, stacks->frame[i]);
        search->stack[stack] = found ? YES : NO;
    }
    return search->stack[stack] == YES;
}

bool vr_search_string(struct vr_search *search, uint32_t id) {
    if (id == 0) return false;
    if (search->string[id] == UNSEEN)
        search->string[id] = vr_finder_matches(&search->finder, vr_model_string(search->model, id)) ? YES : NO;
    return search->string[id] == YES;
}

static unsigned digits_of(uint64_t address) { return address == 0 ? 1 : vr_log2_floor(address) / 4 + 1; }

static bool address_matches(const struct vr_search *search, const struct vr_lifetimes *lifetimes, size_t row) {
    const uint64_t address = lifetimes->address[row];
    if (search->version >= 0) return address == search->address;
    const unsigned digits = digits_of(address);
    if (digits > search->digits && address >> (4 * (digits - search->digits)) == search->address) return true;
    return search->address >= address && (search->address == address || search->address - address < lifetimes->size_bytes[row]);
}

static bool names_match(struct vr_search *search, const struct vr_history *history, uint32_t birth) {
    return vr_search_string(search, history->tag[birth]) || vr_search_string(search, history->metadata[birth]) ||
           vr_search_string(search, history->context[birth]);
}

void vr_search_rows(struct vr_search *search, const struct vr_view *view, const struct vr_lifetimes *lifetimes, uint8_t *bits,
                    struct vram_report_sum *found) {
    int64_t before = search->version;
    for (size_t row = 0; row < lifetimes->count; row++) {
        bool matches = search->has_address && address_matches(search, lifetimes, row);
        // A label means one of those that its address had, counted from 0.
        if (matches && search->version >= 0) matches = before-- == 0;
        if (!matches) matches = vr_search_stack(search, lifetimes->stack[row]);
        if (!matches && lifetimes->birth[row] != VR_BEFORE_TRACE) matches = names_match(search, view->history, lifetimes->birth[row]);
        if (!matches) continue;
        bits[row / 8] = (uint8_t)(bits[row / 8] | 1u << row % 8);
        found->count++;
        found->bytes += lifetimes->size_bytes[row];
    }
}
