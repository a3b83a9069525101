// Tests blocks shared by two processes: this one, with a fault driver, and a worker (other.h). Both see the bytes that either writes, for
// any kind of segment, and neither breaks when the other frees, closes or dies first.
#include "support/expect.h"

#include <string.h>

#include "core/share/share.h"
#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "os/os.h"
#include "pair.h"
#include "vram/pool.h"
#include "vram/sim.h"

// Checks both directions: each side reads what the other writes.
static void same_bytes(struct pair *pair, uint64_t theirs, uint64_t ours, uint64_t size_bytes, uint64_t seed) {
    (void)ask(pair, &(struct other_order){.what = OTHER_WRITE, .address = theirs, .size_bytes = size_bytes, .seed = seed});
    assert_true(other_is(ours, size_bytes, seed));
    other_write(ours, size_bytes, seed + 1);
    (void)ask(pair, &(struct other_order){.what = OTHER_READ, .address = theirs, .size_bytes = size_bytes, .seed = seed + 1});
}

static const uint64_t sizes[] = {512, 100 * VR_KIB, 3 * VR_MIB, 25 * VR_MIB, 70 * VR_MIB};

static const char *const any_confs[] = {"", "expandable_segments:True", "paged:True"};

static void blocks_of_any_kind_are_shared(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(any_confs); c++) {
        struct pair pair;
        open_pair(&pair, any_confs[c]);
        for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
            (void)get_there(&pair, sizes[i] / 2); // so that blocks start anywhere in their segments
            const uint64_t theirs = get_there(&pair, sizes[i]);
            const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
            const struct vram_imported imported = import_here(&pair, &exported);
            assert_int_equal(imported.requested_bytes, sizes[i]);
            assert_true(imported.size_bytes >= sizes[i]);
            assert_int_equal(imported.device, 0);
            same_bytes(&pair, theirs, imported.address, sizes[i], 17 * i);
            EXPECT_STATUS(INVALID_POINTER, vram_free(pair.here.allocator, imported.address));
            EXPECT_OK(vram_import_release(pair.here.allocator, imported.address));
            EXPECT_STATUS(INVALID_POINTER, vram_import_release(pair.here.allocator, imported.address));
            assert_int_equal(stats_here(&pair).imports, 0);
        }
        close_pair(&pair);
    }
}

// The worker imports a block of this process.
static void the_other_way_round(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(any_confs); c++) {
        struct pair pair;
        open_pair(&pair, any_confs[c]);
        const uint64_t ours = expect_malloc(&pair.here, 5 * VR_MIB, 0);
        struct other_order order = {.what = OTHER_IMPORT};
        size_t size = 0;
        EXPECT_OK(vram_export(pair.here.allocator, ours, order.handle, sizeof order.handle, &size, NULL));
        order.handle_bytes = (uint32_t)size;
        const struct other_reply imported = ask(&pair, &order);
        same_bytes(&pair, imported.imported.address, ours, 5 * VR_MIB, 3);
        (void)ask(&pair, &(struct other_order){.what = OTHER_RELEASE, .address = imported.imported.address});
        expect_free(&pair.here, ours);
        close_pair(&pair);
    }
}

static void raw_blocks_are_shared_too(void **state) {
    struct pair pair;
    (void)state;
    open_pair(&pair, "expandable_segments:True");
    const uint64_t theirs = ask(&pair, &(struct other_order){.what = OTHER_MALLOC_RAW, .size_bytes = 3 * VR_MIB}).address;
    const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
    assert_int_equal(exported.handle_bytes, VRAM_HANDLE_BYTES);
    same_bytes(&pair, theirs, import_here(&pair, &exported).address, 3 * VR_MIB, 5);
    close_pair(&pair);
}

