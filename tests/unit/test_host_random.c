// Compares random operations on pinned memory with a second, naive allocator: the same sizes, the same blocks kept and released, the same
// statistics after every operation, and no byte shared by two live blocks.
#include "host_fixture.h"
#include "support/random.h"
#include "vram/sim.h"

enum { BLOCKS = 4096, STREAMS = 4, POOLS = 3, ROUNDS = 2000, PAGE = 4096 };

enum naive_state { GONE, LIVE, PENDING, FREE };

struct naive_block {
    enum naive_state state;
    unsigned char *pointer;
    uint64_t size, requested;
    unsigned pool;
    bool reserved;
    bool used[STREAMS];   // while live: declared uses; while pending: uses that have not passed
    unsigned char filler; // value of its bytes while it is live
};

// The naive allocator with the real one.
struct pair {
    struct fixture real;
    struct vram_host_pool *pools[POOLS]; // [0]: NULL, the default pool
    uint64_t streams[STREAMS];
    uint64_t random;
    bool touched;                                   // all pages of a block are touched, so there are no large blocks
    uint64_t threshold, cached_limit, reserve_left; // settings; 0 as threshold: the default
    struct naive_block blocks[BLOCKS];
    size_t count;
    int64_t most;                 // most bytes ever requested at once
    struct vram_host_stats stats; // expected counters; times and buckets are not compared
};

static uint64_t draw(struct pair *pair, uint64_t limit) { return vr_random_below(&pair->random, limit); }

static void count(struct vram_stat *stat, int64_t change) {
    stat->current += change;
    *(change > 0 ? &stat->allocated : &stat->freed) += change > 0 ? change : -change;
    if (stat->current > stat->peak) stat->peak = stat->current;
}

static uint64_t power_of_2(uint64_t size) {
    uint64_t power = 1;
    while (power < size) power *= 2;
    return power;
}

static uint64_t naive_size(const struct pair *pair, uint64_t request) {
    if (request > pair->cached_limit) return request;
    if (pair->threshold != 0 && request > pair->threshold) return request;
    if (pair->threshold != 0 || request <= 64 * VR_MIB) return power_of_2(request);
    const uint64_t step = power_of_2(request) / 2 / 8; // an eighth of the power of two below it
    return (request + step - 1) / step * step;
}

// --- the naive allocator ------------------------------------------------------------------------------------------------------------

static void leave(struct pair *pair, struct naive_block *block) {
    block->state = GONE;
    count(&pair->stats.allocations, -1);
    count(&pair->stats.allocated_bytes, -(int64_t)block->size);
}

static void finish(struct pair *pair, struct naive_block *block) {
    count(&pair->stats.active_requests, -1);
    count(&pair->stats.active_bytes, -(int64_t)block->size);
    count(&pair->stats.requested_bytes, -(int64_t)block->requested);
    block->state = FREE;
    if (block->size > pair->cached_limit && !block->reserved) leave(pair, block);
}

static bool waits(const struct naive_block *block) {
    for (unsigned i = 0; i < STREAMS; i++) {
        if (block->used[i]) return true;
    }
    return false;
}

static void look(struct pair *pair) {
    for (size_t i = 0; i < pair->count; i++) {
        struct naive_block *block = &pair->blocks[i];
        if (block->state != PENDING || waits(block)) continue;
        pair->stats.pending_bytes -= block->size;
        finish(pair, block);
    }
}

// Returns the cached size that serves a request; 0: the driver.
static uint64_t cached_size(const struct pair *pair, unsigned pool, uint64_t size) {
    uint64_t best = 0;
    for (size_t i = 0; i < pair->count; i++) {
        const struct naive_block *block = &pair->blocks[i];
        if (block->state != FREE || block->pool != pool || block->size < size || block->size >= 2 * size) continue;
        if (best == 0 || block->size < best) best = block->size;
    }
    return best;
}

