// Runs random operations on the allocator and the naive model.
#include "model/both.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "driver/driver.h"
#include "support/random.h"
#include "vram/sim.h"

uint64_t both_draw(struct both *both, uint64_t limit) { return vr_random_below(&both->random, limit); }

void both_say(const struct both *both, const char *format, ...) {
    if (!both->setup->verbose) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%8" PRIu64 " ", both->operation);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

// --- sizes -------------------------------------------------------------------------------------------------------------------

// A run's mixture of sizes, in percent per kind.
static const struct mixture {
    unsigned tiny, small, edge, medium, large, huge;
} mixtures[] = {
    {40, 30, 15, 10, 4, 1}, {10, 10, 30, 30, 18, 2}, {0, 5, 10, 45, 30, 10},
    {90, 8, 2, 0, 0, 0},    {5, 15, 60, 15, 5, 0},   {20, 20, 20, 20, 18, 2},
};

static uint64_t draw_edge(struct both *both) {
    static const uint64_t edges[] = {512,         1024,        VR_MIB,      2 * VR_MIB,   9 * VR_MIB,
                                     10 * VR_MIB, 11 * VR_MIB, 12 * VR_MIB, 16 * VR_MIB,  20 * VR_MIB,
                                     32 * VR_MIB, 40 * VR_MIB, 64 * VR_MIB, 100 * VR_MIB, 128 * VR_MIB};
    static const int64_t offsets[] = {-VR_MIB, -1024, -513, -512, -511, -1, 0, 0, 0, 1, 511, 512, 513, 1024, VR_MIB};
    const uint64_t edge = edges[both_draw(both, VR_COUNT_OF(edges))];
    const uint64_t size = edge + (uint64_t)offsets[both_draw(both, VR_COUNT_OF(offsets))];
    return size == 0 || size > 1024 * VR_MIB ? edge : size; // the offset may have made it negative
}

uint64_t both_draw_size(struct both *both) {
    const struct mixture *mixture = &mixtures[both->mixture];
    uint64_t at = both_draw(both, 100);
    if (at < mixture->tiny) return 1 + both_draw(both, 4096);
    if ((at -= mixture->tiny) < mixture->small) return 512 * (1 + both_draw(both, 2048));
    if ((at -= mixture->small) < mixture->edge) return draw_edge(both);
    if ((at -= mixture->edge) < mixture->medium) return VR_MIB + both_draw(both, 19 * VR_MIB);
    if ((at -= mixture->medium) < mixture->large)
        return 2 * VR_MIB * (1 + both_draw(both, 64)) + (both_draw(both, 2) ? 0 : both_draw(both, VR_MIB));
    return 100 * VR_MIB + both_draw(both, 600 * VR_MIB);
}

// --- operations -----------------------------------------------------------------------------------------------------------------

static bool compare_status(struct both *both, enum vram_status core, enum vram_status naive) {
    return both_compare_step(both, core, naive, 0, 0);
}

bool both_got(struct both *both, enum vram_status core, enum vram_status naive, const struct both_live *found, uint64_t expected) {
    if (!both_compare_step(both, core, naive, found->address, expected)) return false;
    if (core != VRAM_OK) return found->direct || both_compare_oom(both);
    both->live[both->live_count++] = *found;
    return true;
}

uint64_t both_draw_stream(struct both *both, uint32_t device) {
    if (device != 0 || both->more_count == 0) return both->world.stream[device][both_draw(both, 3)];
    if (both_draw(both, 8) == 0) both->busy_stream = both_draw(both, both->more_count);
    const uint64_t at = both_draw(both, 2) == 0 ? both->busy_stream + both_draw(both, 3) : both_draw(both, both->more_count);
    return both->more_streams[at % both->more_count];
}

static bool malloc_on(struct both *both, uint32_t device, uint64_t stream, uint64_t size) {
    both_say(both, "malloc %" PRIu64 " device %u stream 0x%" PRIx64, size, (unsigned)device, stream);
    uint64_t found = 0, expected = 0;
    const enum vram_status core = vram_malloc(both->world.allocator, device, size, stream, &found);
    const enum vram_status naive = naive_malloc(both->naive, device, size, stream, &expected);
    const struct both_live live = {
        .address = found, .size_bytes = size, .stream = stream, .device = device, .direct = !vram_caching(both->world.allocator)};
    return both_got(both, core, naive, &live, expected);
}

static bool do_malloc(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both_draw_stream(both, device);
    return malloc_on(both, device, stream, both_draw_size(both));
}

static bool do_special_malloc(struct both *both) {
    static const uint64_t sizes[] = {0, (uint64_t)1 << 60, UINT64_MAX, ((uint64_t)1 << 60) - 1, (uint64_t)1 << 50, UINT64_MAX - 511};
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t size = sizes[both_draw(both, VR_COUNT_OF(sizes))];
    both_say(both, "malloc %" PRIu64 " device %u", size, (unsigned)device);
    uint64_t found = 1, expected = 1;
    const enum vram_status core = vram_malloc(both->world.allocator, device, size, 0, &found);
    const enum vram_status naive = naive_malloc(both->naive, device, size, 0, &expected);
    return both_compare_step(both, core, naive, found, expected);
}

void both_forget_live(struct both *both, size_t index) { both->live[index] = both->live[--both->live_count]; }

static bool free_at(struct both *both, size_t index) {
    const uint64_t address = both->live[index].address;
    both_forget_live(both, index);
    both_say(both, "free 0x%" PRIx64, address);
    return compare_status(both, vram_free(both->world.allocator, address), naive_free(both->naive, address));
}

static bool do_free(struct both *both) { return both->live_count == 0 || free_at(both, both_draw(both, both->live_count)); }

static bool do_free_newest(struct both *both) { return both->live_count == 0 || free_at(both, both->live_count - 1); }

// Repeats the same request (sometimes slightly smaller) and frees it at once, sometimes with statistics queried in between.
static bool do_pairs(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both_draw_stream(both, device), size = both_draw_size(both);
    for (uint64_t left = 1 + both_draw(both, 6); left > 0; left--) {
        const size_t live = both->live_count;
        if (live >= BOTH_MAX_LIVE) return true;
        if (!malloc_on(both, device, stream, size - (both_draw(both, 8) == 0 ? both_draw(both, size) : 0))) return false;
        if (!both_compare_counters(both)) return false;
        if (both->live_count != live && both_draw(both, 10) != 0 && !free_at(both, live)) return false;
        if (!both_compare_counters(both)) return false;
    }
    return true;
}

// Allocates temporaries, mostly of different sizes, frees each at once, and occasionally keeps one.
static bool do_temporaries(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both_draw_stream(both, device);
    uint64_t size = both_draw_size(both);
    for (uint64_t left = 1 + both_draw(both, 10); left > 0; left--) {
        const size_t live = both->live_count;
        if (live >= BOTH_MAX_LIVE) return true;
        if (!malloc_on(both, device, stream, size)) return false;
        if (!both_compare_counters(both)) return false;
        if (both->live_count != live && both_draw(both, 8) != 0 && !free_at(both, live)) return false;
        if (!both_compare_counters(both)) return false;
        size = both_draw(both, 4) == 0 ? both_draw_size(both) : size / 2 + 1 + both_draw(both, size);
    }
    return true;
}

static bool do_free_many(struct both *both) {
    for (uint64_t left = both_draw(both, both->live_count + 1); left > 0; left--)
        if (!do_free(both)) return false;
    return true;
}

static bool do_record_stream(struct both *both) {
    if (both->live_count == 0) return true;
    const struct both_live *live = &both->live[both_draw(both, both->live_count)];
    // May be a stream of the other device.
    const uint32_t device = both->one_event_stream ? live->device : (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both->world.stream[device][both->one_event_stream ? 1 : both_draw(both, 4)];
    both_say(both, "record_stream 0x%" PRIx64 " stream 0x%" PRIx64, live->address, stream);
    const enum vram_status core = vram_record_stream(both->world.allocator, live->address, stream);
    return compare_status(both, core, naive_record_stream(both->naive, live->address, stream));
}

static bool do_record_and_free(struct both *both) { return do_record_stream(both) && do_free(both); }

static bool do_complete(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both->world.stream[device][both_draw(both, 4)];
    both_say(both, "complete device %u stream 0x%" PRIx64, (unsigned)device, stream);
    naive_complete(both->naive, device, stream);
    return compare_status(both, vr_world_complete(&both->world, device, stream), VRAM_OK);
}

static bool do_complete_all(struct both *both) {
    both_say(both, "complete all");
    naive_complete_all(both->naive);
    return compare_status(both, vram_sim_complete_all(both->world.sim), VRAM_OK);
}

static bool do_empty_cache(struct both *both) {
    both_say(both, "empty_cache");
    naive_empty_cache(both->naive);
    return compare_status(both, vram_empty_cache(both->world.allocator), VRAM_OK);
}

static bool do_empty_device(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    both_say(both, "empty_cache device %u", (unsigned)device);
    naive_empty_cache_device(both->naive, device);
    return compare_status(both, vram_empty_cache_device(both->world.allocator, device), VRAM_OK);
}

static bool do_configure(struct both *both) {
    if (both->setup->kind == CONF_DEFAULT) return true;
    struct naive_conf conf;
    char text[CONF_TEXT];
    conf_draw(both->setup->kind, true, &both->random, &conf, text);
    both_say(both, "configure \"%s\"", text);
    naive_configure(both->naive, &conf);
    struct vram_error error = {0};
    const enum vram_status status = vram_configure(both->world.allocator, text, &error);
    if (status != VRAM_OK) both_differ(both, "vram_configure(\"%s\"): %s", text, error.message);
    return compare_status(both, status, VRAM_OK);
}

static bool do_set_fraction(struct both *both) {
    if (!both->changes_limits) return true;
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const double fraction = both_draw(both, 4) == 0 ? 1.0 : (double)(1 + both_draw(both, 1000)) / 1000;
    both_say(both, "set_memory_fraction %.3f device %u", fraction, (unsigned)device);
    naive_set_fraction(both->naive, device, fraction);
    return compare_status(both, vram_set_memory_fraction(both->world.allocator, device, fraction), VRAM_OK);
}

static bool do_set_limit(struct both *both) {
    if (!both->changes_limits) return true;
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t limit = both_draw(both, 3) == 0 ? UINT64_MAX : both_draw(both, both->memory_bytes);
    both_say(both, "set_memory_limit %" PRIu64 " device %u", limit, (unsigned)device);
    naive_set_limit(both->naive, device, limit);
    return compare_status(both, vram_set_memory_limit(both->world.allocator, device, limit), VRAM_OK);
}

static bool do_toggle_caching(struct both *both) {
    if (!both->toggles_caching) return true;
    const bool enabled = both_draw(both, 4) != 0;
    both_say(both, "set_caching %d", enabled);
    vram_set_caching(both->world.allocator, enabled);
    naive_set_caching(both->naive, enabled);
    return compare_status(both, VRAM_OK, VRAM_OK);
}

static bool do_reset_peak(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    both_say(both, "reset_peak device %u", (unsigned)device);
    if (!both_compare_all(both)) return false;
    naive_reset_peak(both->naive, device);
    return compare_status(both, vram_reset_peak_stats(both->world.allocator, device), VRAM_OK);
}

static bool do_reset_accumulated(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    both_say(both, "reset_accumulated device %u", (unsigned)device);
    if (!both_compare_all(both)) return false;
    naive_reset_accumulated(both->naive, device);
    return compare_status(both, vram_reset_accumulated_stats(both->world.allocator, device), VRAM_OK);
}

// Only the first byte of a live block may be freed or recorded.
static bool do_bad_pointer(struct both *both) {
    uint64_t address = vr_random_next(&both->random);
    if (both->live_count > 0) {
        const struct both_live *live = &both->live[both_draw(both, both->live_count)];
        const uint64_t offsets[] = {1, 512, live->size_bytes / 2 + 1, live->size_bytes + 512, (uint64_t)0 - 512, 2 * VR_MIB};
        if (both_draw(both, 8)) address = live->address + offsets[both_draw(both, VR_COUNT_OF(offsets))];
    }
    for (size_t i = 0; i < both->live_count; i++)
        if (both->live[i].address == address) return true;
    both_say(both, "bad pointer 0x%" PRIx64, address);
    const enum vram_status core = vram_record_stream(both->world.allocator, address, both->world.stream[0][1]);
    if (!compare_status(both, core, naive_record_stream(both->naive, address, both->world.stream[0][1]))) return false;
    return compare_status(both, vram_free(both->world.allocator, address), naive_free(both->naive, address));
}

// X(function, weight)
#define OPERATIONS(X)                                                                                                                      \
    X(do_record_stream, 300)                                                                                                               \
    X(do_record_and_free, 400)                                                                                                             \
    X(do_complete, 300)                                                                                                                    \
    X(do_complete_all, 60)                                                                                                                 \
    X(do_temporaries, 300)                                                                                                                 \
    X(do_pairs, 300)                                                                                                                       \
    X(do_free_newest, 600)                                                                                                                 \
    X(do_free_many, 4)                                                                                                                     \
    X(do_special_malloc, 10)                                                                                                               \
    X(do_empty_cache, 6)                                                                                                                   \
    X(do_empty_device, 8)                                                                                                                  \
    X(do_configure, 20)                                                                                                                    \
    X(do_set_fraction, 12)                                                                                                                 \
    X(do_set_limit, 8)                                                                                                                     \
    X(do_toggle_caching, 12)                                                                                                               \
    X(do_reset_peak, 10)                                                                                                                   \
    X(do_reset_accumulated, 5)                                                                                                             \
    X(do_bad_pointer, 40)

enum { OTHER_WEIGHT = 10000 }; // total weight of malloc, free and the operations above

static bool step(struct both *both) {
    static const struct {
        bool (*perform)(struct both *both);
        unsigned weight;
    } operations[] = {
#define OPERATION(function, weight) {function, weight},
        OPERATIONS(OPERATION)
#undef OPERATION
    };
    if (conf_has_pools(both->setup->kind) && both_draw(both, 5) < 2) return both_pool_step(both);
    uint64_t at = both_draw(both, OTHER_WEIGHT);
    for (size_t i = 0; i < VR_COUNT_OF(operations); i++) {
        if (at < operations[i].weight) return operations[i].perform(both);
        at -= operations[i].weight;
    }
    if (both->live_count >= BOTH_MAX_LIVE) return do_free(both);
    return both_draw(both, 100) < (both->live_count < both->target ? 60u : 40u) ? do_malloc(both) : do_free(both);
}

// --- a run ----------------------------------------------------------------------------------------------------------------------

static void draw_setup(struct both *both) {
    static const uint64_t memories[] = {256 * VR_MIB, 1024 * VR_MIB, 1536 * VR_MIB, 2 * VR_GIB, 4 * VR_GIB, 16 * VR_GIB, 80 * VR_GIB};
    static const uint64_t targets[] = {3, 20, 60, 150, 300};
    both->random = vr_mix64(both->setup->seed + 1);
    both->check_random = 1;
    // Usually so little that requests fail, retry and release.
    both->memory_bytes = memories[both_draw(both, both_draw(both, 3) ? 4 : VR_COUNT_OF(memories))];
    both->target = targets[both_draw(both, VR_COUNT_OF(targets))];
    both->mixture = both_draw(both, VR_COUNT_OF(mixtures));
    both->device_count = both_draw(both, 3) == 0 ? 2 : 1;
    both->tie_break = (enum vram_tie_break)both_draw(both, VRAM_TIE_LOWEST_ADDRESS + 1);
    both->addresses = (enum vram_sim_addresses)both_draw(both, VRAM_SIM_REUSE + 1);
    both->one_event_stream = both_draw(both, 4) != 0;
    both->toggles_caching = both_draw(both, 4) == 0;
    both->changes_limits = both->setup->kind == CONF_GC || both_draw(both, 2);
    if (!conf_has_pools(both->setup->kind)) return;
    both->exact_operations = both_draw(both, 2);
    // Use one device: a block cannot wait for a capturing stream of another device.
    if (both->setup->kind != CONF_POOLS) both->device_count = 1;
    if (both->setup->kind != CONF_POOLS && both_draw(both, 2)) both->one_event_stream = false;
}

// Allocates once on each device, which defines its options, limits and statistics.
static bool touch_devices(struct both *both) {
    for (uint32_t device = 0; device < both->device_count; device++) {
        uint64_t found = 0, expected = 0;
        const enum vram_status core = vram_malloc(both->world.allocator, device, 1, 0, &found);
        const enum vram_status naive = naive_malloc(both->naive, device, 1, 0, &expected);
        if (!both_compare_step(both, core, naive, found, expected)) return false;
        if (core != VRAM_OK) continue;
        if (!compare_status(both, vram_free(both->world.allocator, found), naive_free(both->naive, found))) return false;
    }
    return true;
}

static bool open_both(struct both *both) {
    struct naive_info info = {
        .device_count = both->device_count, .memory_bytes = both->memory_bytes, .tie_break = both->tie_break, .addresses = both->addresses};
    conf_draw(both->setup->kind, false, &both->random, &info.conf, both->conf);
    const struct vr_world_options options = {
        .sim = {.device_count = both->device_count,
                .memory_bytes = both->memory_bytes,
                .addresses = both->addresses,
                .manual_completion = true,
                .profile = VRAM_SIM_FREE},
        .conf = both->conf,
        .tie_break = both->tie_break,
        .without_record = both->setup->bare,
    };
    both->naive = naive_create(&info);
    const enum vram_status status = vr_world_open(&both->world, &options);
    if (status != VRAM_OK) both_differ(both, "no allocator with options \"%s\": %s", both->conf, vram_status_name(status));
    if (status != VRAM_OK) return false;
    for (; both->more_count < both->setup->streams; both->more_count++)
        if (vr_cu(both->world.sim, stream_create, &both->more_streams[both->more_count], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS)
            abort();
    return true;
}

static void destroy_more_streams(struct both *both) {
    for (uint64_t i = 0; i < both->more_count; i++) (void)vr_cu(both->world.sim, stream_destroy, both->more_streams[i]);
}

bool both_run(struct both *both, const struct both_setup *setup) {
    memset(both, 0, sizeof *both);
    both->setup = setup;
    draw_setup(both);
    bool equal = open_both(both);
    both_say(both, "conf \"%s\" memory %" PRIu64 " devices %u tie %d addresses %d one_event_stream %d", both->conf, both->memory_bytes,
             (unsigned)both->device_count, (int)both->tie_break, (int)both->addresses, both->one_event_stream);
    equal = equal && touch_devices(both);
    while (equal && both->operation < setup->operations) {
        both->operation++;
        equal = step(both) && both_compare_counters(both) && (both->operation % setup->every != 0 || both_compare_all(both));
    }
    equal = equal && both_pool_end(both) && both_compare_all(both);
    naive_destroy(both->naive);
    both->naive = NULL;
    vr_world_destroy_allocator(&both->world);
    equal = both_own_close(both) && equal;
    destroy_more_streams(both);
    const uint64_t left = vr_world_close(&both->world);
    if (equal && left) both_differ(both, "%" PRIu64 " driver objects were left behind", left);
    return equal && left == 0;
}
