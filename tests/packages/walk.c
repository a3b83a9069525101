// Plays the same requests on a simulated device under several settings and prints the results, to compare two builds of the allocator. With
// -DAMALGAMATED uses vram.h of the amalgamation. Argument "driver": uses the installed driver.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#ifdef AMALGAMATED
#include "vram.h"
#else
#include <vram/sim.h>
#include <vram/vram.h>
#endif

enum { SLOTS = 512, STEPS = 20000, STREAMS = 3 };

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint64_t mixed(uint64_t sum, uint64_t value) { return (sum ^ value) * 1099511628211u; }

// Opens separate streams if a simulated device can make them, after the device's first use.
static int open_streams(struct vram_allocator *allocator, struct vram_driver *driver, uint64_t *streams) {
    uint64_t address;
    int failed = vram_malloc(allocator, 0, 1, 0, &address) != VRAM_OK || vram_free(allocator, address) != VRAM_OK;
#ifdef VRAM_TEST_SIM
    for (int i = 1; driver != NULL && i < STREAMS; i++) failed |= vram_sim_stream_create(driver, 0, &streams[i]) != VRAM_OK;
#else
    (void)driver, (void)streams;
#endif
    return failed;
}

static int play(const char *conf, struct vram_driver *driver) {
    struct vram_allocator *allocator;
    struct vram_error error = {0};
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = conf}, &allocator, &error) != VRAM_OK) {
        printf("%s: %s\n", conf, error.message);
        return 1;
    }
    uint64_t streams[STREAMS] = {0};
    int failed = open_streams(allocator, driver, streams);
    uint64_t held[SLOTS] = {0}, state = 7, sum = 1469598103934665603u;
    for (int step = 0; step < STEPS; step++) {
        uint64_t *slot = &held[next_random(&state) % SLOTS];
        const uint64_t size = 1 + next_random(&state) % (next_random(&state) % 8 == 0 ? 64u << 20 : 64u << 10);
        const uint64_t stream = streams[next_random(&state) % STREAMS];
        if (*slot != 0) {
            if (step % 5 == 0) sum = mixed(sum, (uint64_t)vram_record_stream(allocator, *slot, streams[0]));
            sum = mixed(sum, (uint64_t)vram_free(allocator, *slot));
            *slot = 0;
        } else {
            uint64_t address = 0;
            sum = mixed(sum, (uint64_t)vram_malloc(allocator, 0, size, stream, &address));
            *slot = address;
            sum = mixed(sum, driver != NULL ? address : 0);
        }
        if (step % 4000 == 3999) sum = mixed(sum, (uint64_t)vram_empty_cache(allocator));
    }
    struct vram_stats stats;
    char text[16384];
    failed |= vram_get_stats(allocator, 0, &stats) != VRAM_OK || vram_check(allocator, &error) != VRAM_OK;
    if (failed) fprintf(stderr, "%s: %s\n", conf, error.message);
    if (!failed && vram_stats_json(&stats, text, sizeof text) < sizeof text) printf("%s: %016" PRIx64 "\n%s", conf, sum, text);
    vram_destroy(allocator);
    return failed;
}

int main(int count, char **arguments) {
    static const char *const confs[] = {"",
                                        "expandable_segments:True",
                                        "max_split_size_mb:20,garbage_collection_threshold:0.6",
                                        "roundup_power2_divisions:8",
                                        "backend:cudaMallocAsync",
                                        "paged:True"};
    int failed = 0;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        struct vram_driver *driver = NULL;
#ifdef VRAM_TEST_SIM
        if (count < 2 || strcmp(arguments[1], "driver") != 0)
            if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 4ull << 30}, &driver) != VRAM_OK) return 1;
#else
        (void)count;
        (void)arguments;
#endif
        failed |= play(confs[i], driver);
        if (driver != NULL) vram_driver_destroy(driver);
    }
    return failed;
}
