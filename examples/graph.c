// graph.c: captures a region with its own memory once and launches it many times, while the rest of the program keeps allocating.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { COUNT = 1000, LAUNCHES = 100 };
#define BYTES (COUNT * sizeof(int))

// The kernels of the region; a simulated device's addresses can be used as pointers.
static int *input, *twice, *result;
static void double_it(void *unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++) twice[i] = 2 * input[i];
}
static void add_one(void *unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++) result[i] = twice[i] + 1;
}

static enum vram_status get(struct vram_allocator *device, uint64_t stream, int **pointer) {
    uint64_t address = 0;
    const enum vram_status status = vram_malloc(device, 0, BYTES, stream, &address);
    *pointer = (int *)(uintptr_t)address;
    return status;
}

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *device;
    struct vram_graph *graph;
    struct vram_error error = {0};
    uint64_t stream;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30, .backed = true}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &device, NULL) != VRAM_OK) return 1;
    if (get(device, 0, &input) != VRAM_OK || vram_sim_stream_create(driver, 0, &stream) != VRAM_OK) return 1;

    // Memory allocated here comes from the graph's own pool. Memory freed here is reused only here.
    if (vram_graph_begin(device, 0, stream, NULL, &graph, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;
    if (get(device, stream, &twice) != VRAM_OK || get(device, stream, &result) != VRAM_OK) return 1;
    if (vram_sim_launch(driver, 0, stream, double_it, NULL, 1000) != VRAM_OK) return 1;
    if (vram_sim_launch(driver, 0, stream, add_one, NULL, 1000) != VRAM_OK) return 1;
    if (vram_free(device, VRAM_STREAM(twice)) != VRAM_OK) return 1;
    if (vram_graph_end(graph, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;
    if (vram_graph_exec(graph) == 0) return 1;                                 // the driver's CUgraphExec, for driver calls
    if (vram_graph_add_static(graph, VRAM_STREAM(input)) != VRAM_OK) return 1; // without this, a launch would be refused

    int wrong = 0, *other;
    for (int launch = 0; launch < LAUNCHES; launch++) {
        if (get(device, 0, &other) != VRAM_OK) return 1; // never the graph's memory
        for (int i = 0; i < COUNT; i++) input[i] = launch + i, other[i] = -1;
        if (vram_graph_launch(graph, stream, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;
        for (int i = 0; i < COUNT; i++) wrong += result[i] != 2 * (launch + i) + 1 || other[i] != -1;
    }
    printf("%d launches, %d wrong numbers\n", LAUNCHES, wrong);
    vram_graph_destroy(graph);
    vram_destroy(device);
    vram_driver_destroy(driver);
    return wrong != 0;
}
