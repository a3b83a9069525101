// fault_steps.c: the operations of the fault attack, and their frequency in each mix.
#include "driver/abi.h"
#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "fault_attack.h"
#include "support/random.h"
#include "vram/history.h"
#include "vram/host.h"
#include "vram/recordings.h"
#include "vram/share.h"
#include "vram/sim.h"
#include "vram/sleep.h"
#include "vram/snapshot.h"

enum { TRIES = 1000 };

uint64_t attack_draw(struct attack *attack, uint64_t limit) { return vr_random_below(&attack->random, limit); }

void attack_wrong(struct attack *attack, const char *what) {
    if (attack->wrong == NULL) attack->wrong = what;
}

void attack_refuse(struct attack *attack, uint64_t within) {
    static const int32_t results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN, VR_CU_INVALID_VALUE, VR_CU_ILLEGAL_ADDRESS};
    const int32_t first = results[attack_draw(attack, VR_COUNT_OF(results))], second = results[attack_draw(attack, VR_COUNT_OF(results))];
    if (vram_driver_fault_set(attack->driver, NULL, 1 + attack_draw(attack, within), first) != VRAM_OK)
        attack_wrong(attack, "no fault could be set");
    if (attack->pairs) vr_fault_then(attack->driver, 1 + attack_draw(attack, 4), second);
}

void attack_unrefuse(struct attack *attack) {
    vr_fault_random(attack->driver, 0, 0);
    if (vram_driver_fault_set(attack->driver, NULL, 0, 0) != VRAM_OK) attack_wrong(attack, "the fault cannot be taken back");
}

// --- permitted statuses -----------------------------------------------------------------------------------------------------------------

static bool is_refusal(enum vram_status status) {
    return status == VRAM_OUT_OF_MEMORY || status == VRAM_DRIVER || status == VRAM_NO_DRIVER || status == VRAM_UNSUPPORTED ||
           status == VRAM_REJECTED || status == VRAM_ASLEEP;
}

static void check(struct attack *attack) {
    if (vram_check(attack->allocator, NULL) != VRAM_OK) attack_wrong(attack, "an invariant is broken");
}

// Returns true when the operation passed. `also` is a status, other than a refusal, that the operation may return.
static bool passed_or(struct attack *attack, enum vram_status status, enum vram_status also) {
    if (status == VRAM_OK) return true;
    if (!is_refusal(status) && status != also) attack_wrong(attack, vram_status_name(status));
    check(attack);
    return false;
}

static bool passed(struct attack *attack, enum vram_status status) { return passed_or(attack, status, VRAM_OK); }

// --- operations -------------------------------------------------------------------------------------------------------------------------

static uint64_t stream_of(struct attack *attack, uint32_t device) { return attack->stream[device][attack_draw(attack, ATTACK_STREAMS)]; }

static void keep(struct attack *attack, uint32_t device, uint64_t address, uint64_t size) {
    for (size_t i = 0; i < attack->count; i++) {
        const struct attack_block *block = &attack->block[i];
        if (block->device == device && address < block->address + block->size && block->address < address + size)
            attack_wrong(attack, "two blocks overlap");
    }
    attack->block[attack->count++] = (struct attack_block){address, size, device};
}

static void get(struct attack *attack, uint64_t most, bool own) {
    if (attack->count == ATTACK_BLOCKS || (own && attack->pool == NULL)) return;
    const uint32_t device = own || attack_draw(attack, 4) != 0 ? 0 : 1;
    const uint64_t size = 1 + attack_draw(attack, most), stream = stream_of(attack, device);
    uint64_t address = UINT64_MAX;
    const enum vram_status status =
        own ? vram_pool_malloc(attack->pool, size, stream, &address) : vram_malloc(attack->allocator, device, size, stream, &address);
    if (passed(attack, status))
        keep(attack, device, address, size);
    else if (address != UINT64_MAX)
        attack_wrong(attack, "a refused request wrote an address");
}

