// Reads the bytes of a recording, or of a pickle embedded in an HTML page.
#include "snapshot/input.h"

// Small enough to stay in a core's private cache between filling and reading.
enum { BUFFER_BYTES = 1 << 16 };

// With fewer bytes than this, the rest of the input cannot be estimated.
#define LEAST_TO_EXTRAPOLATE (1 * VR_MIB)

double vr_input_ahead(const struct vr_input *input) {
    const uint64_t used = vr_input_offset(input);
    return used < LEAST_TO_EXTRAPOLATE || used >= input->from.bytes ? 0 : (double)input->from.bytes / (double)used;
}

// Raises the budget by `bytes` more bytes of input. The stated length of the input does not raise it, because it may be wrong.
static void widen_window(struct vr_input *input, uint64_t bytes) {
    if (input->budget == NULL) return;
    struct vr_budget *budget = input->budget;
    budget->limit_bytes += bytes * VR_BUDGET_FACTOR;
    const uint64_t most = input->from.most_memory_bytes, held = input->capacity;
    if (most != 0 && budget->limit_bytes > (most > held ? most - held : 0)) {
        budget->limit_bytes = most > held ? most - held : 0;
        budget->capped = true;
    }
    budget->ahead = vr_input_ahead(input);
}

void vr_input_on_memory(struct vr_input *input, const void *data, size_t size) {
    static const unsigned char none;
    memset(input, 0, sizeof *input);
    input->next = input->start = size == 0 ? &none : data;
    input->end = input->next + size;
    input->ended = true;
}

enum vram_status vr_input_on_input(struct vr_input *input, const struct vram_input *from) {
    memset(input, 0, sizeof *input);
    input->buffer = malloc(BUFFER_BYTES);
    if (input->buffer == NULL) return VRAM_NO_HOST_MEMORY;
    input->capacity = BUFFER_BYTES;
    input->next = input->end = input->start = input->buffer;
    input->from = *from;
    return VRAM_OK;
}

static uint64_t bytes_in(const struct vr_input *input) { return input->start_offset + (uint64_t)(input->end - input->start); }

void vr_input_set_budget(struct vr_input *input, struct vr_budget *budget) {
    input->budget = budget;
    widen_window(input, bytes_in(input));
}

void vr_input_release(struct vr_input *input) {
    free(input->buffer);
    memset(input, 0, sizeof *input);
}

// Moves the unread bytes to the front of the buffer.
static void compact_window(struct vr_input *input) {
    size_t left = vr_input_at_hand(input);
    input->start_offset = vr_input_offset(input);
    memmove(input->buffer, input->next, left);
    input->start = input->next = input->buffer;
    input->end = input->buffer + left;
}

// Doubles the buffer, which is full.
static enum vram_status enlarge_buffer(struct vr_input *input) {
    if (input->capacity > SIZE_MAX / 2) return VRAM_NO_HOST_MEMORY;
    size_t left = vr_input_at_hand(input);
    unsigned char *grown = realloc(input->buffer, input->capacity * 2);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    input->capacity *= 2;
    input->buffer = grown;
    input->start = input->next = grown;
    input->end = grown + left;
    return VRAM_OK;
}

enum vram_status vr_input_fill(struct vr_input *input, uint64_t wanted) {
    if (vr_input_at_hand(input) >= wanted || input->ended) return VRAM_OK;
    compact_window(input);
    while (!input->ended && vr_input_at_hand(input) < wanted) {
        size_t held = vr_input_at_hand(input);
        if (held == input->capacity) VR_TRY(enlarge_buffer(input));
        if (input->budget != NULL && input->budget->capped && input->capacity > input->from.most_memory_bytes) return VRAM_LIMIT;
        size_t got = input->from.read(input->from.context, input->buffer + held, input->capacity - held);
        if (got == SIZE_MAX || got > input->capacity - held) return VRAM_IO;
        input->ended = got == 0;
        input->end += got;
        widen_window(input, got);
    }
    return VRAM_OK;
}

