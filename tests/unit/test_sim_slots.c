// Tests the tables behind handles with random objects: a handle finds its object until that is destroyed, and never another one.
#include "sim/sim_slots.h"
#include "support/random.h"
#include "unit/sim_fixture.h"

#define OBJECTS 300

struct object {
    struct vr_sim_slot slot;
    uint64_t value;
};

static void handles_find_their_own_object(void **state) {
    struct vr_sim_slots slots = {.item_bytes = sizeof(struct object), .tag = VR_SIM_SLOT_TAG_MOST};
    static uint64_t handles[OBJECTS], gone[OBJECTS];
    uint64_t random = 3;
    for (uint64_t step = 1; step < 20000; step++) {
        const size_t at = (size_t)vr_random_below(&random, OBJECTS);
        struct object *object = vr_sim_slots_find(&slots, handles[at]);
        if (handles[at] == 0) {
            uint32_t index = UINT32_MAX;
            assert_int_equal(vr_sim_slots_take(&slots, &index), VRAM_OK);
            handles[at] = vr_sim_slots_handle(&slots, index);
            assert_int_equal(handles[at] % 16, 0);        // programs keep marks in a pointer's low bits
            assert_true(handles[at] < (uint64_t)1 << 47); // and store it in the bits of an address
            for (uint64_t bit = 1; bit < 16; bit++) assert_null(vr_sim_slots_find(&slots, handles[at] | bit));
            object = vr_sim_slots_find(&slots, handles[at]);
            assert_non_null(object);
            assert_int_equal(object->value, 0); // nothing is left of the previous object
            object->value = at;
        } else {
            assert_int_equal(object->value, at);
            vr_sim_slots_give(&slots, vr_sim_slots_index(&slots, object));
            gone[at] = handles[at];
            handles[at] = 0;
        }
        if (gone[at] != 0) assert_null(vr_sim_slots_find(&slots, gone[at]));
        if (step % 64 == 0) assert_true(vr_sim_slots_check(&slots));
    }
    assert_true(vr_sim_slots_check(&slots));
    slots.live++;
    assert_false(vr_sim_slots_check(&slots));
    free(slots.items);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(handles_find_their_own_object)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