// Imports use address space only for what is shared; memory already here is not imported again; the last release closes it.
static void imports_are_small_and_counted(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct pair pair;
        open_pair(&pair, confs[c]);
        const uint64_t first = get_there(&pair, 3 * VR_MIB), second = get_there(&pair, 3 * VR_MIB);
        const struct other_reply a = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = first});
        const struct other_reply b = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = second});
        const struct vram_imported one = import_here(&pair, &a), again = import_here(&pair, &a), two = import_here(&pair, &b);
        assert_false(one.cached);
        assert_true(again.cached);
        assert_true(two.cached); // both are in one segment or page
        assert_int_equal(one.address, again.address);
        assert_int_equal(two.address - one.address, second - first);
        assert_int_equal(one.reserved_bytes, 20 * VR_MIB);
        assert_int_equal(stats_here(&pair).imports, 1);
        assert_int_equal(stats_here(&pair).import_references, 3);
        assert_int_equal(stats_here(&pair).reserved_bytes, 20 * VR_MIB);
        assert_int_equal(vram_sim_memory_used(pair.here.sim, 0), 0); // none of this process's device memory
        EXPECT_OK(vram_import_release(pair.here.allocator, one.address));
        EXPECT_OK(vram_import_release(pair.here.allocator, two.address));
        same_bytes(&pair, first, again.address, 3 * VR_MIB, 9);
        EXPECT_OK(vram_import_release(pair.here.allocator, again.address));
        assert_int_equal(stats_here(&pair).imports, 0);
        assert_int_equal(stats_here(&pair).reserved_bytes, 0);
        close_pair(&pair);
    }
}

// Part of an imported run of pages is found in it.
static void a_page_of_a_longer_run_is_not_imported_again(void **state) {
    struct pair pair;
    (void)state;
    open_pair(&pair, "expandable_segments:True");
    const uint64_t low = get_there(&pair, 30 * VR_MIB), high = get_there(&pair, 9 * VR_MIB);
    const uint64_t size = 60 * VR_MIB;
    const struct other_reply late = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = high});
    const struct other_reply whole = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = low});
    assert_int_equal(whole.handle_bytes, VRAM_HANDLE_BYTES + 2 * 16); // pages of 20 MiB
    const struct vram_imported run = import_here(&pair, &whole), part = import_here(&pair, &late);
    assert_true(part.cached);
    assert_int_equal(part.address - run.address, high - low);
    assert_true(stats_here(&pair).reserved_bytes < size);
    same_bytes(&pair, high, part.address, 9 * VR_MIB, 33);
    close_pair(&pair);
}

// Pages of several lengths, neighbours and aliases: exactly the block is imported, and the descriptors end with the pages.
static void paged_blocks_are_shared(void **state) {
    struct pair pair;
    (void)state;
    open_pair(&pair, "paged:True");
    const uint64_t base = get_there(&pair, 600 * VR_MIB); // pages may be larger than 2 MiB from now on
    uint64_t block[5];
    for (int i = 0; i < 5; i++) block[i] = get_there(&pair, 9 * VR_MIB);
    for (int i = 0; i < 5; i += 2) (void)ask(&pair, &(struct other_order){.what = OTHER_FREE, .address = block[i]});
    const uint64_t joined = get_there(&pair, 22 * VR_MIB); // through its own windows, if needed
    const struct other_reply a = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = joined});
    const struct other_reply b = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = block[1]});
    const struct vram_imported one = import_here(&pair, &a), two = import_here(&pair, &b), again = import_here(&pair, &a);
    assert_true(again.cached);
    assert_int_equal(one.address, again.address);
    same_bytes(&pair, joined, one.address, 22 * VR_MIB, 7);
    same_bytes(&pair, block[1], two.address, 9 * VR_MIB, 8);
    assert_true(ask(&pair, &(struct other_order){.what = OTHER_STATS}).stats.descriptors > 4);
    (void)ask(&pair, &(struct other_order){.what = OTHER_FREE, .address = joined});
    (void)ask(&pair, &(struct other_order){.what = OTHER_FREE, .address = base});
    for (int i = 1; i < 5; i += 2) (void)ask(&pair, &(struct other_order){.what = OTHER_FREE, .address = block[i]});
    (void)ask(&pair, &(struct other_order){.what = OTHER_EMPTY_CACHE});
    const struct other_reply there = ask(&pair, &(struct other_order){.what = OTHER_STATS});
    assert_int_equal(there.used_bytes, 0);
    assert_int_equal(there.stats.descriptors, 0);
    assert_true(other_is(one.address, 22 * VR_MIB, 8)); // the bytes stay: the second pattern is one more than the first
    for (int i = 0; i < 2; i++) EXPECT_OK(vram_import_release(pair.here.allocator, one.address));
    EXPECT_OK(vram_import_release(pair.here.allocator, two.address));
    close_pair(&pair);
}

