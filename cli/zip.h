// zip.h: the files in a ZIP archive: what torch.save() writes, and what a download of an issue's attachment is.
//
// The list of files is at the end of the archive, so that it is read at places, not as a stream. Files are stored or deflated; others, and
// encrypted ones, are refused. Sizes beyond 4 GiB (ZIP64) are understood.
#ifndef CLI_ZIP_H
#define CLI_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

enum { ZIP_NAME = 256, ZIP_MOST_FILES = 4096, ZIP_BUFFER = 16384 };

struct zip_file {
    char name[ZIP_NAME]; // cut where it is longer
    uint64_t offset;     // of its header in the archive
    uint64_t packed_bytes;
    uint64_t bytes;
    uint32_t crc;
    uint16_t method;
    bool encrypted;
};

struct zip {
    // As pread(): how many bytes were read, fewer only at the end; SIZE_MAX on an error.
    size_t (*read_at)(void *context, uint64_t offset, void *buffer, size_t count);
    void *context;
    uint64_t archive_bytes;
    const char *error; // NULL while all is well
    struct zip_file *files;
    size_t count;
    // Of the file that is read.
    const struct zip_file *file;
    uint64_t at, packed_left, left;
    uint32_t crc;
    bool inflating;
    z_stream stream;
    unsigned char buffer[ZIP_BUFFER];
};

// Whether a file that begins so is a ZIP archive.
bool zip_begins(const unsigned char *head, size_t length);
// Reads the list of files; read_at, context and archive_bytes are set, all else is zero. False with an error. zip_close() in any case.
bool zip_open(struct zip *zip);
// Begins to read a file. False with an error.
bool zip_begin(struct zip *zip, const struct zip_file *file);
// The file's next bytes, unpacked: fewer than capacity only at its end; SIZE_MAX with an error, also where its checksum is another.
size_t zip_read(struct zip *zip, void *buffer, size_t capacity);
void zip_close(struct zip *zip);

#endif
