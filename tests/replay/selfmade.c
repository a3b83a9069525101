// selfmade.c: implements selfmade.h.
#include "replay/selfmade.h"
#include "replay/replaying.h"

#include <stdio.h>

#include "base/json.h"
#include "driver/driver.h"
#include "support/random.h"
#include "vram/sim.h"

enum { DEVICE = 0, LIVE_MAX = 200, POOLS_MAX = 8 };

struct live {
    uint64_t address;
};

// Memory from the driver; the last entry with an address wins.
struct got {
    uint64_t start;
    uint64_t end;
    struct vram_pool_id pool;
};

struct player {
    struct selfmade *made;
    const struct selfmade_options *options;
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t random;
    struct live live[LIVE_MAX];
    size_t live_count;
    uint64_t streams[8]; // handles; the first is the default stream
    struct vram_pool *pools[POOLS_MAX];
    size_t pool_count;
    struct vram_pool_id asking; // the current request's pool
    struct got *got;
    size_t got_count;
    size_t got_capacity;
};

static void need(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "selfmade: %s failed\n", what);
    abort();
}

static uint64_t next_random(struct player *player) { return vr_random_next(&player->random); }

static uint64_t below(struct player *player, uint64_t bound) { return next_random(player) % bound; }

static struct vram_pool_id pool_of(struct player *player, const struct vr_record *record) {
    if (record->action == VR_RECORD_OOM) return player->asking;
    if (record->action == VR_RECORD_SEGMENT_ALLOC || record->action == VR_RECORD_SEGMENT_MAP) {
        need(vr_grow((void **)&player->got, &player->got_capacity, player->got_count + 1, sizeof *player->got) == VRAM_OK, "memory");
        player->got[player->got_count++] = (struct got){record->address, record->address + record->size_bytes, player->asking};
        return player->asking;
    }
    size_t at = player->got_count;
    while (at > 0 && (record->address < player->got[at - 1].start || record->address >= player->got[at - 1].end)) at--;
    need(at > 0, "an address in some segment");
    return player->got[at - 1].pool;
}

static void keep_record(const struct vr_record *record, void *user) {
    struct player *player = user;
    struct selfmade *made = player->made;
    need(vr_grow((void **)&made->pools, &made->pool_capacity, made->count + 1, sizeof *made->pools) == VRAM_OK, "memory");
    made->pools[made->count] = pool_of(player, record);
    need(vr_grow((void **)&made->records, &made->capacity, made->count + 1, sizeof *made->records) == VRAM_OK, "memory");
    made->records[made->count++] = *record;
}

static bool keep_block(const struct vram_block_view *view, void *user) {
    struct selfmade *made = user;
    need(vr_grow((void **)&made->blocks, &made->block_capacity, made->block_count + 1, sizeof *made->blocks) == VRAM_OK, "memory");
    made->blocks[made->block_count++] = *view;
    return true;
}

static uint64_t random_size(struct player *player) {
    switch (below(player, player->options->small_sizes ? 3 : 6)) {
    case 0: return 1 + below(player, 4096);
    case 1: return 512 * (1 + below(player, 2048));
    case 2: return 1 + below(player, 2 * VR_MIB);
    case 3: return VR_MIB + below(player, 9 * VR_MIB);
    case 4: return VR_MIB * (1 + below(player, 24));
    default: return 1 + below(player, 60 * VR_MIB);
    }
}

static uint64_t random_stream(struct player *player) { return player->streams[below(player, player->options->streams)]; }

static void play_malloc(struct player *player) {
    uint64_t address = 0;
    if (player->live_count == LIVE_MAX) return;
    const uint64_t size = random_size(player), stream = random_stream(player);
    // Half of the requests use private pools, if there are any.
    const size_t pool = player->pool_count == 0 ? SIZE_MAX : below(player, 2 * player->pool_count);
    const bool is_private = pool < player->pool_count;
    player->asking = is_private ? vram_get_pool_id(player->pools[pool]) : (struct vram_pool_id){0, 0};
    const enum vram_status status = is_private ? vram_pool_malloc(player->pools[pool], size, stream, &address)
                                               : vram_malloc(player->allocator, DEVICE, size, stream, &address);
    need(status == VRAM_OK || status == VRAM_OUT_OF_MEMORY, "vram_malloc");
    if (status == VRAM_OK) player->live[player->live_count++].address = address;
}

static void play_free(struct player *player) {
    if (player->live_count == 0) return;
    const size_t at = below(player, player->live_count);
    need(vram_free(player->allocator, player->live[at].address) == VRAM_OK, "vram_free");
    player->live[at] = player->live[--player->live_count];
}

static uint64_t allocate(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    uint64_t address = 0;
    (void)device, (void)stream;
    return vr_cu((struct vram_driver *)user, mem_alloc, &address, size_bytes) == VR_CU_SUCCESS ? address : 0;
}

