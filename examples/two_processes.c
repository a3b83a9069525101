// two_processes.c: two processes share a block: one computes into it, the other reads it and answers in it. Needs no GPU. With NVIDIA's
// driver the same calls share a GPU's memory (without `driver`, and with copies to the device instead of plain stores).
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vram/sim.h>
#include <vram/vram.h>

#define BLOCK_BYTES (30ull << 20)

// Each process makes its own driver and allocator after the fork.
static struct vram_allocator *open_allocator(struct vram_driver **driver) {
    struct vram_allocator *allocator;
    if (vram_sim_create(&(struct vram_sim_options){.backed = true}, driver) != VRAM_OK) return NULL;
    const struct vram_create_info info = {.driver = *driver, .conf = "expandable_segments:True"};
    return vram_create(&info, &allocator, NULL) == VRAM_OK ? allocator : NULL;
}

static int reader(int socket) {
    struct vram_driver *driver;
    struct vram_allocator *allocator = open_allocator(&driver);
    struct vram_imported block;
    struct vram_error error;
    if (allocator == NULL) return 1;
    if (vram_import_receive(allocator, socket, &block, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;
    char *bytes = (char *)(uintptr_t)block.address;
    printf("the reader finds \"%s\" in a block of %llu MiB, for which it reserved %llu MiB\n", bytes,
           (unsigned long long)block.size_bytes >> 20, (unsigned long long)block.reserved_bytes >> 20);
    fflush(stdout);
    strcpy(bytes, "thank you");
    if (vram_import_release(allocator, block.address) != VRAM_OK) return 1;
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return write(socket, "d", 1) == 1 ? 0 : 1; // tells the writer that it may free the block
}

int main(void) {
    int ends[2], status = 1;
    char done;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    if (fork() == 0) return reader(ends[1]);
    struct vram_driver *driver;
    struct vram_allocator *allocator = open_allocator(&driver);
    uint64_t block;
    if (allocator == NULL || vram_malloc(allocator, 0, BLOCK_BYTES, 0, &block) != VRAM_OK) return 1;
    strcpy((char *)(uintptr_t)block, "hello");
    if (vram_export_send(allocator, block, ends[0], NULL) != VRAM_OK) return 1;
    if (read(ends[0], &done, 1) != 1) return 1;
    printf("the writer finds \"%s\"\n", (char *)(uintptr_t)block);
    if (vram_free(allocator, block) != VRAM_OK) return 1;
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return wait(&status) > 0 && status == 0 ? 0 : 1;
}
