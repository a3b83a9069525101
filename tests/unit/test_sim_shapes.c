// Tests copies in two and three dimensions, arrays, textures, memsets of elements and managed memory of the simulated driver.
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"
#include "sim/sim.h"
#include "sim_fixture.h"
#include "vram/sim.h"

enum { FLOAT = 0x20, BYTES = 0x01, LAYERED = 1 };

static struct vram_driver *open_backed(void) {
    return open_sim(&(struct vram_sim_options){.device_count = 2, .memory_bytes = 64 * VR_MIB, .backed = true});
}

static struct vr_cu_memcpy_side memory(const void *address, uint64_t pitch, uint64_t rows) {
    return (struct vr_cu_memcpy_side){
        .memory_type = VR_CU_MEMORY_TYPE_UNIFIED, .device = (uint64_t)(uintptr_t)address, .pitch_bytes = pitch, .rows = rows};
}

static void copies_have_shapes(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    uint8_t host[64], back[64] = {0};
    uint64_t device;
    for (int i = 0; i < 64; i++) host[i] = (uint8_t)i;
    assert_cu(vr_cu(driver, mem_alloc, &device, 4096), SUCCESS);
    // Two planes of two rows of three bytes, from 4 by 4 by 4.
    struct vr_cu_memcpy3d copy = {
        .from = memory(host, 4, 4), .to = memory((const void *)(uintptr_t)device, 8, 4), .width_bytes = 3, .rows = 2, .planes = 2};
    copy.from.x_bytes = copy.from.y = copy.from.z = 1;
    assert_cu(vr_sim_call_memcpy_3d(sim, &copy), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, back, device, 64), SUCCESS);
    assert_int_equal(back[0], 16 + 4 + 1);
    assert_int_equal(back[2], 16 + 4 + 3);
    assert_int_equal(back[8], 16 + 8 + 1);
    assert_int_equal(back[32], 32 + 4 + 1);
    struct vr_cu_memcpy2d flat = {.width_bytes = 3, .rows = 2};
    flat.from = (struct vr_cu_memcpy2d_side){.memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = device, .pitch_bytes = 8};
    flat.to = (struct vr_cu_memcpy2d_side){.memory_type = VR_CU_MEMORY_TYPE_HOST, .host = (uint64_t)(uintptr_t)back, .pitch_bytes = 3};
    assert_cu(vr_sim_call_memcpy_2d(sim, &flat), SUCCESS);
    assert_int_equal(back[3], 16 + 8 + 1);
    flat.from.pitch_bytes = 2;
    assert_cu(vr_sim_call_memcpy_2d_async(sim, &flat, 0), INVALID_VALUE);
    copy.to.rows = 1; // planes would overlap
    assert_cu(vr_sim_call_memcpy_3d_async(sim, &copy, 0), INVALID_VALUE);
    copy.to.rows = 4000;
    assert_cu(vr_sim_call_memcpy_3d(sim, &copy), INVALID_VALUE); // exceeds the allocation
    copy.to.pitch_bytes = UINT64_MAX;
    assert_cu(vr_sim_call_memcpy_3d(sim, &copy), INVALID_VALUE);
    assert_cu(vr_sim_call_memcpy_3d(sim, NULL), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void sets_have_elements(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    uint32_t back[8];
    uint64_t device;
    assert_cu(vr_cu(driver, mem_alloc, &device, 4096), SUCCESS);
    assert_cu(vr_sim_call_memset_d32(sim, device, 0x01020304, 8), SUCCESS);
    assert_cu(vr_sim_call_memset_d2d16_async(sim, device, 8, 0x0a0b, 2, 3, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, back, device, sizeof back), SUCCESS);
    assert_int_equal(back[0], 0x0a0b0a0b);
    assert_int_equal(back[1], 0x01020304);
    assert_int_equal(back[4], 0x0a0b0a0b);
    assert_int_equal(back[6], 0x01020304);
    assert_cu(vr_sim_call_memset_d32(sim, device + 2, 0, 1), INVALID_VALUE); // not aligned
    assert_cu(vr_sim_call_memset_d2d32(sim, device, 4, 0, 2, 2), INVALID_VALUE);
    assert_cu(vr_sim_call_memset_d32(sim, device, 0, UINT64_MAX / 2), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void arrays_hold_bytes(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    const struct vr_cu_array3d_descriptor shape = {.width = 4, .height = 3, .format = FLOAT, .channels = 1};
    const uint64_t used = vram_sim_memory_used(driver, 0);
    uint32_t host[12], back[12] = {0};
    uint64_t array, other;
    for (uint32_t i = 0; i < 12; i++) host[i] = i;
    assert_cu(vr_sim_call_array_3d_create(sim, &array, &shape), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + 3 * 512);
    struct vr_cu_array3d_descriptor found;
    assert_cu(vr_sim_call_array_3d_get_descriptor(sim, &found, array), SUCCESS);
    assert_int_equal(found.height, 3);
    struct vr_cu_memcpy3d in = {.from = memory(host, 16, 3), .width_bytes = 16, .rows = 3, .planes = 1};
    in.to = (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_ARRAY, .array = array};
    assert_cu(vr_sim_call_memcpy_3d(sim, &in), SUCCESS);
    struct vr_cu_memcpy3d out = {.from = in.to, .to = memory(back, 8, 2), .width_bytes = 8, .rows = 2, .planes = 1};
    out.from.x_bytes = 8;
    out.from.y = 1;
    assert_cu(vr_sim_call_memcpy_3d(sim, &out), SUCCESS);
    assert_int_equal(back[0], 6);
    assert_int_equal(back[3], 11);
    out.from.x_bytes = 12;
    assert_cu(vr_sim_call_memcpy_3d(sim, &out), INVALID_VALUE); // beyond its row
    assert_cu(vr_sim_call_memcpy_atoh(sim, back, array, 4, 8), SUCCESS);
    assert_int_equal(back[1], 2);
    uint64_t graph, node, exec, context;
    assert_cu(vr_cu(driver, ctx_get_current, &context), SUCCESS);
    assert_cu(vr_cu(driver, graph_create, &graph, 0), SUCCESS);
    out.from.x_bytes = 0;
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &out, context), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, 0), SUCCESS);
    assert_int_equal(back[0], 4);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_true(vr_sim_check(sim));
    assert_cu(vr_sim_call_array_destroy(sim, array), SUCCESS);
    assert_cu(vr_sim_call_array_destroy(sim, array), INVALID_HANDLE);
    assert_cu(vr_sim_call_memcpy_3d(sim, &in), INVALID_HANDLE);
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    struct vr_cu_array3d_descriptor wrong = shape;
    wrong.channels = 3;
    assert_cu(vr_sim_call_array_3d_create(sim, &other, &wrong), INVALID_VALUE);
    wrong = shape;
    wrong.width = wrong.height = wrong.depth = 131072;
    assert_cu(vr_sim_call_array_3d_create(sim, &other, &wrong), OUT_OF_MEMORY);
    vram_driver_destroy(driver);
}

