// Tests pools of the simulated driver in several processes. Two instances in one process stand for two processes.
#include "sim_fixture.h"

#include <unistd.h>

#include "sim/sim.h"
#include "os/os.h"
#include "vram/sim.h"

enum { DESCRIPTOR = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

static struct vram_sim_options options_of(const char *text) {
    struct vram_sim_options options = {0};
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    return options;
}

static struct vram_driver *open_text(const char *text) {
    const struct vram_sim_options options = options_of(text);
    return open_sim(&options);
}

static uint64_t make_pool(struct vram_driver *driver) {
    const struct vr_cu_pool_props props = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .handle_types = DESCRIPTOR, .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    uint64_t pool = 0;
    assert_cu(vr_cu(driver, mem_pool_create, &pool, &props), SUCCESS);
    return pool;
}

static uint64_t take(struct vram_driver *driver, uint64_t pool, uint64_t size_bytes) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc_from_pool_async, &address, size_bytes, pool, 0), SUCCESS);
    return address;
}

static uint64_t read_word(struct vram_driver *driver, uint64_t address) {
    uint64_t word = 0;
    assert_cu(vr_cu(driver, memcpy_dtoh, &word, address, sizeof word), SUCCESS);
    return word;
}

static void write_word(struct vram_driver *driver, uint64_t address, uint64_t word) {
    assert_cu(vr_cu(driver, memcpy_htod, address, &word, sizeof word), SUCCESS);
}

// A pool of one instance, opened in another.
struct pair {
    struct vram_driver *here, *there;
    uint64_t ours, theirs; // the pool
};

static struct pair open_pair(const char *text) {
    struct pair pair = {.here = open_text(text), .there = open_text(text)};
    int descriptor = -1;
    pair.ours = make_pool(pair.here);
    assert_cu(vr_sim_call_mem_pool_export_to_shareable_handle(vr_sim_of(pair.here), &descriptor, pair.ours, DESCRIPTOR, 0), SUCCESS);
    assert_cu(vr_sim_call_mem_pool_import_from_shareable_handle(vr_sim_of(pair.there), &pair.theirs, (void *)(uintptr_t)descriptor,
                                                                DESCRIPTOR, 0),
              SUCCESS);
    assert_int_equal(close(descriptor), 0);
    return pair;
}

static void check(const struct pair *pair) {
    assert_true(vr_sim_check(vr_sim_of(pair->here)));
    assert_true(vr_sim_check(vr_sim_of(pair->there)));
}

static void close_pair(struct pair *pair) {
    check(pair);
    vram_driver_destroy(pair->there);
    vram_driver_destroy(pair->here);
}

static uint64_t import(const struct pair *pair, uint64_t address) {
    unsigned char data[64];
    uint64_t opened = 0;
    assert_cu(vr_sim_call_mem_pool_export_pointer(vr_sim_of(pair->here), data, address), SUCCESS);
    assert_cu(vr_sim_call_mem_pool_import_pointer(vr_sim_of(pair->there), &opened, pair->theirs, data), SUCCESS);
    return opened;
}

static const char *const kept[] = {"backed", "bytes=sparse", "bytes=none"};

static void pieces_are_the_same_bytes(void **state) {
    for (size_t i = 0; i < VR_COUNT_OF(kept); i++) {
        struct pair pair = open_pair(kept[i]);
        const uint64_t sizes[] = {512, 4096 + 8, 100, 3 * VR_MIB};
        uint64_t ours[4], theirs[4], base, size_bytes;
        for (size_t p = 0; p < 4; p++) ours[p] = take(pair.here, pair.ours, sizes[p]);
        for (size_t p = 0; p < 4; p++) write_word(pair.here, ours[p], 100 + p);
        for (size_t p = 0; p < 4; p++) {
            theirs[p] = import(&pair, ours[p]);
            assert_int_equal(read_word(pair.there, theirs[p]), 100 + p);
            write_word(pair.there, theirs[p], 200 + p);
            assert_int_equal(read_word(pair.here, ours[p]), 200 + p);
            assert_cu(vr_cu(pair.there, mem_get_address_range, &base, &size_bytes, theirs[p] + 8), SUCCESS);
            assert_int_equal(base, theirs[p]);
            assert_int_equal(size_bytes, sizes[p]);
            uint64_t word;
            assert_cu(vr_cu(pair.there, memcpy_dtoh, &word, theirs[p] + sizes[p] - 4, 8), INVALID_VALUE);
        }
        assert_int_equal(vram_sim_memory_used(pair.there, 0), 0); // it uses none of the importer's memory
        check(&pair);
        assert_cu(vr_cu(pair.there, mem_free, theirs[0]), SUCCESS);
        assert_cu(vr_cu(pair.there, mem_free_async, theirs[1], 0), SUCCESS);
        assert_cu(vr_cu(pair.there, mem_free, theirs[1]), INVALID_VALUE);
        assert_cu(vr_cu(pair.there, mem_pool_destroy, pair.theirs), SUCCESS); // imported allocations stay valid
        assert_int_equal(read_word(pair.there, theirs[3]), 203);
        assert_cu(vr_cu(pair.there, mem_free, theirs[2]), SUCCESS);
        assert_cu(vr_cu(pair.there, mem_free, theirs[3]), SUCCESS);
        assert_int_equal(vram_sim_live_objects(pair.there), 0);
        for (size_t p = 0; p < 4; p++) assert_cu(vr_cu(pair.here, mem_free_async, ours[p], 0), SUCCESS);
        assert_cu(vr_cu(pair.here, mem_pool_destroy, pair.ours), SUCCESS);
        assert_int_equal(vram_sim_live_objects(pair.here), 0);
        close_pair(&pair);
    }
    (void)state;
}

