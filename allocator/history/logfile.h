// logfile.h: the file under a log. Packed blocks end where the next block will begin; the tail is a fixed distance beyond. One mapping
// holds the end of the file, with both.
//
// A killed program leaves the file as it was, so stores are ordered: a record before the byte count that covers it; a block's bytes before
// the word that makes it valid; and only then does the tail move on. A reader therefore finds either the block or its tail complete.
#ifndef VR_HISTORY_LOGFILE_H
#define VR_HISTORY_LOGFILE_H

#include "history/logblock.h"
#include "os/os.h"

struct vr_logfile {
    struct vr_growfile file;
    unsigned char *window;
    uint64_t window_offset;
    size_t window_bytes;
    uint64_t end;           // of the blocks
    uint64_t sequence;      // of the tail's future block
    uint64_t tail_distance; // this and the next are fixed
    uint64_t tail_bytes;
    struct vr_log_tail_header *tail; // in the window
    unsigned char *records;          // after the tail's header
    size_t used;                     // bytes of records
};

// Returns the running kernel and its numbering of processes as one number; 0 if unknown.
uint64_t vr_log_host(void);

// Creates the file with its header and an empty tail of `tail_bytes` (a multiple of 8). IO with the reason in *error, NO_HOST_MEMORY.
enum vram_status vr_logfile_create(const char *path, bool replace, const struct vr_log_file_header *header, struct vr_logfile *file,
                                   struct vram_error *error);
// Returns room for a record of `length` bytes (a multiple of 8), or NULL if the tail is full.
VR_INLINE unsigned char *vr_logfile_record(const struct vr_logfile *file, size_t length) {
    return length > file->tail_bytes - file->used ? NULL : file->records + file->used;
}
// Publishes a complete record.
VR_INLINE void vr_logfile_publish(struct vr_logfile *file, size_t length) {
    file->used += length;
    __atomic_store_n(&file->tail->used, file->used, __ATOMIC_RELEASE);
}
// Appends a block (of vr_log_make_block() for file->sequence and file->end). It holds the tail's records, so the tail is emptied. IO,
// NO_HOST_MEMORY, with nothing changed.
enum vram_status vr_logfile_put(struct vr_logfile *file, const struct vr_bytes *block);
// Writes the trailer, which points to the index block at `index_offset`, truncates the file after it and closes it. IO.
enum vram_status vr_logfile_finish(struct vr_logfile *file, uint64_t index_offset);
// Drops the file as it is, without touching it.
void vr_logfile_abandon(struct vr_logfile *file);

#endif
