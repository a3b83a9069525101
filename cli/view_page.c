// Writes the viewer's page, which is built into the command, with recordings inserted.

#include "view_page.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "ui.h"
#include "vram/export.h"

#ifdef VRAM_VIEWER_PAGE
#ifdef __wasm__
// WebAssembly needs the size of every object, and a label at its end has no address.
__asm__(".section .rodata.page_bytes,\"\",@\n"
        "page_bytes:\n"
        ".incbin \"" VRAM_VIEWER_PAGE "\"\n"
        ".Lpage_end:\n"
        ".byte 0\n"
        ".size page_bytes, .Lpage_end-page_bytes+1\n"
        ".section .rodata.page_length,\"\",@\n"
        "page_length:\n"
        ".int32 .Lpage_end-page_bytes\n"
        ".size page_length, 4\n");
extern const char page_bytes[];
extern const uint32_t page_length;
#define PAGE_LENGTH ((size_t)page_length)
#else
// The assembler includes the file's bytes. A NUL follows, which does not count.
__asm__(".section .rodata\n"
        ".balign 16\n"
        "page_bytes:\n"
        ".incbin \"" VRAM_VIEWER_PAGE "\"\n"
        "page_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char page_bytes[] __attribute__((visibility("hidden")));
extern const char page_end[] __attribute__((visibility("hidden")));
#define PAGE_LENGTH ((size_t)(page_end - page_bytes))
#endif

const char *page_text(size_t *length) {
    *length = PAGE_LENGTH;
    return page_bytes;
}
#else
const char *page_text(size_t *length) {
    *length = 0;
    return NULL;
}
#endif

#define PLACE          "<!--recordings-->"
#define CLOSED_POLICY  "connect-src 'none'"
#define SERVED_POLICY  "connect-src 'self'"
#define PACKED_BYTES   ((size_t)1 << 16)
#define BASE64_GROUP   3
#define BASE64_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

static bool put_text(vram_write write, void *user, const char *text) { return write(user, text, strlen(text)); }

// Finds `text` in the page, which is not NUL-terminated.
static const char *find_text(const char *page, size_t length, const char *text) {
    const size_t size = strlen(text);
    for (const char *at = page; (size_t)(page + length - at) >= size; at++) {
        at = memchr(at, text[0], length - (size_t)(at - page));
        if (at == NULL || (size_t)(page + length - at) < size) return NULL;
        if (memcmp(at, text, size) == 0) return at;
    }
    return NULL;
}

int view_page_write(bool served, view_page_filler *fill, void *context, vram_write write, void *user) {
    size_t length;
    const char *page = page_text(&length);
    if (page == NULL) {
        ui_say("vram: this command was built without the viewer's page; `make viewer` installs what it needs and builds it");
        return CLI_DEVICE;
    }
    const char *end = page + length;
    const char *policy = find_text(page, length, CLOSED_POLICY), *place = find_text(page, length, PLACE);
    if (policy == NULL || place == NULL || place < policy) {
        ui_say("vram: the viewer's page inside this command is damaged");
        return CLI_DEVICE;
    }
    const char *rest = policy + strlen(CLOSED_POLICY);
    const bool begun = write(user, page, (size_t)(policy - page)) && put_text(write, user, served ? SERVED_POLICY : CLOSED_POLICY) &&
                       write(user, rest, (size_t)(place - rest));
    if (!begun) return CLI_BAD_INPUT;
    const int code = fill(write, user, context);
    if (code != CLI_OK) return code;
    place += strlen(PLACE);
    return write(user, place, (size_t)(end - place)) ? CLI_OK : CLI_BAD_INPUT;
}

// Writes an attribute's text. Replaces characters that could end it, and invalid ones.
static bool put_name(vram_write write, void *user, const char *name) {
    for (const char *c = name; *c != '\0'; c++) {
        char number[16];
        const unsigned char byte = (unsigned char)*c;
        if (byte >= 0x20 && strchr("&<>\"'`=", *c) == NULL && byte != 0x7f) {
            if (!write(user, c, 1)) return false;
            continue;
        }
        (void)snprintf(number, sizeof number, "&#%u;", byte < 0x20 || byte == 0x7f ? (unsigned)'?' : (unsigned)byte);
        if (!put_text(write, user, number)) return false;
    }
    return true;
}

// Compresses with gzip and encodes in base64, as a stream.
struct packed {
    z_stream stream;
    vram_write write;
    void *user;
    unsigned char left[BASE64_GROUP]; // bytes of an incomplete group
    size_t left_count;
    bool failed; // `write` failed
    unsigned char out[PACKED_BYTES];
};

static void encode_base64(const unsigned char group[BASE64_GROUP], size_t count, char letters[4]) {
    const unsigned bits = (unsigned)group[0] << 16 | (count > 1 ? (unsigned)group[1] << 8 : 0) | (count > 2 ? group[2] : 0u);
    for (unsigned i = 0; i < 4; i++) letters[i] = i > count ? '=' : BASE64_LETTERS[bits >> (18 - 6 * i) & 63];
}

static void put_base64(struct packed *packed, const unsigned char *bytes, size_t length, bool last) {
    char text[4096];
    size_t filled = 0;
    for (size_t i = 0; i < length || (last && packed->left_count != 0);) {
        while (packed->left_count < BASE64_GROUP && i < length) packed->left[packed->left_count++] = bytes[i++];
        if (packed->left_count < BASE64_GROUP && !last) break;
        encode_base64(packed->left, packed->left_count, text + filled);
        packed->left_count = 0;
        filled += 4;
        if (filled == sizeof text || i >= length) {
            packed->failed = packed->failed || !packed->write(packed->user, text, filled);
            filled = 0;
        }
    }
    if (filled != 0) packed->failed = packed->failed || !packed->write(packed->user, text, filled);
}

static bool pack_bytes(struct packed *packed, const char *bytes, size_t length, int flush) {
    packed->stream.next_in = (unsigned char *)(uintptr_t)bytes;
    packed->stream.avail_in = (uInt)length;
    int result = Z_OK;
    do {
        packed->stream.next_out = packed->out;
        packed->stream.avail_out = sizeof packed->out;
        result = deflate(&packed->stream, flush);
        put_base64(packed, packed->out, sizeof packed->out - packed->stream.avail_out, result == Z_STREAM_END);
    } while (!packed->failed && packed->stream.avail_out == 0 && result != Z_STREAM_END);
    return !packed->failed;
}

static bool take_packed(void *user, const char *bytes, size_t length) {
    // zlib counts in unsigned int; the library writes small pieces.
    return pack_bytes(user, bytes, length, Z_NO_FLUSH);
}

int view_page_recording(const struct vram_recording *recording, const char *name, vram_write write, void *user) {
    struct packed *packed = calloc(1, sizeof *packed);
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    if (packed == NULL || deflateInit2(&packed->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(packed);
        ui_say("vram: %s: not enough host memory", name);
        return CLI_BAD_INPUT;
    }
    packed->write = write;
    packed->user = user;
    bool sent = put_text(write, user, "<script type=\"application/x-vram\" data-name=\"") && put_name(write, user, name) &&
                put_text(write, user, "\">");
    const enum vram_status status = sent ? vram_recording_write(recording, VRAM_FORMAT_VRAM, take_packed, packed, &error) : VRAM_IO;
    sent = status == VRAM_OK && pack_bytes(packed, "", 0, Z_FINISH) && put_text(write, user, "</script>\n");
    (void)deflateEnd(&packed->stream);
    free(packed);
    if (status != VRAM_OK && status != VRAM_IO) return ui_error(name, &error);
    return sent ? CLI_OK : CLI_BAD_INPUT;
}

int view_page_meta(const char *name, const char *content, vram_write write, void *user) {
    const bool sent = put_text(write, user, "<meta name=\"") && put_text(write, user, name) && put_text(write, user, "\" content=\"") &&
                      put_name(write, user, content) && put_text(write, user, "\">\n");
    return sent ? CLI_OK : CLI_BAD_INPUT;
}

int view_page_skip(const char *expression, vram_write write, void *user) { return view_page_meta("vram-skip", expression, write, user); }