static void what_another_wrote_is_gone_with_the_piece(void **state) {
    struct pair pair = open_pair("bytes=sparse");
    const uint64_t first = take(pair.here, pair.ours, 8192), opened = import(&pair, first);
    write_word(pair.there, opened + 4096, 7);
    assert_cu(vr_cu(pair.there, mem_free, opened), SUCCESS);
    assert_cu(vr_cu(pair.here, mem_free_async, first, 0), SUCCESS);
    const uint64_t again = take(pair.here, pair.ours, 8192);
    assert_int_equal(again, first);
    assert_int_equal(read_word(pair.here, again + 4096), 0);
    assert_int_equal(read_word(pair.there, import(&pair, again) + 4096), 0);
    close_pair(&pair);
    (void)state;
}

static void a_piece_is_imported_as_often_as_it_is_freed(void **state) {
    struct pair pair = open_pair("bytes=sparse");
    const uint64_t ours = take(pair.here, pair.ours, 512), first = import(&pair, ours);
    assert_int_equal(import(&pair, ours), first);
    check(&pair);
    assert_cu(vr_cu(pair.there, mem_free, first), SUCCESS);
    assert_int_equal(read_word(pair.there, first), 0);
    assert_cu(vr_cu(pair.there, mem_free, first), SUCCESS);
    assert_cu(vr_cu(pair.there, mem_free, first), INVALID_VALUE);
    close_pair(&pair);
    (void)state;
}

static void an_imported_pool_gives_no_memory(void **state) {
    struct pair pair = open_pair("bytes=sparse");
    struct vr_sim *there = vr_sim_of(pair.there);
    uint64_t address = 0, pool = 0;
    int descriptor = -1;
    assert_cu(vr_cu(pair.there, mem_alloc_from_pool_async, &address, 512, pair.theirs, 0), INVALID_VALUE);
    assert_cu(vr_cu(pair.there, device_set_mem_pool, 0, pair.theirs), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_pool_export_to_shareable_handle(there, &descriptor, pair.theirs, DESCRIPTOR, 0), INVALID_VALUE);
    assert_cu(vr_cu(pair.there, device_get_default_mem_pool, &pool, 0), SUCCESS);
    assert_cu(vr_sim_call_mem_pool_export_to_shareable_handle(there, &descriptor, pool, DESCRIPTOR, 0), INVALID_VALUE);
    assert_cu(vr_cu(pair.there, mem_alloc_async, &address, 512, 0), SUCCESS);
    unsigned char data[64] = "";
    assert_cu(vr_sim_call_mem_pool_export_pointer(there, data, address), INVALID_VALUE); // its pool cannot be exported
    close_pair(&pair);
    (void)state;
}

static void access_is_the_pools(void **state) {
    struct pair pair = open_pair("bytes=sparse,devices=2");
    const uint64_t opened = import(&pair, take(pair.here, pair.ours, 512));
    uint64_t other;
    assert_cu(vr_cu(pair.there, primary_ctx_retain, &other, 1), SUCCESS);
    assert_cu(vr_cu(pair.there, ctx_set_current, other), SUCCESS);
    assert_cu(vr_cu(pair.there, memset_d8, opened, 1, 8), INVALID_VALUE);
    const struct vr_cu_access_desc access = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 1}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    assert_cu(vr_cu(pair.there, mem_pool_set_access, pair.theirs, &access, 1), SUCCESS);
    assert_cu(vr_cu(pair.there, memset_d8, opened, 1, 8), SUCCESS);
    close_pair(&pair);
    (void)state;
}