static void get_small(struct attack *attack) { get(attack, 2 << 20, false); }
static void get_large(struct attack *attack) { get(attack, 40 << 20, false); }
static void get_own(struct attack *attack) { get(attack, attack_draw(attack, 2) ? 1 << 20 : 24 << 20, true); }

// Freeing a block used on several streams takes about twenty driver calls: with 30 % refused, it may fail a thousand times. It must succeed
// once the driver works.
static void put(struct attack *attack) {
    if (attack->count == 0) return;
    const size_t index = attack_draw(attack, attack->count);
    const uint64_t address = attack->block[index].address;
    int tries = 0;
    // A capture that the driver has invalidated may refuse until it ends: a later step frees the block.
    if (attack->captures && !passed(attack, vram_free(attack->allocator, address))) return;
    while (!attack->captures && tries < TRIES && !passed(attack, vram_free(attack->allocator, address))) tries++;
    if (tries == TRIES) {
        attack_unrefuse(attack);
        if (vram_free(attack->allocator, address) != VRAM_OK) attack_wrong(attack, "a block cannot be freed");
    }
    attack->block[index] = attack->block[--attack->count];
}

static void use(struct attack *attack) {
    if (attack->count == 0) return;
    const struct attack_block *block = &attack->block[attack_draw(attack, attack->count)];
    (void)passed(attack, vram_record_stream(attack->allocator, block->address, stream_of(attack, block->device)));
}

static void complete(struct attack *attack) { (void)!vram_sim_complete_all(attack->sim); }
static void empty(struct attack *attack) { (void)passed(attack, vram_empty_cache(attack->allocator)); }

static void pool(struct attack *attack) {
    const struct vram_pool_options options = {.use_on_oom = attack_draw(attack, 2) != 0, .tag = attack_draw(attack, 2) ? "tag" : NULL};
    if (attack->pool == NULL) {
        (void)passed(attack, vram_pool_create(attack->allocator, 0, &options, &attack->pool));
    } else if (attack_draw(attack, 3) == 0) {
        (void)passed(attack, vram_pool_empty_cache(attack->pool));
    } else if (!attack->routed) {
        vram_pool_release(attack->pool);
        attack->pool = NULL;
        check(attack);
    }
}

// Opens a route, which a later step closes; closing always succeeds, whatever the status.
static void route(struct attack *attack) {
    const struct vram_route all = {.kind = VRAM_ROUTE_ALL};
    if (attack->pool == NULL) return;
    if (attack->routed)
        (void)passed(attack, vram_pool_end(attack->pool, &all));
    else if (!passed(attack, vram_pool_begin(attack->pool, &all)))
        return;
    attack->routed = !attack->routed;
}

static void sleep_now(struct attack *attack) {
    const struct vram_sleep_choice choice = {.pool = attack->pool,
                                             .level = (enum vram_sleep_level)attack_draw(attack, 3),
                                             .wakes = attack_draw(attack, 2) != 0,
                                             .default_pools = attack->pool == NULL && attack_draw(attack, 2) != 0};
    attack->sleeps |= passed_or(attack, vram_sleep(attack->allocator, 0, &choice, 1, NULL, NULL), VRAM_NO_HOST_MEMORY);
}

static void wake(struct attack *attack) {
    if (passed_or(attack, vram_wake(attack->allocator, 0, NULL, 0, NULL, NULL), VRAM_NO_HOST_MEMORY)) attack->sleeps = false;
}

// Checks that the capture has ended, whatever was refused; if the driver kept refusing, the program must end it.
static void expect_no_capture(struct attack *attack, uint64_t stream) {
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t graph = 0;
    if (vr_cu(attack->sim, stream_is_capturing, stream, &status) != VR_CU_SUCCESS || status == VR_CU_STREAM_CAPTURE_STATUS_NONE) return;
    if (!attack->often) attack_wrong(attack, "a stream captures still");
    if (vr_cu(attack->sim, stream_end_capture, stream, &graph) == VR_CU_SUCCESS) (void)vr_cu(attack->sim, graph_destroy, graph);
}