static void deallocate(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    need(vr_cu((struct vram_driver *)user, mem_free, address) == VR_CU_SUCCESS, "mem_free");
}

// Creates or destroys a pool. Like PyTorch's MemPool, it releases free memory at once, or leaves that to the next release.
static void play_pool(struct player *player) {
    if (player->pool_count < player->options->pools && below(player, 2) == 0) {
        struct vram_pool_options pool = {.for_graph = below(player, 2) == 0, .no_split = player->options->no_split};
        if (player->options->functions && below(player, 2) == 0) {
            pool.allocate = allocate;
            pool.deallocate = deallocate;
            pool.user = player->driver;
        }
        need(vram_pool_create(player->allocator, DEVICE, &pool, &player->pools[player->pool_count++]) == VRAM_OK, "vram_pool_create");
    } else if (player->pool_count > 0) {
        const size_t at = below(player, player->pool_count);
        if (below(player, 2) == 0) need(vram_pool_empty_cache(player->pools[at]) == VRAM_OK, "vram_pool_empty_cache");
        vram_pool_release(player->pools[at]);
        player->pools[at] = player->pools[--player->pool_count];
    }
}

static void play_operation(struct player *player) {
    const uint64_t what = below(player, 1000);
    if (player->options->pools > 0 && below(player, 50) == 0) play_pool(player);
    if (what < 480) {
        play_malloc(player);
    } else if (what < 900) {
        play_free(player);
    } else if (what < 950) {
        if (player->live_count == 0) return;
        const uint64_t address = player->live[below(player, player->live_count)].address;
        need(vram_record_stream(player->allocator, address, random_stream(player)) == VRAM_OK, "vram_record_stream");
    } else if (what < 990) {
        need(vram_sim_complete_all(player->driver) == VRAM_OK, "vram_sim_complete_all");
    } else if (what < 994) {
        need(vram_empty_cache(player->allocator) == VRAM_OK, "vram_empty_cache");
    } else {
        for (int i = 0; i < 30; i++) play_free(player);
    }
}

static void make_streams(struct player *player) {
    uint64_t context = 0;
    need(vr_cu(player->driver, primary_ctx_retain, &context, DEVICE) == VR_CU_SUCCESS, "primary_ctx_retain");
    need(vr_cu(player->driver, ctx_set_current, context) == VR_CU_SUCCESS, "ctx_set_current");
    for (unsigned i = 1; i < player->options->streams; i++) {
        need(vr_cu(player->driver, stream_create, &player->streams[i], VR_CU_STREAM_NON_BLOCKING) == VR_CU_SUCCESS, "stream_create");
    }
}

void selfmade_run(struct selfmade *made, const struct selfmade_options *options) {
    const struct vram_sim_options sim = {.memory_bytes = options->memory_bytes, .manual_completion = true, .addresses = options->addresses};
    struct player player = {.made = made, .options = options, .random = options->seed};
    *made = (struct selfmade){.conf = options->conf};
    need(vram_sim_create(&sim, &player.driver) == VRAM_OK, "vram_sim_create");
    const struct vram_create_info info = {.driver = player.driver, .conf = options->conf};
    need(vram_create(&info, &player.allocator, NULL) == VRAM_OK, "vram_create");
    need(vram_set_memory_limit(player.allocator, DEVICE, UINT64_MAX) == VRAM_OK, "device");
    make_streams(&player);
    vr_allocator_set_recorder(player.allocator, keep_record, &player);
    need(options->pools <= POOLS_MAX, "no more pools");
    for (unsigned i = 0; i < options->operations; i++) play_operation(&player);
    while (options->ends_empty && player.live_count > 0) play_free(&player);
    vr_allocator_set_recorder(player.allocator, NULL, NULL);
    need(vram_walk(player.allocator, DEVICE, keep_block, made) == VRAM_OK, "vram_walk");
    need(vram_get_stats(player.allocator, DEVICE, &made->stats) == VRAM_OK, "vram_get_stats");
    need(vram_check(player.allocator, NULL) == VRAM_OK, "vram_check");
    while (player.pool_count > 0) vram_pool_release(player.pools[--player.pool_count]);
    vram_destroy(player.allocator);
    vram_driver_destroy(player.driver);
    free(player.got);
}

void selfmade_release(struct selfmade *made) {
    free(made->records);
    free(made->pools);
    free(made->blocks);
    *made = (struct selfmade){0};
}

// --- as JSON ----------------------------------------------------------------------------------------------------------------
static bool same_segment(const struct vram_block_view *a, const struct vram_block_view *b) {
    return a->block.segment_address == b->block.segment_address && a->block.address + a->block.size_bytes == b->block.address;
}

