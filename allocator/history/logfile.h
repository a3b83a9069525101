// logfile.h: the file under a log: packed blocks that end where the next one will stand, and a distance beyond it the tail, both seen
// through one window of memory that lies over the end of the file.
//
// A program that is killed leaves the file as it stood. What orders the stores: a record before the count of bytes that covers it; a
// block's bytes before the word that makes it one; and only after that the tail moves on. So a reader finds either the block or its tail
// whole.
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
    uint64_t sequence;      // of the block that the tail will be
    uint64_t tail_distance; // all three fixed
    uint64_t tail_bytes;
    struct vr_log_tail_header *tail; // in the window
    unsigned char *records;          // behind it
    size_t used;                     // bytes of records
};

// The running kernel and its numbering of processes as a number; 0 where they cannot be told.
uint64_t vr_log_host(void);

// Makes the file with its header and an empty tail of `tail_bytes` (a multiple of 8). IO with the reason in *error, NO_HOST_MEMORY.
enum vram_status vr_logfile_create(const char *path, bool replace, const struct vr_log_file_header *header, struct vr_logfile *file,
                                   struct vram_error *error);
// Room for a record of `length` bytes (a multiple of 8), or NULL when the tail is full.
VR_INLINE unsigned char *vr_logfile_record(const struct vr_logfile *file, size_t length) {
    return length > file->tail_bytes - file->used ? NULL : file->records + file->used;
}
// The record is complete.
VR_INLINE void vr_logfile_publish(struct vr_logfile *file, size_t length) {
    file->used += length;
    __atomic_store_n(&file->tail->used, file->used, __ATOMIC_RELEASE);
}
// Puts a block (of vr_log_make_block() for file->sequence and file->end) behind the others; the tail's records, which it holds, are gone.
// IO, NO_HOST_MEMORY: nothing has changed then.
enum vram_status vr_logfile_put(struct vr_logfile *file, const struct vr_bytes *block);
// Writes the trailer, which points at the block at `index_offset`, cuts the file there and closes it. IO.
enum vram_status vr_logfile_finish(struct vr_logfile *file, uint64_t index_offset);
// Lets go of the file as it stands, without touching it.
void vr_logfile_abandon(struct vr_logfile *file);

#endif
