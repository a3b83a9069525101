#include "embedded.h"

#include <string.h>

static const char title[] = "<title>vram", mark[] = "<script type=\"application/x-vram\" data-name=\"";
enum { MARK = sizeof mark - 1 };

bool embedded_is_page(const char *head, size_t length) {
    for (size_t i = 0; i + sizeof title - 1 <= length; i++) {
        if (memcmp(head + i, title, sizeof title - 1) == 0) return true;
    }
    return false;
}

// Makes at least `wanted` bytes of the text available. Returns false at its end, or if reading fails.
static bool fill_text(struct embedded *page, size_t wanted) {
    if (page->error != NULL) return false;
    if (page->filled - page->at >= wanted) return true;
    memmove(page->text, page->text + page->at, page->filled - page->at);
    page->filled -= page->at;
    page->at = 0;
    while (page->filled < wanted && page->error == NULL) {
        const size_t count = page->read(page->context, page->text + page->filled, sizeof page->text - page->filled);
        if (count == 0) return false;
        if (count == SIZE_MAX)
            page->error = "the rest of the page cannot be read";
        else
            page->filled += count;
    }
    return page->error == NULL;
}

static bool find_mark(struct embedded *page) {
    while (fill_text(page, MARK)) {
        const char *from = page->text + page->at, *found = memchr(from, mark[0], page->filled - page->at - MARK + 1);
        if (found == NULL) {
            page->at = page->filled - MARK + 1;
        } else if (memcmp(found, mark, MARK) == 0) {
            page->at = (size_t)(found - page->text) + MARK;
            return true;
        } else {
            page->at = (size_t)(found - page->text) + 1;
        }
    }
    return false;
}

// Returns the next byte of the name, decoding &#NN;.
static char name_byte(struct embedded *page) {
    const char byte = page->text[page->at++];
    unsigned number = 0;
    if (byte != '&' || !fill_text(page, 1) || page->text[page->at] != '#') return byte;
    for (page->at++; fill_text(page, 1) && page->text[page->at] >= '0' && page->text[page->at] <= '9'; page->at++)
        number = (number * 10 + (unsigned)(page->text[page->at] - '0')) % 256;
    if (fill_text(page, 1) && page->text[page->at] == ';') page->at++;
    return number == 0 ? '?' : (char)number;
}

bool embedded_next(struct embedded *page, char name[EMBEDDED_NAME]) {
    size_t length = 0;
    if (!find_mark(page)) return false;
    while (fill_text(page, 1) && page->text[page->at] != '"') {
        const char byte = name_byte(page);
        if (length + 1 < EMBEDDED_NAME) name[length++] = byte;
    }
    name[length] = '\0';
    page->at += page->at < page->filled;
    if (!fill_text(page, 1) || page->text[page->at++] != '>') page->error = "the page is damaged: a recording's name is incomplete";
    page->bit_count = 0;
    return page->error == NULL;
}

static int digit_of(char byte) {
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

size_t embedded_read(struct embedded *page, void *buffer, size_t capacity) {
    unsigned char *to = buffer;
    size_t count = 0;
    while (count < capacity && page->error == NULL) {
        if (!fill_text(page, 1)) {
            if (page->error == NULL) page->error = "the page ends within a recording";
            break;
        }
        const char byte = page->text[page->at];
        if (byte == '<') break;
        const int digit = digit_of(byte);
        if (digit < 0 && byte != '=' && byte != '\n' && byte != '\r')
            page->error = "the page is damaged: a recording in it is not valid base64";
        page->at++;
        if (digit < 0) continue;
        page->bits = page->bits << 6 | (uint32_t)digit;
        page->bit_count += 6;
        if (page->bit_count < 8) continue;
        page->bit_count -= 8;
        to[count++] = (unsigned char)(page->bits >> page->bit_count);
    }
    // Return the bytes that precede the damage first.
    return page->error != NULL && count == 0 ? SIZE_MAX : count;
}
