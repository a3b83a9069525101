// Writes a snapshot of a simulated device to the named file. Prints `written`, or `missing` if the library for recordings is absent.
#include <stdio.h>
#include <string.h>

#include <vram/history.h>
#include <vram/sim.h>
#include <vram/snapshot.h>
#include <vram/vram.h>

int main(int count, char **words) {
    if (count != 3) return 1;
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    struct vram_error error;
    uint64_t address;
    if (vram_sim_create(NULL, &driver) != VRAM_OK) return 2;
    const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
    if (vram_create(&info, &allocator, &error) != VRAM_OK || vram_malloc(allocator, 0, 1000, 0, &address) != VRAM_OK) return 3;
    const enum vram_status status = vram_snapshot_save(allocator, NULL, words[1], &error);
    if (status != VRAM_OK) puts(error.message);
    vram_free(allocator, address); // without a warning: cleanup code does not need the status
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    if (strcmp(words[2], "written") == 0) return status == VRAM_OK ? 0 : 4;
    return status == VRAM_UNSUPPORTED && strstr(error.message, "libvram-recordings.so") != NULL ? 0 : 5;
}
