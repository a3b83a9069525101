// library.c: programs that use the library and train nothing, each with one finding about its memory. Usage: library NAME
// Recorded by VRAM_HISTORY. Exits with 0 if the program ran as its row of truth/programs.toml says.
#define _POSIX_C_SOURCE 200809L // nanosleep()
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vram/sim.h"
#include "vram/vram.h"

enum { DEVICES = 2 };
#define MIB ((uint64_t)1 << 20)

static struct vram_driver *driver;
static struct vram_allocator *gpu;

static void check(enum vram_status status) {
    if (status != VRAM_OK) exit(98);
}

static void make(uint64_t memory_bytes) {
    check(vram_sim_create(&(struct vram_sim_options){.memory_bytes = memory_bytes, .device_count = DEVICES}, &driver));
    check(vram_create(&(struct vram_create_info){.driver = driver}, &gpu, NULL));
}

// 0 without memory. A macro, because the caller is the call site.
static uint64_t taken;
#define TAKE(device, mib, stream) (vram_malloc(gpu, (device), (mib)*MIB, (stream), &taken) == VRAM_OK ? taken : 0)

static void give(uint64_t address) { check(vram_free(gpu, address)); }

// --- programs that fill a device --------------------------------------------------------------------------------------------------------

static uint64_t make_grid(void) { return TAKE(0, 100, 0); }

static void stencil(void) {
    make(512 * MIB);
    for (int i = 0; i < 9; i++) {
        if (make_grid() == 0) return;
    }
}

static uint64_t make_matrix(void) { return TAKE(0, 3000, 0); }

static void matrix(void) {
    make(1024 * MIB);
    (void)TAKE(0, 16, 0);
    if (make_matrix() != 0) exit(97);
}

static uint64_t load_mesh(uint64_t mib) { return TAKE(0, mib, 0); }
static uint64_t make_pressure(void) { return TAKE(0, 250, 0); }

// A few large fields and a solver that needs one more.
static void flow(void) {
    make(1024 * MIB);
    for (uint64_t i = 0; i < 6; i++) (void)load_mesh(140 + i);
    if (make_pressure() != 0) exit(97);
}

// --- memory that is free but unusable ---------------------------------------------------------------------------------------------------

static uint64_t make_tile(uint64_t mib) { return TAKE(0, mib, 0); }
static uint64_t make_mosaic(void) { return TAKE(0, 400, 0); }

// Tiles of different sizes cause fragmentation.
static void tiles(void) {
    uint64_t tile[8];
    make(1024 * MIB);
    for (int i = 0; i < 8; i++) tile[i] = make_tile(120);
    for (int i = 0; i < 8; i++) give(tile[i]);
    for (int i = 0; i < 8; i++) tile[i] = make_tile(70);
    if (make_mosaic() != 0) exit(97);
}

static uint64_t copy_ahead(uint64_t stream) { return TAKE(0, 300, stream); }

static void streams(void) {
    uint64_t stream = 0;
    make(1024 * MIB);
    (void)make_tile(64);
    check(vram_sim_stream_create(driver, 0, &stream));
    const uint64_t ahead = copy_ahead(stream), more = copy_ahead(stream);
    give(ahead);
    give(more);
    check(vram_set_memory_fraction(gpu, 0, 1.0));
    if (make_mosaic() == 0) exit(97); // the cache is released, and it fits
}

static uint64_t make_buffer(uint64_t mib) { return TAKE(0, mib, 0); }

// Another stream is not done with the buffers: nothing fails, and most of the memory waits.
static void overlap(void) {
    uint64_t stream = 0;
    make(2048 * MIB);
    give(make_buffer(1));
    check(vram_sim_stream_create(driver, 0, &stream));
    for (int i = 0; i < 6; i++) {
        const uint64_t buffer = make_buffer(200);
        check(vram_sim_busy(driver, 0, stream, 1000000000));
        check(vram_record_stream(gpu, buffer, stream));
        give(buffer);
    }
}

static void limited(void) {
    make(4096 * MIB);
    (void)TAKE(0, 64, 0);
    check(vram_set_memory_fraction(gpu, 0, 0.25));
    for (int i = 0; i < 12; i++) {
        if (make_grid() == 0) return;
    }
}