static void block_json(struct vr_json *json, const struct vram_block_view *view) {
    static const char *const states[] = {
        [VRAM_BLOCK_FREE] = "inactive", [VRAM_BLOCK_ALLOCATED] = "active_allocated", [VRAM_BLOCK_PENDING] = "active_pending_free"};
    vr_json_object(json, NULL);
    vr_json_u64(json, "address", view->block.address);
    vr_json_u64(json, "size", view->block.size_bytes);
    vr_json_u64(json, "requested_size", view->block.requested_bytes);
    vr_json_string(json, "state", states[view->state]);
    vr_json_array(json, "frames");
    vr_json_array_end(json);
    vr_json_object_end(json);
}

static void pool_json(struct vr_json *json, const char *key, struct vram_pool_id pool) {
    vr_json_array(json, key);
    vr_json_u64(json, NULL, pool.first);
    vr_json_u64(json, NULL, pool.second);
    vr_json_array_end(json);
}

static void segment_json(struct vr_json *json, const struct vram_block_view *blocks, size_t count, bool with_pool) {
    uint64_t total = 0, allocated = 0, active = 0;
    for (size_t i = 0; i < count; i++) {
        total += blocks[i].block.size_bytes;
        allocated += blocks[i].state == VRAM_BLOCK_ALLOCATED ? blocks[i].block.size_bytes : 0;
        active += blocks[i].state != VRAM_BLOCK_FREE ? blocks[i].block.size_bytes : 0;
    }
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", 0);
    vr_json_u64(json, "address", blocks[0].block.address);
    vr_json_u64(json, "total_size", total);
    vr_json_u64(json, "allocated_size", allocated);
    vr_json_u64(json, "active_size", active);
    vr_json_u64(json, "requested_size", active);
    vr_json_u64(json, "stream", blocks[0].block.stream);
    vr_json_string(json, "segment_type", blocks[0].small_pool ? "small" : "large");
    if (with_pool) pool_json(json, "segment_pool_id", blocks[0].block.pool);
    vr_json_bool(json, "is_expandable", blocks[0].block.expandable);
    vr_json_array(json, "blocks");
    for (size_t i = 0; i < count; i++) block_json(json, &blocks[i]);
    vr_json_array_end(json);
    vr_json_object_end(json);
}

static void record_json(struct vr_json *json, const struct vr_record *record, const struct vram_pool_id *pool) {
    static const char *const names[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                        "segment_free", "segment_map",    "segment_unmap",  "oom"};
    vr_json_object(json, NULL);
    vr_json_string(json, "action", names[record->action]);
    vr_json_u64(json, record->action == VR_RECORD_OOM ? "device_free" : "addr", record->address);
    vr_json_u64(json, "size", record->size_bytes);
    vr_json_u64(json, "stream", record->stream);
    if (pool != NULL) pool_json(json, "pool_id", *pool);
    vr_json_object_end(json);
}

void selfmade_json(const struct selfmade *made, size_t cut, struct vr_text *text) {
    struct vr_json json;
    vr_json_init(&json, text, false);
    vr_json_object(&json, NULL);
    vr_json_array(&json, "segments");
    for (size_t first = 0; first < made->block_count;) {
        size_t last = first + 1;
        while (last < made->block_count && same_segment(&made->blocks[last - 1], &made->blocks[last])) last++;
        segment_json(&json, &made->blocks[first], last - first, !made->segments_without_pools);
        first = last;
    }
    vr_json_array_end(&json);
    vr_json_array(&json, "device_traces");
    vr_json_array(&json, NULL);
    for (size_t i = cut; i < made->count; i++) record_json(&json, &made->records[i], made->events_without_pools ? NULL : &made->pools[i]);
    vr_json_array_end(&json);
    vr_json_array_end(&json);
    if (!made->without_settings) {
        vr_json_object(&json, "allocator_settings");
        vr_json_string(&json, "PYTORCH_CUDA_ALLOC_CONF", made->conf);
        vr_json_object_end(&json);
    }
    vr_json_object_end(&json);
    need(vr_text_status(text) == VRAM_OK, "memory");
}

struct vram_recording *selfmade_recording(const struct selfmade *made, size_t cut) {
    struct vr_text json = {0};
    selfmade_json(made, cut, &json);
    struct vram_recording *recording = read_bytes(json.bytes, json.length);
    vr_text_release(&json);
    return recording;
}

const char *const selfmade_confs[SELFMADE_CONFS] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
    "expandable_segments:True,max_split_size_mb:32",
    "max_split_size_mb:64,roundup_power2_divisions:4",
    "large_segment_size_mb:32",
    "expandable_segments:True,large_segment_size_mb:32,max_split_size_mb:48",
    "expandable_segments:True,release_lock_on_cudamalloc:True",
    "expandable_segments:True,large_segment_size_mb:11", // pages of 12 MiB
    "expandable_segments:True,large_segment_size_mb:25,max_split_size_mb:48",
};

const struct selfmade_options selfmade_plain = {.conf = "", .seed = 7, .memory_bytes = 80 * VR_GIB, .operations = 1500, .streams = 2};