// Damaged data is refused and changes nothing.
static void damaged_data_opens_nothing(void **state) {
    struct pair pair = open_pair("bytes=sparse");
    struct vr_sim *here = vr_sim_of(pair.here), *there = vr_sim_of(pair.there);
    unsigned char data[64];
    uint64_t none = 5;
    const uint64_t ours = take(pair.here, pair.ours, 512);
    assert_cu(vr_sim_call_mem_pool_export_pointer(here, data, ours + 8), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_pool_export_pointer(here, data, ours), SUCCESS);
    for (size_t bit = 0; bit < 24 * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_cu(vr_sim_call_mem_pool_import_pointer(there, &none, pair.theirs, data), INVALID_VALUE);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_cu(vr_sim_call_mem_pool_import_pointer(here, &none, pair.ours, data), INVALID_VALUE);
    assert_cu(vr_cu(pair.here, mem_free_async, ours, 0), SUCCESS);
    assert_cu(vr_sim_call_mem_pool_import_pointer(there, &none, pair.theirs, data), INVALID_VALUE); // it is gone
    assert_int_equal(none, 5);
    close_pair(&pair);
    (void)state;
}

static void descriptors_of_other_things_are_refused(void **state) {
    struct pair pair = open_pair("bytes=sparse");
    struct vr_sim *here = vr_sim_of(pair.here), *there = vr_sim_of(pair.there);
    uint64_t pool = 5, handle = 5;
    int descriptor;
    assert_cu(vr_sim_call_mem_pool_import_from_shareable_handle(there, &pool, (void *)(uintptr_t)0x7fffffff, DESCRIPTOR, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_pool_import_from_shareable_handle(there, &pool, NULL, VR_CU_MEM_HANDLE_TYPE_FABRIC, 0), NOT_SUPPORTED);
    assert_cu(vr_sim_call_mem_pool_export_to_shareable_handle(here, &descriptor, pair.ours, DESCRIPTOR, 0), SUCCESS);
    assert_cu(vr_cu(pair.there, mem_import_from_shareable_handle, &handle, (void *)(uintptr_t)descriptor, DESCRIPTOR), INVALID_VALUE);
    assert_int_equal(close(descriptor), 0);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_true(vr_sim_call_mem_pool_import_from_shareable_handle(there, &pool, (void *)(uintptr_t)pipes[0], DESCRIPTOR, 0) !=
                VR_CU_SUCCESS);
    assert_int_equal(close(pipes[0]) | close(pipes[1]), 0);
    assert_int_equal(pool & handle, 5);
    close_pair(&pair);
    (void)state;
}

static void ends_in_any_order(void **state) {
    for (size_t i = 0; i < VR_COUNT_OF(kept); i++) {
        struct pair pair = open_pair(kept[i]);
        const uint64_t opened = import(&pair, take(pair.here, pair.ours, 512));
        write_word(pair.there, opened, 9);
        vram_driver_destroy(pair.here);
        assert_int_equal(read_word(pair.there, opened), 9);
        assert_cu(vr_cu(pair.there, primary_ctx_release, 0), SUCCESS);
        assert_int_equal(vram_sim_live_objects(pair.there), 1); // the pool belongs to the driver
        assert_true(vr_sim_check(vr_sim_of(pair.there)));
        vram_driver_destroy(pair.there);
    }
    (void)state;
}

// Without bytes there is nothing to share.
static void a_simulator_without_bytes_refuses(void **state) {
    struct vram_driver *driver = open_text("devices=1");
    const struct vr_cu_pool_props props = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .handle_types = DESCRIPTOR, .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    uint64_t pool;
    int types = 7;
    assert_cu(vr_cu(driver, mem_pool_create, &pool, &props), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, device_get_attribute, &types, 119, 0), SUCCESS);
    assert_int_equal(types, 0);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_the_same_bytes),
        cmocka_unit_test(what_another_wrote_is_gone_with_the_piece),
        cmocka_unit_test(a_piece_is_imported_as_often_as_it_is_freed),
        cmocka_unit_test(an_imported_pool_gives_no_memory),
        cmocka_unit_test(access_is_the_pools),
        cmocka_unit_test(damaged_data_opens_nothing),
        cmocka_unit_test(descriptors_of_other_things_are_refused),
        cmocka_unit_test(ends_in_any_order),
        cmocka_unit_test(a_simulator_without_bytes_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