static void whoever_goes_first_the_bytes_stay(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(any_confs); c++) {
        struct pair pair;
        open_pair(&pair, any_confs[c]);
        const uint64_t theirs = get_there(&pair, 25 * VR_MIB);
        const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
        const struct vram_imported imported = import_here(&pair, &exported);
        same_bytes(&pair, theirs, imported.address, 25 * VR_MIB, 5);
        // The owner frees and releases everything: the importer keeps the bytes.
        (void)ask(&pair, &(struct other_order){.what = OTHER_FREE, .address = theirs});
        (void)ask(&pair, &(struct other_order){.what = OTHER_EMPTY_CACHE});
        const struct other_reply there = ask(&pair, &(struct other_order){.what = OTHER_STATS});
        assert_int_equal(there.used_bytes, 0);
        assert_int_equal(there.stats.descriptors, 0);
        assert_true(other_is(imported.address, 25 * VR_MIB, 6));
        // The block can no longer be imported.
        struct vram_error error;
        struct vram_imported none;
        EXPECT_OK(vram_import_release(pair.here.allocator, imported.address));
        EXPECT_STATUS(INVALID_POINTER, vram_import(pair.here.allocator, exported.handle, exported.handle_bytes, &none, &error));
        assert_non_null(strstr(error.message, "released"));
        EXPECT_STATUS(INVALID_POINTER, other_do(&pair.there, &(struct other_order){.what = OTHER_EXPORT, .address = theirs}).status);
        close_pair(&pair);
    }
}

static void a_crash_of_the_other_breaks_nothing(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(any_confs); c++) {
        struct pair pair;
        open_pair(&pair, any_confs[c]);
        const uint64_t theirs = get_there(&pair, 25 * VR_MIB), later = get_there(&pair, 512);
        const uint64_t ours = expect_malloc(&pair.here, 3 * VR_MIB, 0);
        const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
        const struct other_reply unused = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = later});
        const struct vram_imported imported = import_here(&pair, &exported);
        struct other_order order = {.what = OTHER_IMPORT};
        size_t size = 0;
        EXPECT_OK(vram_export(pair.here.allocator, ours, order.handle, sizeof order.handle, &size, NULL));
        order.handle_bytes = (uint32_t)size;
        (void)ask(&pair, &order);
        same_bytes(&pair, theirs, imported.address, 25 * VR_MIB, 1);
        other_write(ours, 3 * VR_MIB, 4);
        other_stop(&pair.there, 1);
        assert_true(other_is(imported.address, 25 * VR_MIB, 2));
        assert_true(other_is(ours, 3 * VR_MIB, 4));
        struct vram_imported none;
        struct vram_error error;
        EXPECT_STATUS(INVALID_POINTER, vram_import(pair.here.allocator, unused.handle, unused.handle_bytes, &none, &error));
        assert_string_equal(error.message, "the process that exported the block has ended");
        EXPECT_OK(vram_import_release(pair.here.allocator, imported.address));
        expect_free(&pair.here, ours);
        EXPECT_OK(vram_empty_cache(pair.here.allocator));
        expect_end(&pair.here);
    }
}

