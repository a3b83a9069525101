// Seeded faults in C (vram/verify.h): each is found once with its kind and both stacks, and its corrected twin causes no report.
#include "verify/seeded.h"

#include <stdio.h>
#include <string.h>

struct found {
    size_t count;
    enum vram_fault_kind kind;
    char text[8192];
};

static void note_fault(const struct vram_fault *fault, void *user) {
    struct found *found = user;
    if (found->count++ == 0) found->kind = fault->kind;
    const size_t length = strlen(found->text);
    (void)snprintf(found->text + length, sizeof found->text - length, "%s", fault->text);
}

VR_NOINLINE uint64_t allocate_buffer(struct vr_world *world, uint64_t bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, 0, bytes, stream, &address));
    return address;
}

VR_NOINLINE uint64_t allocate_in_pool(struct vram_pool *pool, uint64_t bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, bytes, stream, &address));
    return address;
}

VR_NOINLINE enum vram_status free_buffer(struct vr_world *world, uint64_t address) {
    const enum vram_status status = vram_free(world->allocator, address);
    VR_NO_TAIL_CALL();
    return status;
}

VR_NOINLINE enum vram_status free_once_more(struct vr_world *world, uint64_t address) {
    const enum vram_status status = vram_free(world->allocator, address);
    VR_NO_TAIL_CALL();
    return status;
}

VR_NOINLINE void verify_all(struct vr_world *world) {
    EXPECT_OK(vram_verify(world->allocator, NULL));
    VR_NO_TAIL_CALL();
}

void write_bytes(struct vr_world *world, uint64_t address, uint64_t bytes, uint64_t stream) {
    assert_int_equal(vr_cu(world->sim, memset_d8_async, address, 0x11, bytes, stream), VR_CU_SUCCESS);
}

static void run_seeded(const struct seeded *seeded, bool wrong, struct found *found) {
    char conf[256];
    (void)snprintf(conf, sizeof conf, "verify:True%s%s", seeded->conf == NULL ? "" : ",", seeded->conf == NULL ? "" : seeded->conf);
    const struct vr_world_options options = {
        .sim = {.device_count = 2, .memory_bytes = 4 * VR_GIB, .bytes = VRAM_SIM_BYTES_ALL}, .conf = conf, .without_record = true};
    struct vr_world world;
    EXPECT_OK(vr_world_open(&world, &options));
    EXPECT_OK(vram_set_fault_handler(world.allocator, note_fault, found));
    seeded->run(&world, wrong);
    assert_int_equal(vr_world_close(&world), 0);
}

// The report names each function, one after another.
static void expect_stacks(const struct seeded *seeded, const char *text) {
    for (size_t i = 0; i < VR_COUNT_OF(seeded->stacks) && seeded->stacks[i] != NULL; i++) {
        const char *at = strstr(text, seeded->stacks[i]);
        if (at == NULL) fail_msg("%s: no stack with %s in the report:\n%s", seeded->name, seeded->stacks[i], text);
        text = at + 1;
    }
}

static void run_rows(const struct seeded *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        static struct found found;
        found = (struct found){.count = 0};
        run_seeded(&rows[i], false, &found);
        if (found.count != 0) fail_msg("%s, corrected: %zu false reports:\n%s", rows[i].name, found.count, found.text);
        run_seeded(&rows[i], true, &found);
        if (found.count != 1 || found.kind != rows[i].kind)
            fail_msg("%s: %zu reports instead of one %s:\n%s", rows[i].name, found.count, vram_fault_name(rows[i].kind), found.text);
        expect_stacks(&rows[i], found.text);
    }
}

static void wrong_writes_are_found(void **state) {
    (void)state;
    run_rows(wrong_writes, wrong_write_count);
}

static void wrong_frees_are_found(void **state) {
    (void)state;
    run_rows(wrong_frees, wrong_free_count);
}

static void late_uses_are_found(void **state) {
    (void)state;
    run_rows(late_uses, late_use_count);
}

static void there_are_forty(void **state) {
    (void)state;
    assert_int_equal(wrong_write_count + wrong_free_count + late_use_count, 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_writes_are_found),
        cmocka_unit_test(wrong_frees_are_found),
        cmocka_unit_test(late_uses_are_found),
        cmocka_unit_test(there_are_forty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