static void mipmaps_have_levels(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    const struct vr_cu_array3d_descriptor shape = {.width = 1024, .height = 512, .format = BYTES, .channels = 4};
    const uint64_t used = vram_sim_memory_used(driver, 0);
    struct vr_cu_array3d_descriptor found;
    uint64_t mipmap, level;
    assert_cu(vr_sim_call_mipmapped_array_create(sim, &mipmap, &shape, 99), SUCCESS);
    assert_cu(vr_sim_call_mipmapped_array_get_level(sim, &level, mipmap, 10), SUCCESS);
    assert_cu(vr_sim_call_array_3d_get_descriptor(sim, &found, level), SUCCESS);
    assert_int_equal(found.width, 1);
    assert_int_equal(found.height, 1);
    assert_int_equal(found.depth, 0);
    assert_cu(vr_sim_call_mipmapped_array_get_level(sim, &level, mipmap, 11), INVALID_VALUE);
    assert_cu(vr_sim_call_array_destroy(sim, level), INVALID_VALUE);
    assert_cu(vr_sim_call_array_destroy(sim, mipmap), INVALID_HANDLE);
    struct vr_cu_array_requirements needs;
    assert_cu(vr_sim_call_mipmapped_array_get_memory_requirements(sim, &needs, mipmap, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + needs.size_bytes);
    assert_cu(vr_sim_call_mipmapped_array_destroy(sim, mipmap), SUCCESS);
    assert_cu(vr_sim_call_array_3d_get_descriptor(sim, &found, level), INVALID_HANDLE);
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    vram_driver_destroy(driver);
}

static void textures_keep_what_they_are(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    const struct vr_cu_array_descriptor shape = {.width = 4, .height = 4, .format = FLOAT, .channels = 2};
    uint64_t array, texture, surface;
    assert_cu(vr_sim_call_array_create(sim, &array, &shape), SUCCESS);
    const struct vr_cu_resource resource = {.kind = VR_CU_RESOURCE_ARRAY, .array = array};
    const struct vr_cu_texture settings = {.words = {1, 2, 3, 4}};
    struct vr_cu_resource found;
    struct vr_cu_texture kept;
    struct vr_cu_resource_view view;
    assert_cu(vr_sim_call_tex_object_create(sim, &texture, &resource, &settings, NULL), SUCCESS);
    assert_cu(vr_sim_call_tex_object_get_resource_desc(sim, &found, texture), SUCCESS);
    assert_int_equal(found.array, array);
    assert_cu(vr_sim_call_tex_object_get_texture_desc(sim, &kept, texture), SUCCESS);
    assert_memory_equal(&kept, &settings, sizeof kept);
    assert_cu(vr_sim_call_tex_object_get_resource_view_desc(sim, &view, texture), INVALID_VALUE);
    assert_cu(vr_sim_call_surf_object_get_resource_desc(sim, &found, texture), INVALID_VALUE);
    assert_cu(vr_sim_call_surf_object_create(sim, &surface, &resource), SUCCESS);
    assert_cu(vr_sim_call_surf_object_destroy(sim, surface), SUCCESS);
    const struct vr_cu_resource nowhere = {.kind = VR_CU_RESOURCE_LINEAR, .array = 64};
    assert_cu(vr_sim_call_tex_object_create(sim, &surface, &nowhere, &settings, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_tex_object_destroy(sim, texture), SUCCESS);
    vram_driver_destroy(driver);
}

static int said(struct vr_sim *sim, uint64_t address, int attribute) {
    int value = 77;
    assert_cu(vr_sim_call_mem_range_get_attribute(sim, &value, sizeof value, attribute, address, 1), SUCCESS);
    return value;
}

// Pages count on the device they were prefetched to, and make room for what cannot move.
static void managed_memory_moves(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    const uint64_t used = vram_sim_memory_used(driver, 0);
    uint64_t managed, device, much;
    assert_cu(vr_sim_call_mem_alloc_managed(sim, &managed, 100 * VR_MIB, 1), SUCCESS); // more than a device has
    memset((void *)(uintptr_t)managed, 7, VR_MIB);                                     // the host can access it too
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed, 10 * VR_MIB, 0, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + 10 * VR_MIB);
    assert_int_equal(said(sim, managed, 4), 0);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed, 4 * VR_MIB, 1, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + 6 * VR_MIB);
    assert_int_equal(vram_sim_memory_used(driver, 1), 4 * VR_MIB);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed, 100 * VR_MIB, 0, 0), SUCCESS); // as much as fits
    assert_true(vr_sim_check(sim));
    assert_cu(vr_cu(driver, mem_alloc, &device, 60 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &much, 60 * VR_MIB), OUT_OF_MEMORY);
    assert_true(vr_sim_check(sim));
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed, 100 * VR_MIB, -1, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + 60 * VR_MIB);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed + 99 * VR_MIB, 2 * VR_MIB, 0, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, device, VR_MIB, 0, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_prefetch_async(sim, managed, VR_MIB, 9, 0), INVALID_DEVICE);
    assert_cu(vr_cu(driver, mem_free, managed + 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_free, managed), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, managed), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void advice_is_kept(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t managed;
    int32_t list[3];
    assert_cu(vr_sim_call_mem_alloc_managed(sim, &managed, VR_MIB, 1), SUCCESS);
    assert_int_equal(said(sim, managed, 2), -2);
    assert_cu(vr_sim_call_mem_advise(sim, managed, VR_MIB, 1, 0), SUCCESS);
    assert_cu(vr_sim_call_mem_advise(sim, managed, VR_MIB, 3, -1), SUCCESS);
    assert_cu(vr_sim_call_mem_advise(sim, managed, VR_MIB, 5, 1), SUCCESS);
    assert_int_equal(said(sim, managed, 1), 1);
    assert_int_equal(said(sim, managed, 2), -1);
    assert_cu(vr_sim_call_mem_range_get_attribute(sim, list, sizeof list, 3, managed, VR_MIB), SUCCESS);
    assert_int_equal(list[0], 1);
    assert_int_equal(list[1], -2);
    assert_cu(vr_sim_call_mem_advise(sim, managed, VR_MIB, 2, 0), SUCCESS);
    assert_int_equal(said(sim, managed, 1), 0);
    assert_cu(vr_sim_call_mem_advise(sim, managed, VR_MIB, 7, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_advise(sim, managed, 2 * VR_MIB, 1, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_range_get_attribute(sim, list, 2, 3, managed, VR_MIB), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_range_get_attribute(sim, list, 4, 99, managed, VR_MIB), INVALID_VALUE);
    vram_driver_destroy(driver);
}

// Several copies in one call run in order, and the failed one is named.
static void batches_are_copies(void **state) {
    (void)state;
    struct vram_driver *driver = open_backed();
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t device, stream, managed, failed = 7;
    uint8_t host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8] = {0};
    assert_cu(vr_cu(driver, mem_alloc, &device, 4096), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, 0), SUCCESS);
    const uint64_t to[] = {device, device + 4, (uint64_t)(uintptr_t)back}, from[] = {(uint64_t)(uintptr_t)host, device, device};
    uint64_t sizes[] = {4, 4, 8};
    const uint64_t firsts[] = {0, 2};
    const struct vr_cu_memcpy_attributes ways[] = {{.access_order = 1}, {.access_order = 3}};
    assert_cu(vr_sim_call_memcpy_batch_async(sim, to, from, sizes, 3, ways, firsts, 2, &failed, stream), SUCCESS);
    assert_int_equal(failed, UINT64_MAX);
    assert_int_equal(back[5], 2);
    assert_cu(vr_sim_call_memcpy_batch_async(sim, to, from, sizes, 3, ways, firsts, 2, &failed, 0), INVALID_VALUE);
    sizes[1] = 5000;
    assert_cu(vr_sim_call_memcpy_batch_async(sim, to, from, sizes, 3, ways, firsts, 2, &failed, stream), INVALID_VALUE);
    assert_int_equal(failed, 1);
    const uint64_t falling[] = {0, 0};
    assert_cu(vr_sim_call_memcpy_batch_async_v2(sim, to, from, sizes, 3, ways, falling, 2, stream), INVALID_VALUE);
    struct vr_cu_memcpy3d_batched copy = {.width = 2, .height = 2, .depth = 1, .access_order = 1};
    copy.from.type = copy.to.type = 1;
    copy.from.memory.address = (uint64_t)(uintptr_t)host;
    copy.from.memory.row_length = 4;
    copy.to.memory.address = (uint64_t)(uintptr_t)back;
    assert_cu(vr_sim_call_memcpy_3d_batch_async_v2(sim, 1, &copy, 0, stream), SUCCESS);
    assert_int_equal(back[2], 5);
    copy.from.memory.row_length = 1;
    assert_cu(vr_sim_call_memcpy_3d_batch_async_v2(sim, 1, &copy, 0, stream), INVALID_VALUE);
    assert_cu(vr_sim_call_mem_alloc_managed(sim, &managed, 8 * VR_MIB, 1), SUCCESS);
    const uint64_t parts[] = {managed, managed + 4 * VR_MIB}, lengths[] = {2 * VR_MIB, 4 * VR_MIB}, every[] = {0, 1};
    const struct vr_cu_location places[] = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, {VR_CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    assert_cu(vr_sim_call_mem_discard_and_prefetch_batch_async(sim, parts, lengths, 2, places, every, 2, 0, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), 4 * VR_MIB);
    assert_cu(vr_sim_call_mem_discard_batch_async(sim, to, sizes, 1, 0, stream), INVALID_VALUE);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_have_shapes),  cmocka_unit_test(sets_have_elements),          cmocka_unit_test(arrays_hold_bytes),
        cmocka_unit_test(mipmaps_have_levels), cmocka_unit_test(textures_keep_what_they_are), cmocka_unit_test(managed_memory_moves),
        cmocka_unit_test(advice_is_kept),      cmocka_unit_test(batches_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