static void a_socket_carries_block_and_descriptors(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct pair pair;
        open_pair(&pair, confs[c]);
        const uint64_t theirs = get_there(&pair, 70 * VR_MIB);
        other_tell(&pair.there, &(struct other_order){.what = OTHER_SEND, .address = theirs});
        struct vram_imported imported, back;
        EXPECT_OK(vram_import_receive(pair.here.allocator, pair.there.socket, &imported, NULL));
        assert_int_equal(other_hear(&pair.there).status, VRAM_OK);
        same_bytes(&pair, theirs, imported.address, 70 * VR_MIB, 7);
        // The same memory received another way is recognized; nothing stays open in the sender.
        assert_int_equal(ask(&pair, &(struct other_order){.what = OTHER_STATS}).stats.descriptors, 0);
        const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
        back = import_here(&pair, &exported);
        assert_true(back.cached);
        const uint64_t ours = expect_malloc(&pair.here, 3 * VR_MIB, 0);
        other_tell(&pair.there, &(struct other_order){.what = OTHER_RECEIVE});
        EXPECT_OK(vram_export_send(pair.here.allocator, ours, pair.there.socket, NULL));
        const struct other_reply received = other_hear(&pair.there);
        assert_int_equal(received.status, VRAM_OK);
        same_bytes(&pair, received.imported.address, ours, 3 * VR_MIB, 70);
        expect_free(&pair.here, ours);
        close_pair(&pair);
    }
}

static void exports_end(void **state) {
    struct pair pair;
    struct vram_imported none;
    (void)state;
    open_pair(&pair, "expandable_segments:True");
    const uint64_t theirs = get_there(&pair, 25 * VR_MIB);
    const struct other_order export = {.what = OTHER_EXPORT, .address = theirs}, end = {.what = OTHER_EXPORT_END, .address = theirs};
    const struct other_reply exported = ask(&pair, &export);
    (void)ask(&pair, &export);
    assert_int_equal(ask(&pair, &(struct other_order){.what = OTHER_STATS}).stats.descriptors, 2);
    (void)ask(&pair, &end);
    assert_int_equal(ask(&pair, &(struct other_order){.what = OTHER_STATS}).stats.descriptors, 2);
    (void)ask(&pair, &end);
    assert_int_equal(ask(&pair, &(struct other_order){.what = OTHER_STATS}).stats.descriptors, 0);
    assert_int_equal(other_do(&pair.there, &end).status, VRAM_INVALID_ARGUMENT);
    EXPECT_STATUS(INVALID_POINTER, vram_import(pair.here.allocator, exported.handle, exported.handle_bytes, &none, NULL));
    close_pair(&pair);
}

// --- refusals ---------------------------------------------------------------------------------------------------------------------

static void refused(struct vram_allocator *allocator, const void *handle, size_t size_bytes, enum vram_status status, const char *says) {
    struct vram_imported none;
    struct vram_error error = {.message = ""};
    const enum vram_status found = vram_import(allocator, handle, size_bytes, &none, &error);
    if (found != status || strstr(error.message, says) == NULL) fail_msg("%s: %s", vram_status_name(found), error.message);
}

