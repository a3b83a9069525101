// Tests a watching driver: observers are notified before memory is unmapped, for all kinds of segments, so registrations
// never become stale.
#include "vram/network.h"
#include "vram/sim.h"

#include <string.h>
#include <unistd.h>

#include "support/expect.h"
#include "vram/sleep.h"

enum { MOST = 4096 };

// A network card's registrations, as a library keeps them.
struct card {
    struct vram_driver *sim, *driver;
    struct vram_allocator *allocator;
    struct vram_mapping known[MOST];
    size_t count;
    uint64_t newest, told_mapped, told_unmapping;
    uint64_t refuse; // this many of the next cuMemUnmap calls fail
};

static void mapped(const struct vram_mapping *mapping, void *user) {
    struct card *card = user;
    assert_true(mapping->generation > card->newest && mapping->size_bytes > 0);
    card->newest = mapping->generation;
    card->told_mapped++;
    for (size_t i = 0; i < card->count; i++)
        assert_true(mapping->address >= card->known[i].address + card->known[i].size_bytes ||
                    card->known[i].address >= mapping->address + mapping->size_bytes);
    assert_true(card->count < MOST);
    card->known[card->count++] = *mapping;
}

static void unmapping(const struct vram_mapping *mapping, void *user) {
    struct card *card = user;
    card->told_unmapping++;
    struct vram_mapping still;
    size_t count;
    // The mapping still exists, so its user can examine it.
    assert_int_equal(vram_watch_mappings(card->driver, mapping->address, mapping->size_bytes, &still, 1, &count), VRAM_OK);
    assert_true(count == 1 && still.generation == mapping->generation);
    for (size_t i = 0; i < card->count; i++) {
        if (card->known[i].generation != mapping->generation) continue;
        assert_int_equal(card->known[i].address, mapping->address);
        card->known[i] = card->known[--card->count];
        return;
    }
    fail_msg("an unknown mapping goes");
}

static const struct vram_mapping_observer *observer_of(struct card *card) {
    static struct vram_mapping_observer observer;
    observer = (struct vram_mapping_observer){.mapped = mapped, .unmapping = unmapping, .user = card};
    return &observer;
}

static void open_card(struct card *card, const char *sim, const char *conf) {
    struct vram_sim_options options;
    *card = (struct card){.count = 0};
    assert_int_equal(vram_sim_parse(sim, &options, NULL), VRAM_OK);
    assert_int_equal(vram_sim_create(&options, &card->sim), VRAM_OK);
    assert_int_equal(vram_driver_watch(card->sim, &card->driver), VRAM_OK);
    assert_int_equal(vram_create(&(struct vram_create_info){.driver = card->driver, .conf = conf}, &card->allocator, NULL), VRAM_OK);
    assert_int_equal(vram_watch_add(card->driver, observer_of(card)), VRAM_OK);
}

