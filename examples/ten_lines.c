// ten_lines.c: the example of the README: what is kept, and why a request failed. No GPU is needed.
#include <stdio.h>
#include <vram/vram.h>

int main(void) {
    struct vram_driver *driver; // a simulated device of 8 GiB
    struct vram_allocator *allocator;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 8ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;

    uint64_t weights, buffer, address, stream = 0;
    if (vram_malloc(allocator, 0, 3ull << 30, stream, &weights) != VRAM_OK) return 1;
    if (vram_malloc(allocator, 0, 4ull << 30, stream, &buffer) != VRAM_OK) return 1;
    if (vram_free(allocator, buffer) != VRAM_OK) return 1; // kept for the next request of this stream
    if (vram_malloc(allocator, 0, 1ull << 30, stream, &address) != VRAM_OK) return 1;

    struct vram_oom oom;
    char text[1024];
    if (vram_malloc(allocator, 0, 4ull << 30, stream, &address) == VRAM_OUT_OF_MEMORY && vram_last_oom(&oom)) {
        vram_oom_text(&oom, text, sizeof text);
        puts(text);
    }
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}