static void what_cannot_be_shared_says_why(void **state) {
    struct pair pair;
    unsigned char handle[OTHER_HANDLE_BYTES];
    size_t size = 0;
    struct vram_error error;
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        open_pair(&pair, confs[c]);
        const uint64_t ours = expect_malloc(&pair.here, 25 * VR_MIB, 0);
        EXPECT_STATUS(INVALID_ARGUMENT, vram_export(pair.here.allocator, ours, handle, VRAM_HANDLE_BYTES - 1, &size, &error));
        EXPECT_OK(vram_export(pair.here.allocator, ours, handle, sizeof handle, &size, NULL));
        refused(pair.here.allocator, handle, size, VRAM_UNSUPPORTED, "by this process");
        const struct other_reply exported =
            ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 25 * VR_MIB)});
        memcpy(handle, exported.handle, exported.handle_bytes);
        handle[offsetof(struct vr_handle, host) + 3] ^= 1;
        refused(pair.here.allocator, handle, exported.handle_bytes, VRAM_UNSUPPORTED, "another machine");
        memcpy(handle, exported.handle, exported.handle_bytes);
        handle[offsetof(struct vr_handle, uuid) + 15] = 77;
        refused(pair.here.allocator, handle, exported.handle_bytes, VRAM_UNSUPPORTED, "cannot see");
        memcpy(handle, exported.handle, exported.handle_bytes);
        handle[offsetof(struct vr_handle, started)] ^= 1;
        refused(pair.here.allocator, handle, exported.handle_bytes, VRAM_INVALID_POINTER, "has ended");
        expect_free(&pair.here, ours);
        EXPECT_STATUS(INVALID_POINTER, vram_export(pair.here.allocator, ours, handle, sizeof handle, &size, &error));
        EXPECT_STATUS(INVALID_POINTER, vram_export_size(pair.here.allocator, ours, &size));
        EXPECT_OK(vram_empty_cache(pair.here.allocator));
        close_pair(&pair);
    }
}

static uint64_t own_allocate(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    uint64_t address = 0;
    (void)device, (void)stream;
    return vr_cu((struct vram_driver *)user, mem_alloc, &address, size_bytes) == VR_CU_SUCCESS ? address : 0;
}
static void own_deallocate(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    assert_int_equal(vr_cu((struct vram_driver *)user, mem_free, address), VR_CU_SUCCESS);
}

static void pools_of_the_users_own_are_not_shared(void **state) {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t address = 0;
    size_t size = 0;
    unsigned char handle[VRAM_HANDLE_BYTES];
    struct vram_error error;
    const struct vr_world_options options = {.sim = {.backed = true}};
    (void)state;
    EXPECT_OK(vr_world_open(&world, &options));
    const struct vram_pool_options own = {.allocate = own_allocate, .deallocate = own_deallocate, .user = world.sim};
    EXPECT_OK(vram_pool_create(world.allocator, 0, &own, &pool));
    EXPECT_OK(vram_pool_malloc(pool, 1000, 0, &address));
    EXPECT_STATUS(UNSUPPORTED, vram_export(world.allocator, address, handle, sizeof handle, &size, &error));
    assert_non_null(strstr(error.message, "own allocation functions"));
    expect_free(&world, address);
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_end(&world);
}

static void segments_that_can_sleep_say_why(void **state) {
    struct vr_world world;
    size_t size = 0;
    unsigned char handle[VRAM_HANDLE_BYTES];
    struct vram_error error;
    const struct vr_world_options options = {.sim = {.backed = true}, .conf = "sleepable:True"};
    (void)state;
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t address = expect_malloc(&world, 1000, 0);
    EXPECT_STATUS(UNSUPPORTED, vram_export(world.allocator, address, handle, sizeof handle, &size, &error));
    assert_non_null(strstr(error.message, "can sleep"));
    expect_free(&world, address);
    expect_end(&world);
}

// A simulator without bytes cannot share, and says so.
static void a_driver_without_handles_is_named(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        unsigned char handle[OTHER_HANDLE_BYTES];
        size_t size = 0;
        struct vram_error error;
        expect_world(&world, confs[c], VR_GIB);
        const uint64_t address = expect_malloc(&world, VR_MIB, 0);
        EXPECT_STATUS(UNSUPPORTED, vram_export(world.allocator, address, handle, sizeof handle, &size, &error));
        assert_true(strstr(error.message, "cannot") != NULL);
        expect_free(&world, address);
        expect_end(&world);
    }
}

