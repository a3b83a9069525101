#include "history/logfile.h"

enum { WINDOW_ALIGNMENT = 1 << 16, WINDOW_AHEAD = 4 << 20 };

static uint64_t align_to_8(uint64_t value) { return vr_round_up(value, 8); }

// Maps a window over the end of the blocks, with `more` bytes of blocks and a tail after them, and unmaps the old one; both map pages of
// the file.
static enum vram_status move_window(struct vr_logfile *file, uint64_t more) {
    uint64_t needed = file->end + align_to_8(more) + file->tail_distance + VR_LOG_TAIL_HEADER_BYTES + file->tail_bytes;
    if (file->window != NULL && needed <= file->window_offset + file->window_bytes) return VRAM_OK;
    uint64_t offset = vr_round_down(file->end, WINDOW_ALIGNMENT), least = vr_round_up(needed - offset, WINDOW_ALIGNMENT), size = 0;
    void *memory;
    if (least + WINDOW_AHEAD > SIZE_MAX) return VRAM_NO_HOST_MEMORY;
    // Use the remaining space on a nearly full disk, or under a limit of the process.
    enum vram_status status = VRAM_IO;
    for (uint64_t ahead = WINDOW_AHEAD; status == VRAM_IO && size != least; ahead /= 4) {
        size = least + (ahead < WINDOW_ALIGNMENT ? 0 : ahead);
        status = vr_os_growfile_map(&file->file, offset, (size_t)size, &memory);
    }
    VR_TRY(status);
    vr_os_growfile_unmap(file->window, file->window_bytes);
    file->window = memory;
    file->window_offset = offset;
    file->window_bytes = (size_t)size;
    file->tail = (void *)(file->window + (file->end + file->tail_distance - offset));
    file->records = (unsigned char *)(file->tail + 1);
    return VRAM_OK;
}

// Starts an empty tail after the current blocks.
static void begin_tail(struct vr_logfile *file) {
    file->tail = (void *)(file->window + (file->end + file->tail_distance - file->window_offset));
    file->records = (unsigned char *)(file->tail + 1);
    file->used = 0;
    file->tail->sequence = file->sequence;
    file->tail->used = 0;
    file->tail->reserved = 0;
    file->tail->checksum = vr_log_checksum(&file->sequence, sizeof file->sequence);
    __atomic_store_n(&file->tail->magic, VR_LOG_TAIL_MAGIC, __ATOMIC_RELEASE);
}

uint64_t vr_log_host(void) {
    struct vr_host_id id;
    if (vr_os_host_id(&id) != VRAM_OK) return 0;
    return (uint64_t)vr_log_checksum((const unsigned char *)id.boot, strlen(id.boot)) << 32 | (uint32_t)id.processes;
}

enum vram_status vr_logfile_create(const char *path, bool replace, const struct vr_log_file_header *header, struct vr_logfile *file,
                                   struct vram_error *error) {
    const char *reason = "";
    struct vr_logfile made = {.end = VR_LOG_HEADER_BYTES, .tail_distance = header->tail_distance, .tail_bytes = header->tail_bytes};
    enum vram_status status = vr_os_growfile_create(path, replace, &made.file, &reason);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s: cannot create the file: %s", path, reason);
    status = move_window(&made, 0);
    if (status != VRAM_OK) {
        vr_os_growfile_discard(&made.file);
        return vr_fail(error, status, VRAM_NO_OFFSET, "%s: not enough disk space for the file", path);
    }
    vr_log_put_file_header(header, made.window);
    begin_tail(&made);
    *file = made;
    return VRAM_OK;
}

enum vram_status vr_logfile_put(struct vr_logfile *file, const struct vr_bytes *block) {
    if (!vr_os_growfile_is_whole(&file->file, file->window, file->window_offset + file->window_bytes)) return VRAM_IO;
    VR_TRY(move_window(file, block->count));
    unsigned char *at = file->window + (file->end - file->window_offset);
    uint64_t end = file->end + align_to_8(block->count);
    // A block that reaches into the tail (a large state) is appended only while the tail is empty.
    if (end > file->end + file->tail_distance) __atomic_store_n(&file->tail->magic, 0, __ATOMIC_RELEASE);
    memset(at + block->count, 0, (size_t)(align_to_8(block->count) - block->count));
    memcpy(at + 4, block->data + 4, block->count - 4);
    __atomic_store_n((uint32_t *)(void *)at, vr_load32(block->data), __ATOMIC_RELEASE);
    file->end = end;
    file->sequence++;
    begin_tail(file);
    return VRAM_OK;
}

enum vram_status vr_logfile_finish(struct vr_logfile *file, uint64_t index_offset) {
    unsigned char *at = file->window + (file->end - file->window_offset);
    memcpy(at, &index_offset, sizeof index_offset);
    memcpy(at + sizeof index_offset, VR_LOG_END, VR_LOG_TRAILER_BYTES - sizeof index_offset);
    vr_os_growfile_unmap(file->window, file->window_bytes);
    enum vram_status status = vr_os_growfile_cut(&file->file, file->end + VR_LOG_TRAILER_BYTES);
    vr_os_growfile_close(&file->file);
    return status;
}

void vr_logfile_abandon(struct vr_logfile *file) {
    vr_os_growfile_unmap(file->window, file->window_bytes);
    vr_os_growfile_close(&file->file);
}
