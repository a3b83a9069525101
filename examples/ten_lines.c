// ten_lines.c: the README's example: allocates until memory runs out and prints the allocator's report. Needs no GPU.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

int main(void) {
    struct vram_driver *driver; // a simulated device of 8 GiB; otherwise vram_create() loads NVIDIA's driver
    struct vram_allocator *allocator;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 8ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &allocator, NULL) != VRAM_OK) return 1;

    uint64_t address, stream = 0;
    while (vram_malloc(allocator, 0, 3ull << 30, stream, &address) == VRAM_OK) printf("3 GiB at 0x%llx\n", (unsigned long long)address);

    struct vram_oom oom;
    char text[1024];
    if (vram_last_oom(&oom) && vram_oom_text(&oom, text, sizeof text) > 0) puts(text);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}