// Damaged handles are refused, or import some memory; neither leaves anything behind.
static void damaged_handles_do_no_harm(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct pair pair;
        open_pair(&pair, confs[c]);
        const struct other_reply exported =
            ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 25 * VR_MIB)});
        for (size_t bit = 0; bit < (size_t)exported.handle_bytes * 8; bit++) {
            unsigned char handle[OTHER_HANDLE_BYTES];
            struct vram_imported imported;
            memcpy(handle, exported.handle, exported.handle_bytes);
            handle[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (vram_import(pair.here.allocator, handle, exported.handle_bytes, &imported, NULL) == VRAM_OK)
                EXPECT_OK(vram_import_release(pair.here.allocator, imported.address));
            assert_int_equal(stats_here(&pair).imports, 0);
        }
        for (size_t size = 0; size < exported.handle_bytes; size += 7) {
            struct vram_imported imported;
            EXPECT_STATUS(BAD_INPUT, vram_import(pair.here.allocator, exported.handle, size, &imported, NULL));
        }
        close_pair(&pair);
    }
}

// A handle with pages has exactly its stated length: not a byte or page more, even if the counted pages would make up its segment.
static void handles_are_as_long_as_they_say(void **state) {
    (void)state;
    struct pair pair;
    unsigned char handle[OTHER_HANDLE_BYTES] = {0};
    open_pair(&pair, "expandable_segments:True");
    const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 25 * VR_MIB)});
    const size_t size = exported.handle_bytes, page = sizeof(struct vr_handle_page);
    assert_true(size > VRAM_HANDLE_BYTES);
    memcpy(handle, exported.handle, size);
    const size_t sizes_of_others[] = {size - page, size - 1, size + 1, size + page - 1, size + page, size + page + 1};
    for (size_t i = 0; i < VR_COUNT_OF(sizes_of_others); i++)
        refused(pair.here.allocator, handle, sizes_of_others[i], VRAM_BAD_INPUT, "the handle has the wrong length");
    struct vram_imported imported;
    EXPECT_OK(vram_import(pair.here.allocator, handle, size, &imported, NULL));
    EXPECT_OK(vram_import_release(pair.here.allocator, imported.address));
    close_pair(&pair);
}

// --- captures and threads ---------------------------------------------------------------------------------------------------------

// A release must not wait for the device during a capture, so it is completed later.
static void a_release_in_a_capture_waits(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct pair pair;
        struct vram_pool *pool;
        uint64_t graph = 0;
        open_pair(&pair, confs[c]);
        struct vram_allocator *allocator = pair.here.allocator;
        const uint64_t stream = pair.here.stream[0][1];
        const struct other_reply a = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 30 * VR_MIB)});
        const struct other_reply b = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 30 * VR_MIB)});
        const struct vram_imported first = import_here(&pair, &a);
        EXPECT_OK(vram_pool_create(allocator, 0, &(struct vram_pool_options){.for_graph = true}, &pool));
        EXPECT_OK(vram_capture_begin(pool, stream, VRAM_CAPTURE_GLOBAL, NULL));
        EXPECT_OK(vram_import_release(allocator, first.address));
        assert_int_equal(stats_here(&pair).unreleased, 1);
        const struct vram_imported second = import_here(&pair, &b); // an import does not affect a capture
        EXPECT_OK(vram_capture_end(pool, stream, &graph, NULL));
        EXPECT_OK(vram_import_release(allocator, second.address));
        assert_int_equal(stats_here(&pair).imports, 0);
        assert_int_equal(vr_cu(pair.here.sim, graph_destroy, graph), VR_CU_SUCCESS);
        vram_pool_release(pool);
        close_pair(&pair);
    }
}

enum { THREADS = 4, ROUNDS = 60 };

struct crowd {
    struct pair pair;
    struct other_reply exported[2];
    uint64_t seeds[2];
    _Atomic uint32_t wrong;
};