static void close_card(struct card *card) {
    vram_destroy(card->allocator);
    assert_int_equal(card->count, 0);
    assert_int_equal(card->told_mapped, card->told_unmapping);
    assert_int_equal(vram_watch_remove(card->driver, observer_of(card)), VRAM_OK);
    assert_int_equal(vram_watch_remove(card->driver, observer_of(card)), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(card->driver);
    assert_int_equal(vram_sim_live_objects(card->sim), 0);
    vram_driver_destroy(card->sim);
}

static const struct vram_mapping *known_at(const struct card *card, uint64_t address) {
    for (size_t i = 0; i < card->count; i++)
        if (address - card->known[i].address < card->known[i].size_bytes) return &card->known[i];
    return NULL;
}

// Checks that every byte of a block is registered, with the driver's generation.
static void expect_registered(struct card *card, uint64_t address, uint64_t size_bytes) {
    struct vram_mapping found[256];
    size_t count;
    assert_int_equal(vram_watch_mappings(card->driver, address, size_bytes, found, 256, &count), VRAM_OK);
    assert_true(count >= 1 && count <= 256);
    for (size_t i = 0; i < count; i++) {
        const struct vram_mapping *known = known_at(card, found[i].address);
        assert_non_null(known);
        assert_int_equal(known->generation, found[i].generation);
    }
    assert_true(found[0].address <= address && found[count - 1].address + found[count - 1].size_bytes >= address + size_bytes);
}

static uint64_t random_of(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void play(const char *conf, uint64_t seed) {
    enum { BLOCKS = 40, STEPS = 1500 };
    struct card *card = test_malloc(sizeof *card);
    uint64_t address[BLOCKS] = {0}, size[BLOCKS], state = seed;
    open_card(card, "memory=1GiB,network", conf);
    for (int step = 0; step < STEPS; step++) {
        const size_t at = random_of(&state) % BLOCKS;
        if (address[at] != 0) {
            expect_registered(card, address[at], size[at]);
            assert_int_equal(vram_free(card->allocator, address[at]), VRAM_OK);
            address[at] = 0;
        } else {
            const uint64_t most = random_of(&state) % 2 != 0 ? 60u << 20 : 1u << 18;
            size[at] = 1 + random_of(&state) % most;
            const enum vram_status status = vram_malloc(card->allocator, 0, size[at], random_of(&state) % 2, &address[at]);
            assert_true(status == VRAM_OK || status == VRAM_OUT_OF_MEMORY);
        }
        if (random_of(&state) % 50 == 0) assert_int_equal(vram_empty_cache(card->allocator), VRAM_OK);
        assert_true(known_at(card, UINT64_MAX) == NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (address[i] != 0) expect_registered(card, address[i], size[i]);
    assert_true(card->told_unmapping > 0);
    close_card(card);
    test_free(card);
}

static void test_every_kind_of_segment(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "paged:True", "sleepable:True", "max_split_size_mb:30"};
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) play(confs[i], seed);
}

static void test_sleep_and_wake_are_another_generation(void **state) {
    (void)state;
    struct card *card = test_malloc(sizeof *card);
    open_card(card, "memory=1GiB", "");
    struct vram_pool *pool;
    uint64_t address;
    const struct vram_sleep_choice choice = {.tag = "weights"};
    struct vram_mapping before, after;
    size_t count;
    assert_int_equal(vram_pool_create(card->allocator, 0, &(struct vram_pool_options){.tag = "weights"}, &pool), VRAM_OK);
    assert_int_equal(vram_pool_malloc(pool, 8 << 20, 0, &address), VRAM_OK);
    assert_int_equal(vram_watch_mappings(card->driver, address, 8 << 20, &before, 1, &count), VRAM_OK);
    assert_int_equal(vram_sleep(card->allocator, 0, &choice, 1, NULL, NULL), VRAM_OK);
    assert_int_equal(vram_watch_mappings(card->driver, address, 8 << 20, &after, 1, &count), VRAM_INVALID_POINTER);
    assert_null(known_at(card, address));
    assert_int_equal(vram_wake(card->allocator, 0, &choice, 1, NULL, NULL), VRAM_OK);
    assert_int_equal(vram_watch_mappings(card->driver, address, 8 << 20, &after, 1, &count), VRAM_OK);
    assert_true(after.address == before.address && after.generation > before.generation);
    assert_int_equal(vram_free(card->allocator, address), VRAM_OK);
    vram_pool_release(pool);
    close_card(card);
    test_free(card);
}

static void test_who_comes_late_is_told_of_what_is_there(void **state) {
    (void)state;
    struct card *card = test_malloc(sizeof *card), *late = test_malloc(sizeof *late);
    uint64_t address;
    open_card(card, "memory=1GiB", "expandable_segments:True");
    assert_int_equal(vram_malloc(card->allocator, 0, 100 << 20, 0, &address), VRAM_OK);
    *late = (struct card){.driver = card->driver};
    assert_int_equal(vram_watch_add(card->driver, observer_of(late)), VRAM_OK);
    assert_int_equal(late->count, card->count);
    assert_true(late->count == 5);
    assert_int_equal(vram_free(card->allocator, address), VRAM_OK);
    assert_int_equal(vram_empty_cache(card->allocator), VRAM_OK);
    assert_int_equal(late->count, 0);
    assert_int_equal(vram_watch_remove(card->driver, observer_of(late)), VRAM_OK);
    close_card(card);
    test_free(card);
    test_free(late);
}

// The driver refuses to unmap: the memory is announced as mapped again, and the old registration is recognized as stale.
static void test_a_refused_unmap_is_a_new_generation(void **state) {
    (void)state;
    struct card *card = test_malloc(sizeof *card);
    struct vram_driver *sim, *fault, *watch;
    struct vram_sim_options options;
    struct vram_mapping before;
    size_t count;
    uint64_t address;
    assert_int_equal(vram_sim_parse("memory=1GiB", &options, NULL), VRAM_OK);
    assert_int_equal(vram_sim_create(&options, &sim), VRAM_OK);
    assert_int_equal(vram_driver_fault(sim, &fault), VRAM_OK);
    assert_int_equal(vram_driver_watch(fault, &watch), VRAM_OK);
    *card = (struct card){.driver = watch, .sim = sim};
    assert_int_equal(vram_create(&(struct vram_create_info){.driver = watch, .conf = ""}, &card->allocator, NULL), VRAM_OK);
    assert_int_equal(vram_watch_add(watch, observer_of(card)), VRAM_OK);
    assert_int_equal(vram_malloc(card->allocator, 0, 30 << 20, 0, &address), VRAM_OK);
    assert_int_equal(vram_watch_mappings(watch, address, 30 << 20, &before, 1, &count), VRAM_OK);
    assert_int_equal(vram_free(card->allocator, address), VRAM_OK);
    assert_int_equal(vram_driver_fault_set(fault, "cuMemFree", 1, 999), VRAM_OK);
    assert_int_equal(vram_empty_cache(card->allocator), VRAM_DRIVER);
    // Announced as mapped again, and gone after the allocator's second attempt.
    assert_true(card->told_mapped == 2 && card->told_unmapping == 2 && card->newest > before.generation);
    assert_int_equal(vram_watch_mappings(watch, address, 1, NULL, 0, &count), VRAM_INVALID_POINTER);
    vram_destroy(card->allocator);
    assert_int_equal(card->count, 0);
    vram_driver_destroy(watch);
    vram_driver_destroy(fault);
    vram_driver_destroy(sim);
    test_free(card);
}

static void test_dma_buffers(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "paged:True"};
    struct card *card = test_malloc(sizeof *card);
    struct vram_error error;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        uint64_t address;
        struct vram_dma_buf buffer;
        open_card(card, "device=h100,network", confs[i]);
        assert_int_equal(vram_malloc(card->allocator, 0, 1000, 0, &address), VRAM_OK);
        assert_int_equal(vram_malloc(card->allocator, 0, 50 << 20, 0, &address), VRAM_OK);
        assert_int_equal(vram_watch_dma_buf(card->driver, address + 1000, (50 << 20) - 1000, &buffer, &error), VRAM_OK);
        assert_true(buffer.descriptor >= 0 && buffer.offset == (address + 1000) % 4096 && buffer.size_bytes % 4096 == 0);
        assert_true(buffer.size_bytes >= buffer.offset + (50 << 20) - 1000 && buffer.generations == card->newest);
        assert_int_equal(close(buffer.descriptor), 0);
        assert_int_equal(vram_watch_dma_buf(card->driver, address, (uint64_t)1 << 40, &buffer, &error), VRAM_INVALID_POINTER);
        close_card(card);
    }
    uint64_t address;
    struct vram_dma_buf untouched = {.descriptor = 7};
    open_card(card, "device=h100", "");
    assert_int_equal(vram_malloc(card->allocator, 0, 1000, 0, &address), VRAM_OK);
    assert_int_equal(vram_watch_dma_buf(card->driver, address, 1000, &untouched, &error), VRAM_UNSUPPORTED);
    assert_true(untouched.descriptor == 7 && strstr(error.message, "DMA") != NULL);
    close_card(card);
    test_free(card);
}

