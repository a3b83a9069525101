// driver.c: programs that call the CUDA driver and train nothing, each with one finding about its memory. Usage: driver NAME
// Recorded by `vram run` on the simulated driver. Exits with 0 if the program ran as its row of truth/programs.toml says.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "run/calls.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t start_on(int device) {
    uint64_t made = 0;
    CHECK(call_cuDevicePrimaryCtxRetain(&made, device) == 0);
    CHECK(call_cuCtxSetCurrent(made) == 0);
    return made;
}

// 0 without memory. A macro, because the caller is the call site.
static uint64_t taken;
#define TAKE(mib) (call_cuMemAlloc(&taken, (mib)*MIB) == 0 ? taken : 0)

static void give(uint64_t address) { CHECK(call_cuMemFree(address) == 0); }

static void fill(uint64_t mib) {
    while (TAKE(mib) != 0) continue;
}

// --- programs that fill a device --------------------------------------------------------------------------------------------------------

static uint64_t make_particles(void) { return TAKE(200); }

static void particles(void) {
    while (make_particles() != 0) continue;
}

static uint64_t make_matrix(void) { return TAKE(9000); }

static void matrix(void) {
    (void)TAKE(16);
    CHECK(make_matrix() == 0);
}

static void managed(void) {
    uint64_t address;
    CHECK(call_cuMemAllocManaged(&address, 300 * MIB, 1) == 0);
    fill(250);
}

static void pages(void) {
    const struct {
        int32_t type, handles, location_type, location;
        uint64_t rest[2];
    } prop = {.type = 1, .location_type = 1};
    uint64_t range, handle;
    CHECK(call_cuMemAddressReserve(&range, 8192 * MIB, 0, 0, 0) == 0);
    for (uint64_t at = 0; at < 8192 && call_cuMemCreate(&handle, 256 * MIB, &prop, 0) == 0; at += 256)
        CHECK(call_cuMemMap(range + at * MIB, 256 * MIB, 0, handle, 0) == 0);
}

static uint64_t pool_take(uint64_t mib) {
    uint64_t address = 0;
    return call_cuMemAllocAsync(&address, mib * MIB, 0) == 0 ? address : 0;
}

// Fills the driver's own pool with live memory.
static void pool_full(void) {
    while (pool_take(160) != 0) continue;
}

static uint64_t keep_index(void) { return pool_take(8); }

// Fills the pool, with its free memory in pieces.
static void pool_in_pieces(void) {
    uint64_t piece[44];
    for (int i = 0; i < 44; i++) {
        piece[i] = pool_take(24);
        (void)keep_index();
    }
    for (int i = 0; i < 44; i++) CHECK(call_cuMemFreeAsync(piece[i], 0) == 0);
    (void)pool_take(900);
}

static uint64_t pin_buffer(uint64_t mib) {
    uint64_t host = 0;
    return call_cuMemHostAlloc(&host, mib * MIB, 0) == 0 ? host : 0;
}

static void pins(void) {
    while (pin_buffer(256) != 0) continue;
}

// --- leaks and their absence ------------------------------------------------------------------------------------------------------------

static uint64_t log_frame(void) { return TAKE(4); }
static uint64_t render(uint64_t mib) { return TAKE(mib); }
static uint64_t shade(uint64_t mib) { return TAKE(mib); }

static void clean_frame(uint64_t mib) {
    const uint64_t picture = render(mib), light = shade(mib / 2);
    give(light);
    give(picture);
}

static void renders(void) {
    (void)TAKE(200);
    for (int frame = 0; frame < 40; frame++) clean_frame(64);
}

static void renders_larger(void) {
    (void)TAKE(200);
    for (uint64_t frame = 0; frame < 40; frame++) clean_frame(64 + 4 * frame);
}

static void keeps_a_log(void) {
    (void)TAKE(200);
    for (int frame = 0; frame < 40; frame++) {
        clean_frame(64);
        (void)log_frame();
    }
}

static void one_pass(void) {
    uint64_t level[12];
    for (uint64_t i = 0; i < 12; i++) level[i] = TAKE(10 + 7 * i);
    for (int i = 11; i >= 0; i--) give(level[i]);
}

static void never_freed(void) {
    for (uint64_t i = 0; i < 5; i++) (void)TAKE(30 + 11 * i);
}

// The device with fewer events runs out.
static void two_devices(void) {
    for (int i = 0; i < 40; i++) give(TAKE(20));
    (void)start_on(1);
    fill(300);
}

// Another process holds most of the device; this one runs out.
static void beside_another(const char *self) {
    int ready[2], ended[2];
    char byte = 0;
    CHECK(pipe(ready) == 0 && pipe(ended) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(dup2(ready[1], 3) == 3 && dup2(ended[0], 4) == 4);
        close(ended[1]);
        execl(self, self, "holder", NULL);
        _exit(98);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    (void)start_on(0);
    fill(100);
    CHECK(write(ended[1], &byte, 1) == 1);
    CHECK(waitpid(child, NULL, 0) == child);
}

static void hold(void) {
    char byte = 1;
    for (int i = 0; i < 3; i++) (void)TAKE(256);
    CHECK(write(3, &byte, 1) == 1);
    CHECK(read(4, &byte, 1) == 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"particles", particles},
    {"matrix", matrix},
    {"managed", managed},
    {"pages", pages},
    {"pool_full", pool_full},
    {"pool_in_pieces", pool_in_pieces},
    {"pins", pins},
    {"renders", renders},
    {"renders_larger", renders_larger},
    {"keeps_a_log", keeps_a_log},
    {"one_pass", one_pass},
    {"never_freed", never_freed},
    {"two_devices", two_devices},
    {"holder", hold},
};

int main(int argc, char **argv) {
    if (argc < 2) return 99;
    calls_load();
    CHECK(call_cuInit(0) == 0);
    if (strcmp(argv[1], "beside_another") == 0) {
        beside_another(argv[0]);
        return 0;
    }
    (void)start_on(0);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[1]) != 0) continue;
        programs[i].run();
        return 0;
    }
    return 99;
}