static void limited_by_bytes(void) {
    make(4096 * MIB);
    (void)TAKE(0, 64, 0);
    check(vram_set_memory_limit(gpu, 0, 700 * MIB));
    for (int i = 0; i < 12; i++) {
        if (make_grid() == 0) return;
    }
}

// --- leaks and their absence ------------------------------------------------------------------------------------------------------------

static uint64_t log_frame(void) { return TAKE(0, 4, 0); }
static uint64_t render(uint64_t mib) { return TAKE(0, mib, 0); }
static uint64_t shade(uint64_t mib) { return TAKE(0, mib, 0); }

// Marks have microseconds: events before and after one differ in time.
static void begin_frame(void) {
    const struct timespec some = {.tv_nsec = 20000};
    nanosleep(&some, NULL);
    check(vram_step(gpu, 0, "frame"));
    nanosleep(&some, NULL);
}

static void frames(int count, void (*each)(int frame)) {
    make(4096 * MIB);
    (void)load_mesh(200);
    for (int frame = 0; frame < count; frame++) {
        begin_frame();
        each(frame);
    }
}

static void clean_frame(uint64_t mib) {
    const uint64_t picture = render(mib), light = shade(mib / 2);
    give(light);
    give(picture);
}

static void frame_and_log(int frame) {
    (void)frame;
    clean_frame(64);
    (void)log_frame();
}

static void frame_alone(int frame) {
    (void)frame;
    clean_frame(64);
}

static void growing_frame(int frame) { clean_frame(64 + 4 * (uint64_t)frame); }

// A cache of textures that is full after eight frames.
static void frame_with_textures(int frame) {
    clean_frame(64);
    if (frame < 8) (void)log_frame();
}

static uint64_t window[5];

static void frame_of_a_window(int frame) {
    clean_frame(64);
    if (window[frame % 5] != 0) give(window[frame % 5]);
    window[frame % 5] = log_frame();
}

static void keeps_a_log(void) { frames(40, frame_and_log); }
static void renders(void) { frames(40, frame_alone); }
static void renders_larger(void) { frames(40, growing_frame); }
static void fills_a_cache(void) { frames(40, frame_with_textures); }
static void keeps_a_window(void) { frames(40, frame_of_a_window); }

// The log fills the device.
static void keeps_until_full(void) {
    make(600 * MIB);
    (void)load_mesh(200);
    for (int frame = 0; frame < 200; frame++) {
        begin_frame();
        const uint64_t picture = render(64);
        if (picture == 0 || log_frame() == 0) return;
        give(picture);
    }
}

// One pass over the input, kept until the end: no step, no leak.
static void one_pass(void) {
    uint64_t level[12];
    make(4096 * MIB);
    for (int i = 0; i < 12; i++) level[i] = make_buffer(10 + 7 * (uint64_t)i);
    for (int i = 11; i >= 0; i--) give(level[i]);
}

// The device with fewer events runs out.
static void two_devices(void) {
    make(512 * MIB);
    for (int i = 0; i < 60; i++) give(TAKE(0, 20, 0));
    for (int i = 0; i < 9; i++) {
        if (TAKE(1, 100, 0) == 0) return;
    }
}

static uint64_t capture_scene(struct vram_pool *pool) {
    uint64_t address = 0;
    check(vram_pool_malloc(pool, 700 * MIB, 0, &address));
    return address;
}

// Memory kept by the program's own pool is not the default pool's.
static void own_pool(void) {
    struct vram_pool *pool = NULL;
    make(1024 * MIB);
    check(vram_pool_create(gpu, 0, NULL, &pool));
    give(capture_scene(pool));
    if (make_mosaic() != 0) exit(97);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"stencil", stencil},
    {"matrix", matrix},
    {"flow", flow},
    {"tiles", tiles},
    {"streams", streams},
    {"overlap", overlap},
    {"limited", limited},
    {"limited_by_bytes", limited_by_bytes},
    {"keeps_a_log", keeps_a_log},
    {"keeps_until_full", keeps_until_full},
    {"renders", renders},
    {"renders_larger", renders_larger},
    {"fills_a_cache", fills_a_cache},
    {"keeps_a_window", keeps_a_window},
    {"one_pass", one_pass},
    {"two_devices", two_devices},
    {"own_pool", own_pool},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[1]) != 0) continue;
        programs[i].run();
        vram_destroy(gpu);
        return 0;
    }
    return 99;
}