// Blocks of one handle, in any kind of segment, and their handles for other machines.
static void test_one_handle_and_the_fabric(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "paged:True"};
    struct card *card = test_malloc(sizeof *card);
    struct vram_error error;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        struct vram_pool *pool;
        struct vram_pool_options options = {.allocate = NULL};
        struct vram_mapping one, other;
        struct vram_fabric_handle handle;
        size_t count;
        uint64_t address, small, imported;
        open_card(card, "device=h100,network,backed", confs[i]);
        vram_watch_one_handle(card->driver, &options);
        assert_int_equal(vram_pool_create(card->allocator, 0, &options, &pool), VRAM_OK);
        assert_int_equal(vram_pool_malloc(pool, 50 << 20, 0, &address), VRAM_OK);
        assert_int_equal(vram_pool_malloc(pool, 1000, 0, &small), VRAM_OK);
        assert_int_equal(vram_watch_mappings(card->driver, address, 50 << 20, &one, 1, &count), VRAM_OK);
        assert_true(count == 1 && one.physical);
        assert_int_equal(vram_watch_fabric(card->driver, address + 4096, &handle, &error), VRAM_OK);
        assert_true(handle.offset == address + 4096 - one.address && handle.allocation_bytes == one.size_bytes);
        // The same bytes at another address, as in another process or machine.
        assert_int_equal(vram_fabric_import(card->driver, 0, &handle, &imported, &error), VRAM_OK);
        assert_true(imported != address + 4096);
        assert_int_equal(vram_watch_mappings(card->driver, imported, 1, &other, 1, &count), VRAM_OK);
        assert_true(other.generation > one.generation && other.size_bytes == one.size_bytes);
        memset((void *)(uintptr_t)(address + 4096), 42, 100);
        assert_int_equal(((unsigned char *)(uintptr_t)imported)[99], 42);
        assert_int_equal(vram_fabric_release(card->driver, &handle, imported), VRAM_OK);
        assert_int_equal(vram_fabric_release(card->driver, &handle, imported), VRAM_INVALID_POINTER);
        assert_int_equal(vram_free(card->allocator, address), VRAM_OK);
        assert_int_equal(vram_free(card->allocator, small), VRAM_OK);
        vram_pool_release(pool);
        memset(handle.bytes, 1, sizeof handle.bytes);
        assert_int_not_equal(vram_fabric_import(card->driver, 0, &handle, &imported, &error), VRAM_OK);
        close_card(card);
    }
    uint64_t address;
    struct vram_fabric_handle none;
    open_card(card, "device=h100,network,backed", "");
    assert_int_equal(vram_malloc(card->allocator, 0, 1000, 0, &address), VRAM_OK);
    assert_int_equal(vram_watch_fabric(card->driver, address, &none, &error), VRAM_UNSUPPORTED);
    assert_int_equal(vram_watch_fabric(card->driver, address + ((uint64_t)1 << 40), &none, &error), VRAM_INVALID_POINTER);
    close_card(card);
    open_card(card, "device=h100,backed", "expandable_segments:True");
    assert_int_equal(vram_malloc(card->allocator, 0, 1000, 0, &address), VRAM_OK);
    assert_int_equal(vram_watch_fabric(card->driver, address, &none, &error), VRAM_UNSUPPORTED);
    assert_non_null(strstr(error.message, "fabric"));
    close_card(card);
    test_free(card);
}

static void test_other_drivers_are_refused(void **state) {
    (void)state;
    struct vram_driver *sim;
    struct vram_mapping_observer observer = {.mapped = mapped};
    size_t count;
    assert_int_equal(vram_sim_create(NULL, &sim), VRAM_OK);
    assert_int_equal(vram_watch_add(sim, &observer), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_watch_remove(sim, &observer), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_watch_mappings(sim, 1, 1, NULL, 0, &count), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(sim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_segment),
        cmocka_unit_test(test_sleep_and_wake_are_another_generation),
        cmocka_unit_test(test_who_comes_late_is_told_of_what_is_there),
        cmocka_unit_test(test_a_refused_unmap_is_a_new_generation),
        cmocka_unit_test(test_dma_buffers),
        cmocka_unit_test(test_one_handle_and_the_fabric),
        cmocka_unit_test(test_other_drivers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
