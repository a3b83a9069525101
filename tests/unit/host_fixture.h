// host_fixture.h: shared by the tests of pinned host memory.
#ifndef HOST_FIXTURE_H
#define HOST_FIXTURE_H

#include "sim_fixture.h"

#include "vram/sim.h"
#include "vram/vram.h"

#define expect_ok(expression) assert_int_equal(expression, VRAM_OK)

struct fixture {
    struct vram_driver *sim;
    struct vram_host *host;
};

static inline void open_with(struct fixture *fixture, const struct vram_sim_options *sim, const char *conf) {
    static const struct vram_sim_options defaults = {.manual_completion = true};
    expect_ok(vram_sim_create(sim == NULL ? &defaults : sim, &fixture->sim));
    const struct vram_host_create_info info = {.driver = fixture->sim, .conf = conf};
    expect_ok(vram_host_create(&info, &fixture->host, NULL));
}

static inline void check(const struct fixture *fixture) {
    struct vram_error error = {.message = ""};
    const enum vram_status status = vram_host_check(fixture->host, &error);
    assert_string_equal(error.message, "");
    expect_ok(status);
}

// Destroys the allocator and checks that nothing is left in the driver; streams end with the context that the allocator held last.
static inline void close_with(struct fixture *fixture) {
    check(fixture);
    vram_host_destroy(fixture->host);
    assert_int_equal(vram_sim_live_objects(fixture->sim), 0);
    vram_driver_destroy(fixture->sim);
}

static inline void *get_on(const struct fixture *fixture, uint64_t size, uint64_t stream) {
    void *pointer = NULL;
    expect_ok(vram_host_malloc(fixture->host, size, stream, &pointer));
    assert_non_null(pointer);
    check(fixture);
    return pointer;
}

static inline void *get(const struct fixture *fixture, uint64_t size) { return get_on(fixture, size, 0); }

static inline void put(const struct fixture *fixture, void *pointer) {
    expect_ok(vram_host_free(fixture->host, pointer));
    check(fixture);
}

static inline struct vram_host_stats stats_of(const struct fixture *fixture) {
    struct vram_host_stats stats;
    vram_get_host_stats(fixture->host, &stats);
    return stats;
}

static inline uint64_t new_stream(const struct fixture *fixture, uint32_t device) {
    uint64_t stream = 0;
    expect_ok(vram_sim_stream_create(fixture->sim, device, &stream));
    return stream;
}

static inline uint64_t calls(const struct fixture *fixture, const char *name) { return vram_sim_calls(fixture->sim, name); }

static inline void open_with_fault(struct fixture *fixture, struct vram_driver **fault, const char *conf) {
    expect_ok(vram_sim_create(&(struct vram_sim_options){.manual_completion = true}, &fixture->sim));
    expect_ok(vram_driver_fault(fixture->sim, fault));
    const struct vram_host_create_info info = {.driver = *fault, .conf = conf};
    expect_ok(vram_host_create(&info, &fixture->host, NULL));
}

static inline void close_with_fault(struct fixture *fixture, struct vram_driver *fault) {
    check(fixture);
    vram_host_destroy(fixture->host);
    assert_int_equal(vram_sim_live_objects(fixture->sim), 0);
    vram_driver_destroy(fault);
    vram_driver_destroy(fixture->sim);
}

#endif