static bool is_html_space(unsigned char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

// Skips white space. *found is false at the end of the page.
static enum vram_status skip_space(struct vr_input *page, unsigned char *byte, bool *found) {
    for (;;) {
        VR_TRY(vr_input_fill(page, 1));
        *found = page->next != page->end;
        if (!*found) return VRAM_OK;
        *byte = *page->next;
        if (!is_html_space(*byte)) return VRAM_OK;
        page->next++;
    }
}

// Skips past the next `"base64"`. *found is false at the end of the page.
static enum vram_status find_key(struct vr_input *page, bool *found) {
    static const char key[] = "\"base64\"";
    const size_t length = sizeof key - 1;
    *found = false;
    for (;;) {
        VR_TRY(vr_input_fill(page, length));
        if (vr_input_at_hand(page) < length) return VRAM_OK;
        const unsigned char *quote = memchr(page->next, '"', vr_input_at_hand(page) - length + 1);
        if (quote == NULL) {
            page->next = page->end - (length - 1);
        } else if (memcmp(quote, key, length) == 0) {
            page->next = quote + length;
            *found = true;
            return VRAM_OK;
        } else {
            page->next = quote + 1;
        }
    }
}

// Skips past `: "` with any white space. *found is false if something else follows.
static enum vram_status find_text(struct vr_input *page, bool *found) {
    static const char wanted[] = ":\"";
    for (size_t i = 0; i < sizeof wanted - 1; i++) {
        unsigned char byte = 0;
        VR_TRY(skip_space(page, &byte, found));
        if (!*found) return VRAM_OK;
        *found = byte == (unsigned char)wanted[i];
        if (!*found) return VRAM_OK;
        page->next++;
    }
    return VRAM_OK;
}

static int base64_sextet(unsigned char byte) {
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    if (byte == '+' || byte == '-') return 62;
    if (byte == '/' || byte == '_') return 63;
    return -1;
}

// Decodes up to four digits into the group of up to three bytes. Returns false if reading fails or a byte is not base64.
static bool decode_group(struct vr_html *html) {
    uint32_t bits = 0;
    unsigned digits = 0;
    while (digits < 4 && !html->ended) {
        unsigned char byte = 0;
        bool found = false;
        if (skip_space(html->page, &byte, &found) != VRAM_OK) return false;
        html->ended = !found || byte == '"' || byte == '=';
        if (html->ended) break;
        int digit = base64_sextet(byte);
        html->damaged = digit < 0;
        if (html->damaged) return false;
        html->page->next++;
        bits = bits << 6 | (uint32_t)digit;
        digits++;
    }
    bits <<= 6 * (4 - digits);
    for (unsigned i = 0; i < 3; i++) html->group[i] = (unsigned char)(bits >> (16 - 8 * i));
    html->group_next = 0;
    html->group_end = digits < 2 ? 0 : digits - 1;
    return true;
}

static size_t read_decoded(void *context, void *buffer, size_t capacity) {
    struct vr_html *html = context;
    unsigned char *bytes = buffer;
    size_t used = 0;
    while (used < capacity) {
        if (html->group_next < html->group_end) {
            bytes[used++] = html->group[html->group_next++];
            continue;
        }
        if (html->ended) break;
        // Deliver the bytes before the damage first; the next call meets it again.
        if (!decode_group(html)) return used != 0 ? used : SIZE_MAX;
    }
    return used;
}

enum vram_status vr_html_open(struct vr_html *html, struct vr_input *page, const char *name, struct vram_input *input,
                              struct vram_error *error) {
    bool found = false;
    do {
        VR_TRY(find_key(page, &found));
        if (!found)
            return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the HTML page contains no recording (no \"base64\": \"...\" in it)");
        VR_TRY(find_text(page, &found));
    } while (!found);
    *html = (struct vr_html){.page = page};
    *input = (struct vram_input){.read = read_decoded, .context = html, .name = name};
    return VRAM_OK;
}
