// Finds the texts, stacks and allocations of a recording that match a user's search.
#include "analyze/text_search.h"

#include <stdio.h>

enum { MOST_PATTERN_BYTES = 256, MOST_REPEATS = 1000 };

static char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

// Returns whether the counted repetitions multiply an expression by a bounded factor. A repetition without an upper bound counts as its
// lower bound.
static bool repeats_are_few(const char *text) {
    uint64_t product = 1;
    for (const char *at = strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        char *end;
        uint64_t times = strtoull(at + 1, &end, 10);
        if (*end == ',' && end[1] >= '0' && end[1] <= '9') times = strtoull(end + 1, NULL, 10);
        if (times > MOST_REPEATS) return false;
        product *= times == 0 ? 1 : times;
        if (product > MOST_REPEATS) return false;
    }
    return true;
}

// Rejects back references, whose time has no bound.
static bool has_back_reference(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text != '\\') continue;
        text++;
        if (*text >= '1' && *text <= '9') return true;
        if (*text == '\0') return false;
    }
    return false;
}

static enum vram_status compile_expression(struct vr_finder *finder, const char *text, struct vram_error *error) {
    if (!repeats_are_few(text))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the regular expression has more than %d repetitions", MOST_REPEATS);
    if (has_back_reference(text))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "back references are not supported in regular expressions");
    const int code = regcomp(&finder->expression, text, REG_EXTENDED | REG_ICASE);
    if (code == REG_ESPACE) return VRAM_NO_HOST_MEMORY;
    if (code != 0) {
        char reason[120];
        regerror(code, &finder->expression, reason, sizeof reason);
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "invalid regular expression '%.60s': %s", text, reason);
    }
    finder->compiled = true;
    return VRAM_OK;
}

enum vram_status vr_finder_init(struct vr_finder *finder, const char *text, bool regex, struct vram_error *error) {
    *finder = (struct vr_finder){.words = NULL};
    finder->length = strlen(text);
    if (finder->length == 0) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the search text is empty");
    if (finder->length > MOST_PATTERN_BYTES)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the search text is longer than %d bytes", MOST_PATTERN_BYTES);
    if (regex) return compile_expression(finder, text, error);
    finder->words = malloc(finder->length + 1);
    if (finder->words == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i <= finder->length; i++) finder->words[i] = lower_ascii(text[i]);
    return VRAM_OK;
}

void vr_finder_release(struct vr_finder *finder) {
    free(finder->words);
    if (finder->compiled) regfree(&finder->expression);
    *finder = (struct vr_finder){.words = NULL};
}

static bool contains_text(const struct vr_finder *finder, const char *text) {
    for (size_t left = VR_FINDER_BYTES; *text != '\0' && left != 0; text++, left--) {
        if (lower_ascii(*text) != finder->words[0]) continue;
        size_t i = 1;
        while (i < finder->length && lower_ascii(text[i]) == finder->words[i]) i++;
        if (i == finder->length) return true;
    }
    return false;
}

// Returns the text itself, or its bounded beginning in `room`.
static const char *bounded_text(const char *text, char room[VR_FINDER_BYTES + 1]) {
    const char *end = memchr(text, '\0', VR_FINDER_BYTES);
    if (end != NULL) return text;
    memcpy(room, text, VR_FINDER_BYTES);
    room[VR_FINDER_BYTES] = '\0';
    return room;
}

bool vr_finder_matches(const struct vr_finder *finder, const char *text) {
    char room[VR_FINDER_BYTES + 1];
    if (!finder->compiled) return contains_text(finder, text);
    return regexec(&finder->expression, bounded_text(text, room), 0, NULL, 0) == 0;
}

bool vr_finder_part(const struct vr_finder *finder, const char *text, size_t *start, size_t *length) {
    char room[VR_FINDER_BYTES + 1];
    regmatch_t match[2];
    assert(finder->compiled);
    if (regexec(&finder->expression, bounded_text(text, room), 2, match, 0) != 0) return false;
    const regmatch_t *part = finder->expression.re_nsub > 0 && match[1].rm_so >= 0 ? &match[1] : &match[0];
    *start = (size_t)part->rm_so;
    *length = (size_t)(part->rm_eo - part->rm_so);
    return true;
}

enum { UNSEEN, NO, YES };
enum { LEAST_DIGITS = 6, MOST_DIGITS = 16 };

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Parses "0x7f03c", "b7f03c0000000_2" or bare digits.
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

static bool search_frame(struct vr_search *search, uint32_t frame) {
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
            found = search_frame(search, stacks->frame[i]);
        search->stack[stack] = found ? YES : NO;
    }
    return search->stack[stack] == YES;
}

// Searches a string of the model; string 0 never matches.
static bool search_string(struct vr_search *search, uint32_t id) {
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
    return search_string(search, history->tag[birth]) || search_string(search, history->metadata[birth]) ||
           search_string(search, history->context[birth]);
}

void vr_search_rows(struct vr_search *search, const struct vr_view *view, const struct vr_lifetimes *lifetimes, uint8_t *bits,
                    struct vram_report_sum *found) {
    int64_t before = search->version;
    for (size_t row = 0; row < lifetimes->count; row++) {
        bool matches = search->has_address && address_matches(search, lifetimes, row);
        // A label means one of the allocations at its address, counted from 0.
        if (matches && search->version >= 0) matches = before-- == 0;
        if (!matches) matches = vr_search_stack(search, lifetimes->stack[row]);
        if (!matches && lifetimes->birth[row] != VR_BEFORE_TRACE) matches = names_match(search, view->history, lifetimes->birth[row]);
        if (!matches) continue;
        bits[row / 8] = (uint8_t)(bits[row / 8] | 1u << row % 8);
        found->count++;
        found->bytes += lifetimes->size_bytes[row];
    }
}
