// shared.c: memory files are unavailable, and there is no process to share them with.
#include "os/os.h"

enum vram_status vr_os_shared_facts(int file, struct vr_shared_facts *facts) {
    (void)file, (void)facts;
    return VRAM_IO;
}

enum vram_status vr_os_shared_reopen(int file, int *again) {
    (void)file, (void)again;
    return VRAM_IO;
}

enum vram_status vr_os_shared_open_of(uint64_t process, int file, int *opened) {
    (void)process, (void)file, (void)opened;
    return VRAM_IO;
}

enum vram_status vr_os_shared_seek(int file, uint64_t position) {
    (void)file, (void)position;
    return VRAM_IO;
}

enum vram_status vr_os_shared_read(int file, uint64_t offset, void *bytes, size_t size_bytes) {
    (void)file, (void)offset, (void)bytes, (void)size_bytes;
    return VRAM_IO;
}

enum vram_status vr_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size_bytes) {
    (void)file, (void)offset, (void)bytes, (void)size_bytes;
    return VRAM_IO;
}

enum vram_status vr_os_shared_hold(int file, uint64_t offset) {
    (void)file, (void)offset;
    return VRAM_IO;
}

bool vr_os_shared_let_go(int file, uint64_t offset) {
    (void)file, (void)offset;
    return true;
}

void vr_os_shared_forget(int file, uint64_t offset) { (void)file, (void)offset; }