static void release(struct pair *pair, unsigned pool) {
    for (size_t i = 0; i < pair->count; i++) {
        struct naive_block *block = &pair->blocks[i];
        if (block->state == FREE && block->pool == pool && !block->reserved) leave(pair, block);
    }
}

// Releases large cached sizes before the pinned bytes exceed twice the most that was in use.
static void make_room(struct pair *pair, uint64_t requested, uint64_t size) {
    const int64_t wanted = pair->stats.requested_bytes.current + (int64_t)requested;
    if (pair->threshold != 0 || size <= 64 * VR_MIB) return;
    while (pair->stats.allocated_bytes.current + (int64_t)size > 2 * (wanted > pair->most ? wanted : pair->most)) {
        struct naive_block *smallest = NULL;
        for (size_t i = 0; i < pair->count; i++) {
            struct naive_block *block = &pair->blocks[i];
            if (block->state != FREE || block->pool != 0 || block->reserved || block->size <= 64 * VR_MIB) continue;
            if (smallest == NULL || block->size < smallest->size) smallest = block;
        }
        if (smallest == NULL) return;
        leave(pair, smallest);
    }
}

// Returns whether the address is a live or pending block.
static bool is_taken(const struct pair *pair, const void *pointer) {
    for (size_t i = 0; i < pair->count; i++) {
        const enum naive_state state = pair->blocks[i].state;
        if ((state == LIVE || state == PENDING) && pair->blocks[i].pointer == pointer) return true;
    }
    return false;
}

// Free blocks of one size are equivalent here: the choice among them is not predicted.
static struct naive_block *any_free(struct pair *pair, unsigned pool, uint64_t size, bool reserved) {
    for (size_t i = 0; i < pair->count; i++) {
        struct naive_block *block = &pair->blocks[i];
        if (block->state == FREE && block->pool == pool && block->size == size && block->reserved == reserved) return block;
    }
    return NULL;
}

// --- operations on both ---------------------------------------------------------------------------------------------------------------

static uint64_t draw_request(struct pair *pair) {
    switch (draw(pair, 9)) {
    case 8: return pair->touched || draw(pair, 3) != 0 ? 1000 : 1 + draw(pair, 700 * VR_MIB);
    case 0: return 1 + draw(pair, 24 * VR_MIB);
    case 1: return 1 + draw(pair, 6 * VR_MIB);
    case 2: return (1 + draw(pair, 8)) * VR_MIB;
    default: return 1 + draw(pair, 20000);
    }
}

// The first and last bytes, and some between, which suffices to detect an overlap.
static uint64_t step(const struct naive_block *block) { return (block->requested / 16 / PAGE + 1) * PAGE; }

static void fill(struct naive_block *block) {
    for (uint64_t at = 0; at < block->requested; at += step(block)) block->pointer[at] = block->filler;
    block->pointer[block->requested - 1] = block->filler;
}

static void expect_filled(const struct naive_block *block) {
    for (uint64_t at = 0; at < block->requested; at += step(block)) assert_int_equal(block->pointer[at], block->filler);
    assert_int_equal(block->pointer[block->requested - 1], block->filler);
}

static struct naive_block *new_block(struct pair *pair, void *pointer, uint64_t size, unsigned pool) {
    assert_true(pair->count < BLOCKS);
    struct naive_block *block = &pair->blocks[pair->count++];
    *block = (struct naive_block){.pointer = pointer, .size = size, .pool = pool};
    const uint64_t bytes = (size + PAGE - 1) / PAGE * PAGE;
    block->reserved = bytes <= pair->reserve_left;
    if (block->reserved) {
        pair->reserve_left -= bytes;
        pair->stats.reserve_used_bytes += bytes;
    }
    count(&pair->stats.allocations, 1);
    count(&pair->stats.allocated_bytes, (int64_t)size);
    return block;
}