static void import_and_look(void *argument) {
    struct crowd *crowd = argument;
    struct vram_allocator *allocator = crowd->pair.here.allocator;
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t which = round % 2;
        struct vram_imported imported;
        uint64_t block = 0;
        const struct other_reply *exported = &crowd->exported[which];
        bool fine = vram_import(allocator, exported->handle, exported->handle_bytes, &imported, NULL) == VRAM_OK;
        fine = fine && vram_malloc(allocator, 0, (round + 1) * VR_MIB, 0, &block) == VRAM_OK;
        fine = fine && vram_peer_enable(allocator, 1, 0, NULL) == VRAM_OK;
        fine = fine && other_is(imported.address, VR_MIB, crowd->seeds[which]) && vram_free(allocator, block) == VRAM_OK;
        fine = fine && vram_import_release(allocator, imported.address) == VRAM_OK;
        if (!fine) atomic_fetch_add(&crowd->wrong, 1);
    }
}

static void many_threads_import_at_once(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        static struct crowd crowd;
        crowd = (struct crowd){.seeds = {100, 200}};
        open_pair(&crowd.pair, confs[c]);
        for (size_t i = 0; i < 2; i++) {
            const uint64_t theirs = get_there(&crowd.pair, 25 * VR_MIB);
            crowd.exported[i] = ask(&crowd.pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
            (void)ask(&crowd.pair,
                      &(struct other_order){.what = OTHER_WRITE, .address = theirs, .size_bytes = VR_MIB, .seed = crowd.seeds[i]});
        }
        struct vr_thread threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) EXPECT_OK(vr_thread_start(&threads[i], import_and_look, &crowd));
        for (size_t i = 0; i < THREADS; i++) vr_thread_join(&threads[i]);
        assert_int_equal(atomic_load(&crowd.wrong), 0);
        assert_int_equal(stats_here(&crowd.pair).imports, 0);
        close_pair(&crowd.pair);
    }
}

