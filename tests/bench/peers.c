#include "peers.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "vram/sim.h"

struct vram_allocator *allocator;
struct vram_pool *private_pool;
struct vram_driver *simulator;
uint64_t peer_streams[PEER_STREAMS];

void die(const char *what) {
    fprintf(stderr, "bench_peers: %s\n", what);
    exit(4);
}

double now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t vram_take(uint64_t size, uint64_t stream) {
    uint64_t address = 0;
    if (vram_malloc(allocator, 0, size, stream, &address) != VRAM_OK) die("vram_malloc failed");
    return address;
}

static void vram_give(uint64_t address) {
    if (vram_free(allocator, address) != VRAM_OK) die("vram_free failed");
}

static uint64_t pool_take(uint64_t size, uint64_t stream) {
    uint64_t address = 0;
    if (vram_pool_malloc(private_pool, size, stream, &address) != VRAM_OK) die("vram_pool_malloc failed");
    return address;
}

static uint64_t of_pointer(void *pointer) {
    if (pointer == NULL) die("a peer has no memory");
    return (uint64_t)(uintptr_t)pointer;
}

static uint64_t glibc_take(uint64_t size, uint64_t stream) {
    (void)stream;
    void *volatile memory = malloc(size); // volatile, so that compilers keep the pair
    return of_pointer(memory);
}
static void glibc_give(uint64_t address) { free((void *)(uintptr_t)address); }

static void *(*mimalloc_malloc)(size_t size);
static void (*mimalloc_free)(void *memory);
static uint64_t mimalloc_take(uint64_t size, uint64_t stream) {
    (void)stream;
    return of_pointer(mimalloc_malloc(size));
}
static void mimalloc_give(uint64_t address) { mimalloc_free((void *)(uintptr_t)address); }

static void *(*jemalloc_malloc)(size_t size);
static void (*jemalloc_free)(void *memory);
static uint64_t jemalloc_take(uint64_t size, uint64_t stream) {
    (void)stream;
    return of_pointer(jemalloc_malloc(size));
}
static void jemalloc_give(uint64_t address) { jemalloc_free((void *)(uintptr_t)address); }

struct peer peers[PEERS] = {
    {"vram", vram_take, vram_give}, {"glibc", glibc_take, glibc_give}, {"mimalloc", NULL, NULL}, {"jemalloc", NULL, NULL}};
const struct peer peer_pool = {"vram", pool_take, vram_give};

// Stores a function's address; ISO C does not convert object pointers to function pointers.
static bool find_function(void *library, const char *name, void *function) {
    void *found = library == NULL ? NULL : dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

void peers_find(void) {
    void *library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (find_function(library, "mi_malloc", &mimalloc_malloc) && find_function(library, "mi_free", &mimalloc_free)) {
        peers[PEER_MIMALLOC].take = mimalloc_take, peers[PEER_MIMALLOC].give = mimalloc_give;
    } else {
        fprintf(stderr, "bench_peers: without mimalloc (libmimalloc.so.2: tools/setup.sh bench)\n");
    }
    library = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (find_function(library, "malloc", &jemalloc_malloc) && find_function(library, "free", &jemalloc_free)) {
        peers[PEER_JEMALLOC].take = jemalloc_take, peers[PEER_JEMALLOC].give = jemalloc_give;
    } else {
        fprintf(stderr, "bench_peers: without jemalloc (libjemalloc.so.2: tools/setup.sh bench)\n");
    }
}

void peers_open(void) {
    const struct vram_sim_options options = {.profile = VRAM_SIM_FREE, .memory_bytes = (uint64_t)16 << 40};
    uint64_t context = 0;
    if (vram_sim_create(&options, &simulator) != VRAM_OK) die("no simulator");
    const struct vram_create_info info = {.driver = simulator, .ignore_environment = true};
    if (vram_create(&info, &allocator, NULL) != VRAM_OK) die("no allocator");
    if (vr_cu(simulator, primary_ctx_retain, &context, 0) != VR_CU_SUCCESS || vr_cu(simulator, ctx_set_current, context) != VR_CU_SUCCESS) {
        die("no context");
    }
    for (int i = 1; i < PEER_STREAMS; i++) {
        if (vr_cu(simulator, stream_create, &peer_streams[i], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS) die("no stream");
    }
    if (vram_pool_create(allocator, 0, NULL, &private_pool) != VRAM_OK) die("no pool");
}
