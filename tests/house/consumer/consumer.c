#include <stdio.h>
#include <string.h>

#include <vram/sim.h>
#include <vram/vram.h>

int main(void) {
    struct vram_error error;
    if (vram_options_check("max_split_size_mb:128", &error) != VRAM_OK) return 1;
    if (vram_options_check("max_split_mb:128", &error) != VRAM_BAD_OPTION) return 2;
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t address;
    if (vram_sim_create(NULL, &driver) != VRAM_OK) return 3;
    const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
    if (vram_create(&info, &allocator, &error) != VRAM_OK) return 4;
    if (vram_malloc(allocator, 0, 1000, 0, &address) != VRAM_OK || vram_allocated_size(allocator, address) != 1024) return 5;
    if (vram_free(allocator, address) != VRAM_OK) return 6;
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    printf("vram %s\n", vram_version());
    return strcmp(vram_version(), VRAM_VERSION_STRING) == 0 ? 0 : 7;
}