// Makes a capture with a request and a free. The stream must work afterwards.
static void capture(struct attack *attack) {
    const uint64_t stream = attack->stream[0][1];
    uint64_t graph = 0;
    if (attack->pool == NULL || attack->routed || attack->sleeps) return;
    if (!passed_or(attack, vram_capture_begin(attack->pool, stream, VRAM_CAPTURE_RELAXED, NULL), VRAM_INVALID_ARGUMENT)) {
        expect_no_capture(attack, stream);
        return;
    }
    uint64_t address = 0;
    if (attack->count < ATTACK_BLOCKS &&
        passed_or(attack, vram_malloc(attack->allocator, 0, 100000, stream, &address), VRAM_INVALID_ARGUMENT))
        keep(attack, 0, address, 100000);
    use(attack);
    attack->captures = true;
    put(attack);
    attack->captures = false;
    const enum vram_status status = vram_capture_end(attack->pool, stream, &graph, NULL);
    if (passed_or(attack, status, VRAM_INVALID_ARGUMENT) && graph != 0) (void)vr_cu(attack->sim, graph_destroy, graph);
    expect_no_capture(attack, stream);
}

static void configure(struct attack *attack) {
    static const char *const confs[] = {"",
                                        "expandable_segments:True",
                                        "max_split_size_mb:21",
                                        "garbage_collection_threshold:0.4",
                                        "paged:True",
                                        "reclaim_streams:True,share_live_pools:True",
                                        "sleepable:True"};
    const char *conf = confs[attack_draw(attack, VR_COUNT_OF(confs))];
    (void)passed_or(attack, vram_configure(attack->allocator, attack_draw(attack, 2) ? attack->conf : conf, NULL), VRAM_INVALID_ARGUMENT);
}

static void limit(struct attack *attack) {
    const uint64_t bytes = attack_draw(attack, 2) ? UINT64_MAX : 64 * VR_MIB + attack_draw(attack, 200 * VR_MIB);
    (void)passed(attack, vram_set_memory_limit(attack->allocator, 0, bytes));
}

static void history(struct attack *attack) {
    const struct vram_history_options options = {.max_entries = 100, .context = VRAM_HISTORY_NONE};
    const bool starts = attack_draw(attack, 2) != 0;
    (void)passed(attack, starts ? vram_history_start(attack->allocator, &options, NULL) : vram_history_stop(attack->allocator));
}

static void look(struct attack *attack) {
    struct vram_recording *recording = NULL;
    struct vram_stats stats;
    struct vram_cache_info info;
    (void)passed(attack, vram_get_stats(attack->allocator, 0, &stats));
    (void)passed(attack, vram_get_cache_info(attack->allocator, 0, &info));
    if (passed(attack, vram_snapshot(attack->allocator, NULL, &recording, NULL))) vram_recording_destroy(recording);
}

static void peers(struct attack *attack) {
    const uint32_t device = (uint32_t)attack_draw(attack, 2);
    (void)passed_or(attack, vram_peer_enable(attack->allocator, device, 1 - device, NULL), VRAM_INVALID_ARGUMENT);
}

static void share(struct attack *attack) {
    unsigned char handle[4096];
    size_t size = 0;
    if (attack->count == 0) return;
    const uint64_t address = attack->block[attack_draw(attack, attack->count)].address;
    if (passed_or(attack, vram_export(attack->allocator, address, handle, sizeof handle, &size, NULL), VRAM_LIMIT))
        (void)passed(attack, vram_export_end(attack->allocator, address));
}

static void pinned(struct attack *attack) {
    const struct vram_host_create_info info = {.driver = attack->driver, .ignore_environment = true};
    if (attack->host == NULL) {
        (void)passed(attack, vram_host_create(&info, &attack->host, NULL));
    } else if (attack->pinned == NULL) {
        (void)passed_or(attack, vram_host_malloc(attack->host, 1 + attack_draw(attack, 1 << 20), stream_of(attack, 0), &attack->pinned),
                        VRAM_NO_HOST_MEMORY);
    } else if (passed(attack, vram_host_free(attack->host, attack->pinned))) {
        attack->pinned = NULL;
    }
}

