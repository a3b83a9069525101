// two_streams.c: memory that a second stream still reads is not reused before that stream is done. Needs no GPU.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { COUNT = 1 << 20 };
#define BATCH_BYTES (COUNT * sizeof(int))
#define READ_NS     5000000ull // duration of the read on the second stream

// The two kernels; a simulated device's addresses can be used as pointers.
struct batch {
    int *numbers;
    long long sum;
};
static void write_numbers(void *argument) {
    struct batch *batch = argument;
    for (int i = 0; i < COUNT; i++) batch->numbers[i] = i % 7;
}
static void add_up(void *argument) {
    struct batch *batch = argument;
    for (int i = 0; i < COUNT; i++) batch->sum += batch->numbers[i];
}

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *device;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30, .backed = true}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &device, NULL) != VRAM_OK) return 1;

    uint64_t writer, reader, address, during, after;
    if (vram_malloc(device, 0, BATCH_BYTES, 0, &address) != VRAM_OK || vram_free(device, address) != VRAM_OK) return 1; // first use
    if (vram_sim_stream_create(driver, 0, &writer) != VRAM_OK || vram_sim_stream_create(driver, 0, &reader) != VRAM_OK) return 1;

    // The block belongs to the stream of its request.
    if (vram_malloc(device, 0, BATCH_BYTES, writer, &address) != VRAM_OK) return 1;
    struct batch batch = {.numbers = (int *)(uintptr_t)address};
    if (vram_sim_launch(driver, 0, writer, write_numbers, &batch, 1000) != VRAM_OK) return 1;
    if (vram_sim_complete(driver, writer) != VRAM_OK) return 1; // with CUDA, the reader waits for an event of the writer

    // After recording the other stream's use, the program may free the block at once.
    if (vram_record_stream(device, address, reader) != VRAM_OK) return 1;
    if (vram_sim_launch(driver, 0, reader, add_up, &batch, READ_NS) != VRAM_OK) return 1;
    if (vram_free(device, address) != VRAM_OK) return 1;

    if (vram_malloc(device, 0, BATCH_BYTES, writer, &during) != VRAM_OK) return 1; // the reader is not done, so this is other memory
    if (vram_sim_complete(driver, reader) != VRAM_OK) return 1;
    if (vram_malloc(device, 0, BATCH_BYTES, writer, &after) != VRAM_OK) return 1; // now the first block is free again

    printf("the sum is %lld; while it was made a new block lay %s, afterwards %s\n", batch.sum, during == address ? "on it" : "elsewhere",
           after == address ? "on it" : "elsewhere");
    vram_destroy(device);
    vram_driver_destroy(driver);
    return batch.sum == 3145722 && during != address && after == address ? 0 : 1;
}
