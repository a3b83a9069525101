// zip.h: reads the files in a ZIP archive, such as those of torch.save() and downloaded attachments of an issue.
//
// The list of files is at the end of the archive, so reading needs random access, not a stream. Files may be stored or deflated; other
// methods and encryption are refused. Supports sizes beyond 4 GiB (ZIP64).
#ifndef CLI_ZIP_H
#define CLI_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

enum { ZIP_NAME = 256, ZIP_MOST_FILES = 4096, ZIP_BUFFER = 16384 };

struct zip_file {
    char name[ZIP_NAME]; // cut if longer
    uint64_t offset;     // of its header in the archive
    uint64_t packed_bytes;
    uint64_t bytes;
    uint32_t crc;
    uint16_t method;
    bool encrypted;
};

struct zip {
    // Reads like pread(): returns the number of bytes, fewer only at the end; SIZE_MAX on an error.
    size_t (*read_at)(void *context, uint64_t offset, void *buffer, size_t count);
    void *context;
    uint64_t archive_bytes;
    const char *error; // NULL if nothing failed
    struct zip_file *files;
    size_t count;
    // The file being read.
    const struct zip_file *file;
    uint64_t at, packed_left, left;
    uint32_t crc;
    bool inflating;
    z_stream stream;
    unsigned char buffer[ZIP_BUFFER];
};

// Returns whether a file with this beginning is a ZIP archive.
bool zip_begins(const unsigned char *head, size_t length);
// Reads the list of files. Before the call set read_at, context and archive_bytes; all else must be zero. Returns false with zip->error
// set. Call zip_close() in any case.
bool zip_open(struct zip *zip);
// Begins to read a file. Returns false with zip->error set.
bool zip_begin(struct zip *zip, const struct zip_file *file);
// Reads the file's next bytes, unpacked: fewer than `capacity` only at its end. Returns SIZE_MAX, with zip->error set, on an error or a
// wrong checksum.
size_t zip_read(struct zip *zip, void *buffer, size_t capacity);
void zip_close(struct zip *zip);

#endif