// Imports are accessible to present and future peers.
static void peers_reach_imports(void **state) {
    struct pair pair;
    (void)state;
    open_pair(&pair, "expandable_segments:True");
    const struct other_reply a = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 15 * VR_MIB)});
    const struct other_reply b = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = get_there(&pair, 15 * VR_MIB)});
    const struct vram_imported before = import_here(&pair, &a);
    const struct vr_cu_location one = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 1};
    uint64_t flags = 9;
    assert_int_equal(vr_cu(pair.here.sim, mem_get_access, &flags, &one, before.address), VR_CU_SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    EXPECT_OK(vram_peer_enable(pair.here.allocator, 1, 0, NULL));
    const struct vram_imported after = import_here(&pair, &b);
    assert_int_equal(vr_cu(pair.here.sim, mem_get_access, &flags, &one, before.address), VR_CU_SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_int_equal(vr_cu(pair.here.sim, mem_get_access, &flags, &one, after.address), VR_CU_SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    close_pair(&pair);
}

// --- refused driver calls ---------------------------------------------------------------------------------------------------------

// Imports, uses and releases with the nth driver call refused, and the then_nth after it (0: none). Returns whether one was refused.
static bool one_round(struct pair *pair, const struct other_reply *exported, uint64_t theirs, uint64_t nth, uint64_t then_nth) {
    struct vram_allocator *allocator = pair->here.allocator;
    const uint64_t before = vram_driver_fault_count(pair->here.driver);
    struct vram_imported imported = {.address = 0};
    EXPECT_OK(vram_driver_fault_set(pair->here.driver, NULL, nth, VR_CU_UNKNOWN));
    if (then_nth != 0) vr_fault_then(pair->here.driver, then_nth, VR_CU_OUT_OF_MEMORY);
    enum vram_status status = vram_import(allocator, exported->handle, exported->handle_bytes, &imported, NULL);
    if (status == VRAM_OK) {
        same_bytes(pair, theirs, imported.address, VR_MIB, nth);
        status = vram_import_release(allocator, imported.address);
    } else {
        assert_int_equal(imported.address, 0);
    }
    const bool fired = vram_driver_fault_count(pair->here.driver) != before;
    EXPECT_OK(vram_driver_fault_set(pair->here.driver, NULL, 0, 0));
    if (!fired) EXPECT_OK(status);
    // Without faults it works, and cleans up what was left.
    EXPECT_OK(vram_import(allocator, exported->handle, exported->handle_bytes, &imported, NULL));
    assert_int_equal(stats_here(pair).imports, 1);
    EXPECT_OK(vram_import_release(allocator, imported.address));
    assert_int_equal(stats_here(pair).imports, 0);
    return fired;
}

static void every_call_of_an_import_may_fail(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct pair pair;
        open_pair(&pair, confs[c]);
        const uint64_t theirs = get_there(&pair, 70 * VR_MIB);
        const struct other_reply exported = ask(&pair, &(struct other_order){.what = OTHER_EXPORT, .address = theirs});
        for (uint64_t then_nth = 0; then_nth <= 6; then_nth++) {
            uint64_t nth = 1;
            while (one_round(&pair, &exported, theirs, nth, then_nth)) nth++;
            assert_true(nth > (c == 0 ? 5 : 15));
        }
        close_pair(&pair);
    }
}

static void calls_of_an_export_fail(uint64_t then_nth) {
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        const struct vr_world_options options = {.sim = {.backed = true}, .conf = confs[c], .faults = true};
        EXPECT_OK(vr_world_open(&world, &options));
        const uint64_t address = expect_malloc(&world, 70 * VR_MIB, 0);
        unsigned char handle[OTHER_HANDLE_BYTES];
        enum vram_status status = VRAM_DRIVER;
        struct vram_share_stats stats;
        for (uint64_t nth = 1; status != VRAM_OK; nth++) {
            size_t size = 0;
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, VR_CU_UNKNOWN));
            if (then_nth != 0) vr_fault_then(world.driver, then_nth, VR_CU_OUT_OF_MEMORY);
            status = vram_export(world.allocator, address, handle, sizeof handle, &size, NULL);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            assert_true(status == VRAM_OK || status == VRAM_DRIVER);
            vram_get_share_stats(world.allocator, &stats);
            assert_int_equal(stats.descriptors, status == VRAM_OK && c == 1 ? 4 : 0);
        }
        expect_free(&world, address);
        EXPECT_OK(vram_empty_cache(world.allocator));
        assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
        vram_get_share_stats(world.allocator, &stats);
        assert_int_equal(stats.descriptors, 0);
        expect_end(&world);
    }
}

static void every_call_of_an_export_may_fail(void **state) {
    (void)state;
    for (uint64_t then_nth = 0; then_nth <= 6; then_nth++) calls_of_an_export_fail(then_nth);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "other") == 0) return other_main(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_any_kind_are_shared),
        cmocka_unit_test(the_other_way_round),
        cmocka_unit_test(raw_blocks_are_shared_too),
        cmocka_unit_test(imports_are_small_and_counted),
        cmocka_unit_test(a_page_of_a_longer_run_is_not_imported_again),
        cmocka_unit_test(paged_blocks_are_shared),
        cmocka_unit_test(whoever_goes_first_the_bytes_stay),
        cmocka_unit_test(a_crash_of_the_other_breaks_nothing),
        cmocka_unit_test(a_socket_carries_block_and_descriptors),
        cmocka_unit_test(exports_end),
        cmocka_unit_test(what_cannot_be_shared_says_why),
        cmocka_unit_test(pools_of_the_users_own_are_not_shared),
        cmocka_unit_test(segments_that_can_sleep_say_why),
        cmocka_unit_test(a_driver_without_handles_is_named),
        cmocka_unit_test(damaged_handles_do_no_harm),
        cmocka_unit_test(handles_are_as_long_as_they_say),
        cmocka_unit_test(a_release_in_a_capture_waits),
        cmocka_unit_test(many_threads_import_at_once),
        cmocka_unit_test(peers_reach_imports),
        cmocka_unit_test(every_call_of_an_import_may_fail),
        cmocka_unit_test(every_call_of_an_export_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
