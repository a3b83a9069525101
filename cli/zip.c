#include "zip.h"

#include <stdlib.h>
#include <string.h>

// Lengths of the records (APPNOTE.TXT, 4.3).
enum {
    LOCAL_LENGTH = 30,
    CENTRAL_LENGTH = 46,
    END_LENGTH = 22,
    LOCATOR_LENGTH = 20,
    END64_LENGTH = 56,
    COMMENT_MOST = 65535,
    STORED = 0,
    DEFLATED = 8,
    EXTRA_ZIP64 = 1,
};

static const unsigned char local_mark[] = "PK\3\4", central_mark[] = "PK\1\2", end_mark[] = "PK\5\6", locator_mark[] = "PK\6\7",
                           end64_mark[] = "PK\6\6";

static uint16_t read_u16(const unsigned char *at) { return (uint16_t)(at[0] | at[1] << 8); }
static uint32_t read_u32(const unsigned char *at) { return (uint32_t)read_u16(at) | (uint32_t)read_u16(at + 2) << 16; }
static uint64_t read_u64(const unsigned char *at) { return (uint64_t)read_u32(at) | (uint64_t)read_u32(at + 4) << 32; }

static bool fail_zip(struct zip *zip, const char *error) {
    zip->error = error;
    return false;
}

static bool read_exactly(struct zip *zip, uint64_t offset, void *buffer, size_t count) {
    if (zip->read_at(zip->context, offset, buffer, count) == count) return true;
    return fail_zip(zip, "the ZIP archive is damaged: it is incomplete");
}

bool zip_begins(const unsigned char *head, size_t length) {
    return length >= 4 && (memcmp(head, local_mark, 4) == 0 || memcmp(head, end_mark, 4) == 0);
}

// --- the list of files ----------------------------------------------------------------------------------------------------------------
struct directory {
    uint64_t offset;
    uint64_t bytes;
    uint64_t count;
};

// Reads the ZIP64 end record, if there is one. The locator before the end record points to it.
static bool read_end64(struct zip *zip, uint64_t end, struct directory *directory) {
    unsigned char locator[LOCATOR_LENGTH], record[END64_LENGTH];
    if (end < LOCATOR_LENGTH || !read_exactly(zip, end - LOCATOR_LENGTH, locator, sizeof locator)) return zip->error == NULL;
    if (memcmp(locator, locator_mark, 4) != 0) return true;
    if (!read_exactly(zip, read_u64(locator + 8), record, sizeof record)) return false;
    if (memcmp(record, end64_mark, 4) != 0) return fail_zip(zip, "the ZIP archive is damaged: its end record has a wrong offset");
    *directory = (struct directory){.count = read_u64(record + 32), .bytes = read_u64(record + 40), .offset = read_u64(record + 48)};
    return true;
}

// Finds the archive's end record, which a comment of any length may follow.
static bool find_directory(struct zip *zip, struct directory *directory) {
    const uint64_t most = END_LENGTH + COMMENT_MOST, length = zip->archive_bytes < most ? zip->archive_bytes : most;
    unsigned char *tail = malloc((size_t)length + 1);
    if (tail == NULL) return fail_zip(zip, "not enough host memory to read it");
    bool found = false;
    const uint64_t start = zip->archive_bytes - length;
    if (read_exactly(zip, start, tail, (size_t)length)) {
        for (uint64_t at = length < END_LENGTH ? 0 : length - END_LENGTH + 1; at-- > 0 && !found;) {
            found = memcmp(tail + at, end_mark, 4) == 0 && at + END_LENGTH + read_u16(tail + at + 20) <= length;
            if (!found) continue;
            *directory = (struct directory){read_u32(tail + at + 16), read_u32(tail + at + 12), read_u16(tail + at + 10)};
            found = read_end64(zip, start + at, directory);
            break;
        }
        if (!found && zip->error == NULL) (void)fail_zip(zip, "the ZIP archive is incomplete: its list of files is missing");
    }
    free(tail);
    return found;
}

// Reads sizes from the extra field, in this order. Only those that are all ones in the header are there.
static void read_extra64(struct zip_file *file, const unsigned char *extra, size_t length) {
    uint64_t *const fields[] = {&file->bytes, &file->packed_bytes, &file->offset};
    for (size_t at = 0; at + 4 <= length; at += 4 + (size_t)read_u16(extra + at + 2)) {
        const size_t end = at + 4 + read_u16(extra + at + 2);
        if (read_u16(extra + at) != EXTRA_ZIP64 || end > length) continue;
        for (size_t i = 0, from = at + 4; i < 3; i++) {
            if (*fields[i] != UINT32_MAX || from + 8 > end) continue;
            *fields[i] = read_u64(extra + from);
            from += 8;
        }
    }
}

static struct zip_file read_entry(const unsigned char *entry, size_t name_length, size_t extra_length) {
    struct zip_file file = {.encrypted = (read_u16(entry + 8) & 1) != 0,
                            .method = read_u16(entry + 10),
                            .crc = read_u32(entry + 16),
                            .packed_bytes = read_u32(entry + 20),
                            .bytes = read_u32(entry + 24),
                            .offset = read_u32(entry + 42)};
    const size_t length = name_length < ZIP_NAME ? name_length : ZIP_NAME - 1;
    for (size_t i = 0; i < length; i++) file.name[i] = entry[CENTRAL_LENGTH + i] < ' ' ? '?' : (char)entry[CENTRAL_LENGTH + i];
    read_extra64(&file, entry + CENTRAL_LENGTH + name_length, extra_length);
    return file;
}