static void op_malloc(struct pair *pair) {
    const unsigned pool = (unsigned)draw(pair, POOLS);
    const uint64_t requested = draw_request(pair), size = naive_size(pair, requested);
    void *pointer = NULL;
    if (pool == 0)
        expect_ok(vram_host_malloc(pair->real.host, requested, 0, &pointer));
    else
        expect_ok(vram_host_pool_malloc(pair->pools[pool], requested, 0, &pointer));
    look(pair);
    assert_false(is_taken(pair, pointer));
    struct vram_host_block_info info;
    expect_ok(vram_get_host_block_info(pair->real.host, pointer, &info));
    const uint64_t cached = cached_size(pair, pool, size);
    if (cached == 0) make_room(pair, requested, size);
    struct naive_block *block =
        cached != 0 ? any_free(pair, pool, cached, info.origin == VRAM_HOST_RESERVED) : new_block(pair, pointer, size, pool);
    assert_non_null(block);
    assert_int_equal(info.size_bytes, block->size);
    assert_int_equal(info.requested_bytes, requested);
    assert_int_equal(info.origin == VRAM_HOST_RESERVED, block->reserved);
    assert_int_equal(info.pool.second, pool);
    *block = (struct naive_block){.state = LIVE,
                                  .pointer = pointer,
                                  .size = block->size,
                                  .requested = requested,
                                  .pool = pool,
                                  .reserved = block->reserved,
                                  .filler = (unsigned char)draw(pair, 256)};
    count(&pair->stats.active_requests, 1);
    count(&pair->stats.active_bytes, (int64_t)block->size);
    count(&pair->stats.requested_bytes, (int64_t)requested);
    if (pair->stats.requested_bytes.current > pair->most) pair->most = pair->stats.requested_bytes.current;
    fill(block);
}

static struct naive_block *draw_live(struct pair *pair) {
    for (int attempt = 0; attempt < 50 && pair->count != 0; attempt++) {
        struct naive_block *block = &pair->blocks[draw(pair, pair->count)];
        if (block->state == LIVE) return block;
    }
    return NULL;
}

static void free_both(struct pair *pair, struct naive_block *block) {
    expect_filled(block);
    expect_ok(vram_host_free(pair->real.host, block->pointer));
    assert_int_equal(vram_host_free(pair->real.host, block->pointer), VRAM_INVALID_POINTER);
    block->state = PENDING;
    if (!waits(block))
        finish(pair, block);
    else
        pair->stats.pending_bytes += block->size;
}

static void op_free(struct pair *pair) {
    struct naive_block *block = draw_live(pair);
    if (block != NULL) free_both(pair, block);
}

static void op_use(struct pair *pair) {
    struct naive_block *block = draw_live(pair);
    if (block == NULL) return;
    const unsigned stream = (unsigned)draw(pair, STREAMS);
    expect_ok(vram_host_record_stream(pair->real.host, block->pointer, pair->streams[stream]));
    block->used[stream] = true;
}

static void op_complete(struct pair *pair) {
    const unsigned stream = (unsigned)draw(pair, STREAMS);
    expect_ok(vram_sim_complete(pair->real.sim, pair->streams[stream]));
    for (size_t i = 0; i < pair->count; i++) {
        if (pair->blocks[i].state == PENDING) pair->blocks[i].used[stream] = false;
    }
}

static void op_release(struct pair *pair) {
    const unsigned pool = (unsigned)draw(pair, POOLS);
    if (pool == 0)
        expect_ok(vram_host_empty_cache(pair->real.host));
    else
        expect_ok(vram_host_pool_empty_cache(pair->pools[pool]));
    look(pair);
    release(pair, pool);
}

static void op_reset(struct pair *pair) {
    struct vram_host_stats *stats = &pair->stats;
    struct vram_stat *all[] = {&stats->active_requests, &stats->active_bytes, &stats->requested_bytes, &stats->allocations,
                               &stats->allocated_bytes};
    const bool peaks = draw(pair, 2) != 0;
    if (peaks)
        vram_host_reset_peak_stats(pair->real.host);
    else
        vram_host_reset_accumulated_stats(pair->real.host);
    for (size_t i = 0; i < VR_COUNT_OF(all); i++) {
        if (peaks)
            all[i]->peak = all[i]->current;
        else
            all[i]->allocated = all[i]->freed = 0;
    }
}

