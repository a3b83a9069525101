// functions: lists the functions that one call of the allocator enters. Built with -finstrument-functions, without optimization, by
// count_functions.py, which names the addresses: each call of interest prints a line "# NAME", then a line per function entered, "ADDRESS
// DEPTH".
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "vram/sim.h"
#include "vram/vram.h"

#define QUIET __attribute__((no_instrument_function))

static bool listens;
static int depth;

void __cyg_profile_func_enter(void *function, void *caller) QUIET;
void __cyg_profile_func_exit(void *function, void *caller) QUIET;

void __cyg_profile_func_enter(void *function, void *caller) {
    (void)caller;
    depth++;
    if (!listens) return;
    listens = false;
    printf("%" PRIxPTR " %d\n", (uintptr_t)function, depth);
    listens = true;
}
void __cyg_profile_func_exit(void *function, void *caller) {
    (void)function, (void)caller;
    depth--;
}

QUIET static void begin(const char *name) {
    printf("# %s\n", name);
    depth = 0;
    listens = true;
}
QUIET static void must(enum vram_status status) {
    listens = false;
    if (status == VRAM_OK) return;
    fprintf(stderr, "functions: %s\n", vram_status_name(status));
    exit(4);
}

static struct vram_allocator *allocator;
static struct vram_driver *simulator;

QUIET static uint64_t take(const char *name, uint64_t size) {
    uint64_t address = 0;
    if (name != NULL) begin(name);
    must(vram_malloc(allocator, 0, size, 0, &address));
    return address;
}
QUIET static void give(const char *name, uint64_t address) {
    if (name != NULL) begin(name);
    must(vram_free(allocator, address));
}

QUIET static void open_allocator(const char *conf) {
    must(vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30}, &simulator));
    must(vram_create(&(struct vram_create_info){.driver = simulator, .conf = conf}, &allocator, NULL));
}
QUIET static void close_allocator(void) {
    vram_destroy(allocator);
    vram_driver_destroy(simulator);
}

QUIET static void measure_cache(void) {
    enum { MIB = 1 << 20 };
    uint64_t kept[8];
    open_allocator(NULL);
    for (int i = 0; i < 8; i++) kept[i] = take(NULL, 5 * MIB); // two segments
    (void)take("malloc, new segment", 30 * MIB);
    give(NULL, kept[1]);
    give(NULL, kept[5]);
    give(NULL, kept[7]);
    (void)take("malloc, best fit", 2 * MIB); // splits the first one
    give("free with a merge", kept[6]);      // both its neighbours are free
    uint64_t again = take(NULL, 4096);
    give(NULL, again);
    again = take(NULL, 4096);
    give(NULL, again);
    again = take("malloc that repeats", 4096);
    give("free of it", again);
    close_allocator();
}

QUIET static void measure_streams(void) {
    uint64_t stream = 0;
    open_allocator(NULL);
    const uint64_t address = take(NULL, 4096);
    must(vram_sim_stream_create(simulator, 0, &stream));
    begin("record_stream");
    must(vram_record_stream(allocator, address, stream));
    give("free of that block", address);
    (void)take("malloc after its fence", 4096);
    close_allocator();
}

QUIET static void measure_failure(void) {
    uint64_t address = 0;
    open_allocator(NULL);
    (void)take(NULL, 4096);
    begin("malloc, out of memory");
    const enum vram_status status = vram_malloc(allocator, 0, 1ull << 31, 0, &address);
    must(status == VRAM_OUT_OF_MEMORY ? VRAM_OK : VRAM_MISMATCH);
    close_allocator();
}

QUIET static void measure_expandable(void) {
    open_allocator("expandable_segments:True");
    (void)take("malloc, first of an expandable segment", 4096);
    close_allocator();
}

QUIET int main(void) {
    measure_cache();
    measure_streams();
    measure_failure();
    measure_expandable();
    return 0;
}
