// pages.c: no address space but the module's own: simulated device memory has addresses here, and no bytes.
#include "os/os.h"

uint64_t vr_os_page_bytes(void) { return 4096; }

enum vram_status vr_os_map(uint64_t address, uint64_t size_bytes, uint64_t alignment, bool accessible, uint64_t *mapped) {
    (void)address, (void)size_bytes, (void)alignment, (void)accessible, (void)mapped;
    return VRAM_UNSUPPORTED;
}

void vr_os_unmap(uint64_t address, uint64_t size_bytes) { (void)address, (void)size_bytes; }

enum vram_status vr_os_shared_open(int *file) {
    (void)file;
    return VRAM_UNSUPPORTED;
}

void vr_os_shared_close(int file) { (void)file; }

enum vram_status vr_os_shared_resize(int file, uint64_t size_bytes) {
    (void)file, (void)size_bytes;
    return VRAM_UNSUPPORTED;
}

void vr_os_shared_discard(int file, uint64_t offset, uint64_t size_bytes) { (void)file, (void)offset, (void)size_bytes; }

enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address) {
    (void)file, (void)offset, (void)size_bytes, (void)address;
    return VRAM_UNSUPPORTED;
}

enum vram_status vr_os_shared_unmap(uint64_t address, uint64_t size_bytes) {
    (void)address, (void)size_bytes;
    return VRAM_UNSUPPORTED;
}

enum vram_status vr_os_protect(uint64_t address, uint64_t size_bytes, bool read, bool write) {
    (void)address, (void)size_bytes, (void)read, (void)write;
    return VRAM_UNSUPPORTED;
}