static void expect_stat(const char *name, struct vram_stat real, struct vram_stat naive) {
    if (memcmp(&real, &naive, sizeof real) == 0) return;
    fail_msg("%s is %lld/%lld/%lld/%lld, not %lld/%lld/%lld/%lld", name, (long long)real.current, (long long)real.peak,
             (long long)real.allocated, (long long)real.freed, (long long)naive.current, (long long)naive.peak, (long long)naive.allocated,
             (long long)naive.freed);
}

static void compare(struct pair *pair) {
    const struct vram_host_stats real = stats_of(&pair->real), naive = pair->stats;
    expect_stat("active_requests", real.active_requests, naive.active_requests);
    expect_stat("active_bytes", real.active_bytes, naive.active_bytes);
    expect_stat("requested_bytes", real.requested_bytes, naive.requested_bytes);
    expect_stat("allocations", real.allocations, naive.allocations);
    expect_stat("allocated_bytes", real.allocated_bytes, naive.allocated_bytes);
    assert_int_equal(real.pending_bytes, naive.pending_bytes);
    assert_int_equal(real.reserve_used_bytes, naive.reserve_used_bytes);
    check(&pair->real);
}

static void one_operation(struct pair *pair) {
    const uint64_t kind = draw(pair, 1000);
    if (kind < 350)
        op_malloc(pair);
    else if (kind < 660)
        op_free(pair);
    else if (kind < 820)
        op_use(pair);
    else if (kind < 970)
        op_complete(pair);
    else if (kind < 990)
        op_release(pair);
    else
        op_reset(pair);
}

static void run(const char *conf, uint64_t threshold, uint64_t cached_limit, uint64_t reserve, uint64_t seed) {
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    open_with(&pair->real, NULL, conf);
    pair->threshold = threshold;
    pair->cached_limit = cached_limit;
    pair->reserve_left = reserve;
    pair->random = seed;
    pair->touched = strstr(conf, "register") != NULL;
    uint64_t context;
    assert_cu(vr_cu(pair->real.sim, primary_ctx_retain, &context, 0), SUCCESS);
    for (unsigned i = 0; i < STREAMS; i++) pair->streams[i] = new_stream(&pair->real, 0);
    for (unsigned i = 1; i < POOLS; i++) expect_ok(vram_host_pool_create(pair->real.host, NULL, &pair->pools[i]));
    for (int round = 0; round < ROUNDS && pair->count < BLOCKS - 1; round++) {
        one_operation(pair);
        compare(pair);
    }
    for (size_t i = 0; i < pair->count; i++) {
        if (pair->blocks[i].state == LIVE) free_both(pair, &pair->blocks[i]);
    }
    compare(pair);
    assert_int_equal(stats_of(&pair->real).num_ooms, 0);
    for (unsigned i = 1; i < POOLS; i++) vram_host_pool_release(pair->pools[i]);
    assert_cu(vr_cu(pair->real.sim, primary_ctx_release, 0), SUCCESS);
    close_with(&pair->real);
    free(pair);
}

static void operations_agree(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        run("", 0, UINT64_MAX, 0, seed);
        run("pinned_max_round_threshold_mb:2", 2 * VR_MIB, UINT64_MAX, 0, seed + 10);
        run("pinned_max_cached_size_mb:4", 0, 4 * VR_MIB, 0, seed + 20);
        run("pinned_reserve_segment_size_mb:16,pinned_max_cached_size_mb:4", 0, 4 * VR_MIB, 16 * VR_MIB, seed + 30);
        run("pinned_use_cuda_host_register:True,pinned_num_register_threads:4", 0, UINT64_MAX, 0, seed + 40);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