static bool read_entries(struct zip *zip, const unsigned char *bytes, size_t length, uint64_t count) {
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (length - at < CENTRAL_LENGTH || memcmp(bytes + at, central_mark, 4) != 0)
            return fail_zip(zip, "the ZIP archive is damaged: its list of files is invalid");
        const size_t name = read_u16(bytes + at + 28), extra = read_u16(bytes + at + 30), comment = read_u16(bytes + at + 32);
        if (length - at - CENTRAL_LENGTH < name + extra + comment)
            return fail_zip(zip, "the ZIP archive is damaged: its list of files is incomplete");
        zip->files[zip->count++] = read_entry(bytes + at, name, extra);
        at += CENTRAL_LENGTH + name + extra + comment;
    }
    return true;
}

bool zip_open(struct zip *zip) {
    struct directory directory = {0, 0, 0};
    if (!find_directory(zip, &directory)) return false;
    if (directory.count > ZIP_MOST_FILES) return fail_zip(zip, "the ZIP archive contains more than 4,096 files; unpack it first");
    if (directory.bytes > zip->archive_bytes)
        return fail_zip(zip, "the ZIP archive is damaged: its list of files is longer than the archive");
    unsigned char *bytes = malloc((size_t)directory.bytes + 1);
    zip->files = calloc((size_t)directory.count + 1, sizeof *zip->files);
    bool read = bytes != NULL && zip->files != NULL;
    if (!read) (void)fail_zip(zip, "not enough host memory to read it");
    read = read && read_exactly(zip, directory.offset, bytes, (size_t)directory.bytes);
    read = read && read_entries(zip, bytes, (size_t)directory.bytes, directory.count);
    free(bytes);
    return read;
}

// --- one file ---------------------------------------------------------------------------------------------------------------------------
static void end_file(struct zip *zip) {
    if (zip->inflating) (void)inflateEnd(&zip->stream);
    zip->inflating = false;
    zip->file = NULL;
}

void zip_close(struct zip *zip) {
    end_file(zip);
    free(zip->files);
    zip->files = NULL;
    zip->count = 0;
}

bool zip_begin(struct zip *zip, const struct zip_file *file) {
    unsigned char header[LOCAL_LENGTH];
    end_file(zip);
    if (file->encrypted) return fail_zip(zip, "the file in the ZIP archive is encrypted; unpack it first");
    if (file->method != STORED && file->method != DEFLATED)
        return fail_zip(zip, "the file in the ZIP archive is neither stored nor deflated; unpack it first");
    if (!read_exactly(zip, file->offset, header, sizeof header)) return false;
    if (memcmp(header, local_mark, 4) != 0) return fail_zip(zip, "the ZIP archive is damaged: a file has a wrong offset");
    zip->file = file;
    zip->at = file->offset + LOCAL_LENGTH + read_u16(header + 26) + read_u16(header + 28);
    zip->packed_left = file->packed_bytes;
    zip->left = file->bytes;
    zip->crc = (uint32_t)crc32(0, NULL, 0);
    zip->stream = (z_stream){0};
    zip->inflating = file->method == DEFLATED;
    if (zip->inflating && inflateInit2(&zip->stream, -15) != Z_OK) {
        zip->inflating = false;
        return fail_zip(zip, "not enough host memory to unpack it");
    }
    return true;
}

static size_t read_packed(struct zip *zip, void *buffer, size_t capacity) {
    const size_t count = zip->packed_left < capacity ? (size_t)zip->packed_left : capacity;
    if (count == 0 || !read_exactly(zip, zip->at, buffer, count)) return 0;
    zip->at += count;
    zip->packed_left -= count;
    return count;
}

// Inflates up to `capacity` bytes; fewer only at the end of the packed bytes, or on an error.
static size_t inflate_some(struct zip *zip, unsigned char *to, size_t capacity) {
    z_stream *stream = &zip->stream;
    stream->next_out = to;
    stream->avail_out = (uInt)capacity;
    while (stream->avail_out != 0) {
        if (stream->avail_in == 0) {
            stream->next_in = zip->buffer;
            stream->avail_in = (uInt)read_packed(zip, zip->buffer, sizeof zip->buffer);
            if (stream->avail_in == 0) break;
        }
        const int result = inflate(stream, Z_NO_FLUSH);
        if (result == Z_STREAM_END) break;
        if (result != Z_OK && result != Z_BUF_ERROR) {
            (void)fail_zip(zip, "the ZIP archive is damaged: a file cannot be decompressed");
            break;
        }
    }
    return capacity - stream->avail_out;
}

size_t zip_read(struct zip *zip, void *buffer, size_t capacity) {
    const size_t wanted = zip->left < capacity ? (size_t)zip->left : capacity, most = wanted < (1u << 30) ? wanted : 1u << 30;
    size_t got = 0;
    if (zip->error != NULL || zip->file == NULL) return SIZE_MAX;
    if (most != 0) got = zip->inflating ? inflate_some(zip, buffer, most) : read_packed(zip, buffer, most);
    zip->crc = (uint32_t)crc32(zip->crc, got == 0 ? NULL : buffer, (uInt)got);
    zip->left -= got;
    if (got < most && zip->error == NULL) (void)fail_zip(zip, "the ZIP archive is damaged: a file is incomplete");
    if (got != 0 && zip->left == 0 && zip->crc != zip->file->crc && zip->error == NULL)
        (void)fail_zip(zip, "the ZIP archive is damaged: a file has a wrong checksum");
    return zip->error != NULL && got == 0 ? SIZE_MAX : got;
}