// --- mixes ------------------------------------------------------------------------------------------------------------------------------

static void (*const operations[])(struct attack *) = {get_small, get_large, put,       get_own, use,     complete,  empty,
                                                      pool,      route,     sleep_now, wake,    capture, configure, limit,
                                                      history,   look,      peers,     share,   pinned};
// The frequency of each operation.
static const unsigned char mixes[ATTACK_MIXES][VR_COUNT_OF(operations)] = {
    {20, 20, 40, 5, 12, 3, 3, 2}, // the first seven operations and pools, as in a training step
    {40, 2, 40},
    {2, 30, 30, 0, 0, 0, 6},
    {10, 10, 25, 20, 10, 3, 3, 5, 5},
    {10, 10, 25, 10, 30, 2, 2, 2},
    {8, 8, 16, 16, 4, 2, 2, 4, 0, 8, 8},
    {12, 8, 20, 10, 6, 3, 2, 3, 0, 0, 0, 8},
    {10, 12, 24, 6, 4, 2, 2, 2, 0, 0, 0, 0, 6, 4},
    {10, 10, 20, 5, 5, 2, 2, 2, 0, 0, 0, 0, 0, 0, 5, 5},
    {10, 12, 24, 4, 4, 2, 3, 2, 0, 0, 0, 0, 0, 0, 0, 0, 4, 6},
    {8, 4, 12, 4, 4, 4, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20},
    {8, 8, 16, 8, 6, 3, 3, 4, 3, 4, 4, 3, 3, 3, 2, 2, 2, 3, 4},
};

void attack_step(struct attack *attack) {
    const unsigned char *mix = mixes[attack->mix];
    unsigned all = 0, at = 0;
    for (size_t i = 0; i < VR_COUNT_OF(operations); i++) all += mix[i];
    for (uint64_t left = attack_draw(attack, all); left >= mix[at]; at++) left -= mix[at];
    operations[at](attack);
    attack->operations++;
}

void attack_settle(struct attack *attack) {
    const struct vram_route all = {.kind = VRAM_ROUTE_ALL};
    if (attack->routed && vram_pool_end(attack->pool, &all) != VRAM_OK) attack_wrong(attack, "a route stays");
    if (vram_set_memory_limit(attack->allocator, 0, UINT64_MAX) != VRAM_OK) attack_wrong(attack, "a limit stays");
    while (attack->count > 0 && attack->wrong == NULL) put(attack);
    if (attack->sleeps && vram_wake(attack->allocator, 0, NULL, 0, NULL, NULL) != VRAM_OK) attack_wrong(attack, "a pool does not wake");
    attack->sleeps = false;
    if (attack->pool != NULL) vram_pool_release(attack->pool);
    attack->pool = NULL;
    if (attack->pinned != NULL && vram_host_free(attack->host, attack->pinned) != VRAM_OK) attack_wrong(attack, "pinned memory stays");
    attack->pinned = NULL;
    if (vram_sim_complete_all(attack->sim) != VRAM_OK || vram_empty_cache(attack->allocator) != VRAM_OK)
        attack_wrong(attack, "the cache stays");
    attack->settled = true;
    check(attack);
}

static bool is_lack(enum vram_status status) { return status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED || status == VRAM_ASLEEP; }

static void try_one(struct attack *attack, uint32_t device, uint64_t size, uint64_t stream) {
    uint64_t address = 0;
    const enum vram_status status = vram_malloc(attack->allocator, device, size, stream, &address);
    if (status != VRAM_OK && (attack->settled || !is_lack(status))) attack_wrong(attack, "it does not work afterwards");
    if (status == VRAM_OK && vram_free(attack->allocator, address) != VRAM_OK) attack_wrong(attack, "a block stays afterwards");
}

void attack_try_all(struct attack *attack) {
    for (uint32_t device = 0; device < ATTACK_DEVICES; device++) {
        try_one(attack, device, 512, 0);
        try_one(attack, device, 30 << 20, attack->stream[device][1]);
    }
    check(attack);
}
