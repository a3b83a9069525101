// Tests modules, libraries, functions and launches of the simulated driver.
#include "code_fixture.h"
#include "sim/modules/sim_launch.h"
#include "sim/sim.h"
#include "sim_fixture.h"
#include "vram/sim.h"

enum { REGISTERS = 4, PTX_VERSION = 5, BINARY_VERSION = 6, MOST_THREADS = 0, SHARED = 1, LOCAL = 3, MOST_DYNAMIC = 8 };

static struct vr_sim *sim_of(struct vram_driver *driver) { return vr_sim_of(driver); }

static int attribute_of(struct vr_sim *sim, uint64_t function, int attribute) {
    int value = -1;
    assert_cu(vr_sim_call_func_get_attribute(sim, &value, attribute, function), SUCCESS);
    return value;
}

static void cubin_is_read(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL); // 8.0
    struct vr_sim *sim = sim_of(driver);
    const struct code_image cubin = make_cubin(80, false);
    uint64_t module, function, address, size, used = vram_sim_memory_used(driver, 0);
    assert_cu(vr_sim_call_module_load_data(sim, &module, cubin.bytes), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + 256);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "works"), NOT_FOUND);
    assert_int_equal(attribute_of(sim, function, REGISTERS), 40);
    assert_int_equal(attribute_of(sim, function, SHARED), 2000);
    assert_int_equal(attribute_of(sim, function, LOCAL), 16);
    assert_int_equal(attribute_of(sim, function, MOST_THREADS), 256);
    assert_int_equal(attribute_of(sim, function, MOST_DYNAMIC), 49152 - 2000);
    assert_int_equal(attribute_of(sim, function, BINARY_VERSION), 80);
    uint64_t offset, width;
    assert_cu(vr_sim_call_func_get_param_info(sim, function, 1, &offset, &width), SUCCESS);
    assert_int_equal(offset, 8);
    assert_int_equal(width, 4);
    assert_cu(vr_sim_call_func_get_param_info(sim, function, 2, &offset, &width), INVALID_VALUE);
    assert_cu(vr_sim_call_module_get_global(sim, &address, &size, module, "counts"), SUCCESS);
    assert_int_equal(size, 96);
    assert_cu(vr_cu(driver, memset_d8, address, 1, size), SUCCESS);
    assert_cu(vr_sim_call_module_get_global(sim, &address, &size, module, "count"), NOT_FOUND);
    const char *name;
    assert_cu(vr_sim_call_func_get_name(sim, &name, function), SUCCESS);
    assert_string_equal(name, "work");
    assert_true(vr_sim_check(sim));
    assert_cu(vr_sim_call_module_unload(sim, module), SUCCESS);
    assert_cu(vr_sim_call_module_unload(sim, module), INVALID_HANDLE);
    assert_cu(vr_sim_call_func_get_name(sim, &name, function), INVALID_HANDLE);
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    vram_driver_destroy(driver);
}

static void ptx_is_read(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    uint64_t library, kernel, function, address, size;
    unsigned count;
    assert_cu(vr_sim_call_library_load_data(sim, &library, some_ptx, NULL, NULL, 0, NULL, NULL, 0), SUCCESS);
    assert_cu(vr_sim_call_library_get_kernel_count(sim, &count, library), SUCCESS);
    assert_int_equal(count, 2);
    assert_cu(vr_sim_call_library_get_kernel(sim, &kernel, library, "not_this"), NOT_FOUND);
    assert_cu(vr_sim_call_library_get_kernel(sim, &kernel, library, "helper"), NOT_FOUND);
    assert_cu(vr_sim_call_library_get_kernel(sim, &kernel, library, "add_one"), SUCCESS);
    assert_int_equal(attribute_of(sim, kernel, SHARED), 2048);
    assert_int_equal(attribute_of(sim, kernel, MOST_THREADS), 256);
    assert_int_equal(attribute_of(sim, kernel, PTX_VERSION), 80);
    assert_cu(vr_sim_call_kernel_get_param_info(sim, kernel, 2, &address, &size), SUCCESS);
    assert_int_equal(address, 16);
    assert_int_equal(size, 24);
    assert_cu(vr_sim_call_kernel_get_param_info(sim, kernel, 3, &address, &size), INVALID_VALUE);
    assert_cu(vr_sim_call_library_get_global(sim, &address, &size, library, "lut"), SUCCESS);
    assert_int_equal(size, 400);
    assert_cu(vr_sim_call_library_get_managed(sim, &address, &size, library, "lut"), NOT_FOUND);
    assert_cu(vr_sim_call_library_get_managed(sim, &address, &size, library, "both"), SUCCESS);
    assert_int_equal(size, 4);
    // Attributes set on the kernel apply to its function.
    assert_cu(vr_sim_call_kernel_set_attribute(sim, MOST_DYNAMIC, 1000, kernel, 0), SUCCESS);
    assert_cu(vr_sim_call_kernel_get_function(sim, &function, kernel), SUCCESS);
    assert_int_equal(attribute_of(sim, function, MOST_DYNAMIC), 1000);
    assert_cu(vr_sim_call_func_set_attribute(sim, function, MOST_DYNAMIC, 1 << 20), INVALID_VALUE);
    assert_cu(vr_sim_call_func_set_attribute(sim, function, REGISTERS, 1), INVALID_VALUE);
    assert_cu(vr_sim_call_library_unload(sim, library), SUCCESS);
    assert_cu(vr_sim_call_kernel_get_function(sim, &function, kernel), INVALID_HANDLE);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
}

static vr_cu_result binary_of(struct vr_sim *sim, const void *code, int *binary, int *ptx) {
    uint64_t module, function;
    const vr_cu_result result = vr_sim_call_module_load_data(sim, &module, code);
    if (result != VR_CU_SUCCESS) return result;
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    *binary = attribute_of(sim, function, BINARY_VERSION);
    *ptx = attribute_of(sim, function, PTX_VERSION);
    return vr_sim_call_module_unload(sim, module);
}

// The highest version the device supports is loaded: 8.0 does not run 8.6, and PTX is used only if there is nothing else.
static void highest_code_is_taken(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    struct code_image all = {.size_bytes = 0}, none = {.size_bytes = 0}, ptx = {.size_bytes = 0};
    const struct code_image cubin = make_cubin(80, false), newer = make_cubin(86, false), exact = make_cubin(80, true);
    const char text[] = ".version 7.0\n.target sm_70\n.entry work() { ret; }";
    int binary, version;
    add_entry(&all, CODE_CUBIN, 75, 0, "", 0);
    add_entry(&all, CODE_PTX, 80, 0, some_ptx, sizeof some_ptx);
    add_entry(&all, CODE_CUBIN, 80, 0, cubin.bytes, cubin.size_bytes);
    add_entry(&all, CODE_CUBIN, 86, CODE_ZSTD, "", 0);
    assert_cu(binary_of(sim, all.bytes, &binary, &version), SUCCESS);
    assert_int_equal(binary, 80);
    add_entry(&none, CODE_CUBIN, 86, CODE_ZSTD, "", 0);
    add_entry(&none, CODE_CUBIN, 80, CODE_EXACT, cubin.bytes, cubin.size_bytes);
    assert_cu(binary_of(sim, none.bytes, &binary, &version), SUCCESS); // only 8.0 is this device
    add_entry(&ptx, CODE_CUBIN, 90, CODE_ZSTD, "", 0);
    uint64_t module;
    assert_cu(vr_sim_call_module_load_data(sim, &module, ptx.bytes), NO_BINARY_FOR_GPU);
    add_entry(&ptx, CODE_PTX, 70, 0, text, sizeof text);
    assert_cu(binary_of(sim, ptx.bytes, &binary, &version), SUCCESS);
    assert_int_equal(binary, 80);
    assert_int_equal(version, 70);
    assert_cu(vr_sim_call_module_load_data(sim, &module, newer.bytes), NO_BINARY_FOR_GPU);
    assert_cu(binary_of(sim, exact.bytes, &binary, &version), SUCCESS);
    vram_driver_destroy(driver);
}

static bool unpack_nothing(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    (void)to, (void)to_bytes, (void)from, (void)from_bytes;
    return false;
}

static bool unpack_raw(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
    if (from_bytes != to_bytes + 12) return false;
    memcpy(to, (const char *)from + 12, to_bytes);
    return true;
}

// Compressed code gives the same facts as uncompressed code.
static void compressed_code_is_read(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const struct code_image cubin = make_cubin(80, false), lz4 = pack_lz4(&cubin), zstd = pack_zstd(&cubin);
    assert_in_range(lz4.size_bytes, 1, cubin.size_bytes / 2);
    sim->unpack_zstd = unpack_raw;
    for (int round = 0; round < 2; round++) {
        struct code_image container = {.size_bytes = 0};
        uint64_t module, function, count;
        add_packed(&container, 80, round == 0 ? CODE_LZ4 : CODE_ZSTD, round == 0 ? &lz4 : &zstd, cubin.size_bytes);
        assert_cu(vr_sim_call_module_load_data(sim, &module, container.bytes), SUCCESS);
        assert_cu(vr_sim_call_module_get_function(sim, &function, module, "not_this"), NOT_FOUND);
        assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
        assert_int_equal(attribute_of(sim, function, REGISTERS), 40);
        assert_int_equal(attribute_of(sim, function, SHARED), 2000);
        assert_cu(vr_sim_call_func_get_param_count(sim, function, &count), SUCCESS);
        assert_int_equal(count, 2);
        assert_cu(vr_sim_call_module_unload(sim, module), SUCCESS);
    }
    vram_driver_destroy(driver);
}

// Compressed code is refused if it is truncated anywhere, has more or fewer bytes than stated, or exceeds the limit.
static void damaged_compression_is_refused(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const struct code_image cubin = make_cubin(80, false), whole = pack_lz4(&cubin);
    uint64_t module = 7;
    for (size_t cut = 0; cut < whole.size_bytes; cut++) {
        struct code_image packed = whole, container = {.size_bytes = 0};
        packed.size_bytes = cut;
        add_packed(&container, 80, CODE_LZ4, &packed, cubin.size_bytes);
        assert_cu(vr_sim_call_module_load_data(sim, &module, container.bytes), INVALID_IMAGE);
    }
    for (int more = -1; more <= 1; more += 2) {
        struct code_image container = {.size_bytes = 0};
        add_packed(&container, 80, CODE_LZ4, &whole, cubin.size_bytes + (size_t)more);
        assert_cu(vr_sim_call_module_load_data(sim, &module, container.bytes), INVALID_IMAGE);
    }
    struct code_image back = whole, container = {.size_bytes = 0}, other = {.size_bytes = 0}, longer = {.size_bytes = 0};
    put(&back, 11, 0xffff, 2); // a match before the first byte
    add_packed(&container, 80, CODE_LZ4, &back, cubin.size_bytes);
    assert_cu(vr_sim_call_module_load_data(sim, &module, container.bytes), INVALID_IMAGE);
    sim->unpack_zstd = unpack_nothing;
    add_packed(&other, 80, CODE_ZSTD, &whole, cubin.size_bytes);
    assert_cu(vr_sim_call_module_load_data(sim, &module, other.bytes), INVALID_IMAGE);
    add_packed(&longer, 80, CODE_LZ4, &whole, cubin.size_bytes);
    put(&longer, 16 + 16, 4000, 4); // more than the entry has
    assert_cu(vr_sim_call_module_load_data(sim, &module, longer.bytes), INVALID_IMAGE);
    assert_int_equal(module, 7);
    put(&longer, 16 + 16, whole.size_bytes, 4);
    put(&longer, 16 + 56, UINT64_C(1) << 40, 8); // beyond the limit, so it is not decompressed
    assert_cu(vr_sim_call_module_load_data(sim, &module, longer.bytes), SUCCESS);
    vram_driver_destroy(driver);
}

// Parameters of more than 4 KiB are encoded differently.
static void large_parameters_are_read(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    struct code_image cubin = make_cubin(80, false);
    uint64_t module, function, offset, width;
    put(&cubin, 480, 0x000c4504, 4);
    put(&cubin, 480 + 12, 25768, 4);
    assert_cu(vr_sim_call_module_load_data(sim, &module, cubin.bytes), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    assert_cu(vr_sim_call_func_get_param_info(sim, function, 1, &offset, &width), SUCCESS);
    assert_int_equal(offset, 8);
    assert_int_equal(width, 25768);
    vram_driver_destroy(driver);
}

// Code that is not decompressed has unknown names, so every name counts as one of its kernels.
static void closed_code_knows_every_name(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    struct code_image container = {.size_bytes = 0};
    uint64_t module, first, second, again;
    add_entry(&container, CODE_CUBIN, 80, CODE_ZSTD, "zzzz", 4);
    struct {
        uint32_t magic, version;
        const void *container;
        void *unused;
    } wrapper = {0x466243b1, 1, container.bytes, NULL};
    assert_cu(vr_sim_call_module_load_fat_binary(sim, &module, &wrapper), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &first, module, "one"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &second, module, "two"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &again, module, "one"), SUCCESS);
    assert_true(first == again && first != second);
    uint64_t count;
    assert_cu(vr_sim_call_func_get_param_count(sim, first, &count), NOT_SUPPORTED);
    vram_driver_destroy(driver);
}

static void strange_code_is_refused(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    struct code_image lying = {.size_bytes = 0};
    uint64_t module = 7;
    add_entry(&lying, CODE_CUBIN, 80, 0, "zzzz", 4);
    put(&lying, 16 + 8, 1 << 20, 8); // longer than the container
    assert_cu(vr_sim_call_module_load_data(sim, &module, lying.bytes), INVALID_IMAGE);
    assert_cu(vr_sim_call_module_load_data(sim, &module, ""), INVALID_PTX);
    assert_cu(vr_sim_call_module_load_data(sim, &module, ".target"), INVALID_PTX);
    assert_cu(vr_sim_call_module_load_data(sim, &module, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_module_load(sim, &module, "/nonexistent"), FILE_NOT_FOUND);
    assert_int_equal(module, 7);
    vram_driver_destroy(driver);
}

static vr_cu_result launch(struct vr_sim *sim, uint64_t function, unsigned grid, unsigned block, unsigned shared) {
    return vr_sim_call_launch_kernel(sim, function, grid, 1, 1, block, 1, 1, shared, 0, NULL, NULL);
}

static void launches_are_checked(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const struct code_image cubin = make_cubin(80, false);
    uint64_t module, function;
    assert_cu(vr_sim_call_module_load_data(sim, &module, cubin.bytes), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    assert_cu(launch(sim, function, 100, 256, 0), SUCCESS);
    assert_cu(launch(sim, function, 0, 256, 0), INVALID_VALUE);
    assert_cu(launch(sim, function, 1, 257, 0), LAUNCH_OUT_OF_RESOURCES);
    assert_cu(launch(sim, function, 1, 1025, 0), INVALID_VALUE);
    assert_cu(launch(sim, function, 1, 32, 49152 - 2000), SUCCESS);
    assert_cu(launch(sim, function, 1, 32, 49152 - 1999), INVALID_VALUE);
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 65536, 1, 1, 1, 1, 0, 0, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 1, 1, 1, 1, 65, 0, 0, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_launch_kernel(sim, function, 1, 1, 1, 1, 1, 1, 0, 99, NULL, NULL), INVALID_HANDLE);
    assert_cu(vr_sim_call_launch_cooperative_kernel(sim, function, 1 << 20, 1, 1, 32, 1, 1, 0, 0, NULL), COOPERATIVE_LAUNCH_TOO_LARGE);
    assert_cu(vr_sim_call_launch_cooperative_kernel(sim, function, 1, 1, 1, 32, 1, 1, 0, 0, NULL), SUCCESS);
    struct vr_cu_launch_attribute attribute = {.id = VR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = {2, 1, 1}};
    struct vr_cu_launch_config config = {{4, 1, 1}, {32, 1, 1}, 0, 0, &attribute, 1};
    assert_cu(vr_sim_call_launch_kernel_ex(sim, &config, function, NULL, NULL), NOT_SUPPORTED); // clusters exist since 9.0
    attribute.value.cluster[0] = 3;
    assert_cu(vr_sim_call_launch_kernel_ex(sim, &config, function, NULL, NULL), INVALID_VALUE); // 4 blocks are not a multiple of 3
    attribute.value.cluster[0] = 1;
    assert_cu(vr_sim_call_launch_kernel_ex(sim, &config, function, NULL, NULL), SUCCESS);
    assert_cu(vr_sim_call_module_unload(sim, module), SUCCESS);
    assert_cu(launch(sim, function, 1, 32, 0), INVALID_HANDLE);
    assert_cu(launch(sim, 0, 1, 32, 0), INVALID_HANDLE);
    vram_driver_destroy(driver);
}

// As NVIDIA documents for the stack's limit, a kernel that needs more enlarges the stacks of all threads, and they stay so.
static void stacks_take_memory(void **state) {
    (void)state;
    struct vram_sim_options options;
    assert_int_equal(vram_sim_parse("device=a100-80", &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    struct vr_sim *sim = sim_of(driver);
    struct code_image cubin = make_cubin(80, false);
    int multiprocessors, threads;
    assert_cu(vr_cu(driver, device_get_attribute, &multiprocessors, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), SUCCESS);
    assert_cu(vr_cu(driver, device_get_attribute, &threads, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0), SUCCESS);
    const uint64_t resident = (uint64_t)multiprocessors * (uint64_t)threads;
    assert_int_equal(resident, 108 * 2048);
    uint64_t small_module, large_module, small, large, limit;
    assert_cu(vr_sim_call_module_load_data(sim, &small_module, cubin.bytes), SUCCESS);
    put(&cubin, CODE_STACK_BYTES, 1888, 4);
    assert_cu(vr_sim_call_module_load_data(sim, &large_module, cubin.bytes), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &small, small_module, "work"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &large, large_module, "work"), SUCCESS);
    const uint64_t used = vram_sim_memory_used(driver, 0);
    assert_cu(launch(sim, small, 1, 32, 0), SUCCESS);
    assert_cu(launch(sim, large, 0, 32, 0), INVALID_VALUE);
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    assert_cu(launch(sim, large, 1, 32, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used + (1888 - 1024) * resident);
    assert_cu(launch(sim, small, 1, 32, 0), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &limit, 0), SUCCESS);
    assert_int_equal(limit, 1888);
    assert_true(vr_sim_check(sim));
    assert_int_equal(vram_sim_memory_used(driver, 0), used + (1888 - 1024) * resident);
    assert_cu(vr_sim_call_ctx_set_limit(sim, 0, 512), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used);
    uint64_t address, unused, total;
    assert_cu(vr_cu(driver, mem_get_info, &unused, &total), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &address, unused - 64 * VR_MIB), SUCCESS);
    assert_cu(launch(sim, large, 1, 32, 0), OUT_OF_MEMORY);
    assert_cu(vr_sim_call_ctx_set_limit(sim, 0, UINT64_MAX), OUT_OF_MEMORY);
    assert_cu(launch(sim, small, 1, 32, 0), SUCCESS);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
}

static void occupancy_is_counted(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const struct code_image cubin = make_cubin(80, false);
    uint64_t module, function, dynamic;
    int blocks, grid, block;
    assert_cu(vr_sim_call_module_load_data(sim, &module, cubin.bytes), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "work"), SUCCESS);
    // 40 registers: 1,280 per warp, 12 warps per partition, 48 in total, 6 blocks of 8 warps.
    assert_cu(vr_sim_call_occupancy_max_active_blocks(sim, &blocks, function, 256, 0), SUCCESS);
    assert_int_equal(blocks, 6);
    // 47,152 plus 2,000 plus 1,024 bytes of shared memory: 3 of them in 164 KiB.
    assert_cu(vr_sim_call_occupancy_max_active_blocks(sim, &blocks, function, 256, 47152), SUCCESS);
    assert_int_equal(blocks, 3);
    assert_cu(vr_sim_call_occupancy_max_active_blocks(sim, &blocks, function, 512, 0), SUCCESS);
    assert_int_equal(blocks, 0);
    assert_cu(vr_sim_call_occupancy_max_potential_block_size(sim, &grid, &block, function, NULL, 0, 0), SUCCESS);
    assert_int_equal(block, 256);
    assert_cu(vr_sim_call_occupancy_available_dynamic_smem(sim, &dynamic, function, 4, 256), SUCCESS);
    assert_int_equal(dynamic, 167936 / 4 - 3024);
    assert_cu(vr_sim_call_occupancy_max_active_blocks(sim, &blocks, 12, 256, 0), INVALID_HANDLE);
    vram_driver_destroy(driver);
}

// A spinning kernel takes its cycles; another the time in the option.
static void work_takes_time(void **state) {
    (void)state;
    struct vram_sim_options options;
    assert_int_equal(vram_sim_parse("kernel=10us,profile=free", &options, NULL), VRAM_OK);
    assert_int_equal(options.kernel_ns, 10000);
    struct vram_driver *driver = open_sim(&options);
    struct vr_sim *sim = sim_of(driver);
    uint64_t module, spin, work, event, address;
    assert_cu(vr_sim_call_module_load_data(sim, &module, some_ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &spin, module, "_Z11spin_kernell"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &work, module, "add_one"), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
    assert_cu(launch(sim, work, 1, 32, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), NOT_READY);
    assert_cu(vr_cu(driver, stream_query, 0), NOT_READY);
    const uint64_t before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver) - before, 10000);
    int64_t cycles = 5000000;
    void *parameters[] = {&cycles};
    int khz = vr_sim_device_value(sim, 0, VR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000);
    assert_cu(vr_sim_call_launch_kernel(sim, spin, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL), SUCCESS);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver) - before, 10000 + 5000000 * UINT64_C(1000000) / (uint64_t)khz);
    assert_cu(vr_cu(driver, mem_alloc, &address, 1 << 30), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8_async, address, 0, 1 << 30, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, 0), NOT_READY);
    assert_cu(vr_cu(driver, stream_synchronize, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, 0), SUCCESS);
    vram_driver_destroy(driver);
}

// A captured launch keeps a copy of its arguments, which outlives the library.
static void captured_launch_keeps_arguments(void **state) {
    (void)state;
    struct vram_sim_options options = {.kernel_ns = 100000};
    struct vram_driver *driver = open_sim(&options);
    struct vr_sim *sim = sim_of(driver);
    uint64_t module, function, stream, graph, node, exec, count = 1;
    assert_cu(vr_sim_call_module_load_data(sim, &module, some_ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "add_one"), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, 0), SUCCESS);
    uint64_t pointer = 0x1234;
    uint32_t number = 5;
    char bytes[24] = "twenty-three characters";
    void *parameters[] = {&pointer, &number, bytes};
    assert_cu(vr_sim_call_launch_kernel(sim, function, 7, 1, 1, 32, 1, 1, 64, stream, parameters, NULL), SUCCESS);
    pointer = number = 0;
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_get_nodes, graph, &node, &count), SUCCESS);
    assert_int_equal(count, 1);
    const struct vr_sim_kernel_payload *payload = (const void *)vr_sim_node_find(sim, node)->work.payload;
    assert_int_equal(payload->launch.grid[0], 7);
    assert_int_equal(*(uint64_t *)payload->launch.parameters[0], 0x1234);
    assert_int_equal(*(uint32_t *)payload->launch.parameters[1], 5);
    assert_string_equal(payload->launch.parameters[2], bytes);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, stream), NOT_READY);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
}

static void linker_refuses_what_it_does_not_know(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const int option = 0;
    void *value = NULL;
    uint64_t link;
    assert_cu(vr_sim_call_link_create(sim, 1, NULL, &value, &link), INVALID_VALUE);
    assert_cu(vr_sim_call_link_create(sim, 1, &option, NULL, &link), INVALID_VALUE);
    assert_cu(vr_sim_call_link_create(sim, 1, &option, &value, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_link_create(sim, 1, &option, &value, &link), SUCCESS);
    for (int type = -1; type <= 6; type += 7)
        assert_cu(vr_sim_call_link_add_data(sim, link, type, some_ptx, sizeof some_ptx, "a", 0, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_link_add_data(sim, link, 1, NULL, 1, "a", 0, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_link_add_data(sim, link, 1, some_ptx, 0, "a", 0, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_sim_call_link_add_data(sim, link, 5, some_ptx, sizeof some_ptx, "a", 0, NULL, NULL), SUCCESS);
    assert_cu(vr_sim_call_link_destroy(sim, link), SUCCESS);
    vram_driver_destroy(driver);
}

static void linker_puts_texts_together(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    const char more[] = ".version 8.0\n.target sm_80\n.entry more() { ret; }";
    uint64_t link, module, function, size;
    void *code;
    assert_cu(vr_sim_call_link_create(sim, 0, NULL, NULL, &link), SUCCESS);
    assert_cu(vr_sim_call_link_complete(sim, link, &code, &size), INVALID_IMAGE);
    assert_cu(vr_sim_call_link_add_data(sim, link, 1, some_ptx, sizeof some_ptx, "a", 0, NULL, NULL), SUCCESS);
    assert_cu(vr_sim_call_link_add_data(sim, link, 1, more, sizeof more, "b", 0, NULL, NULL), SUCCESS);
    assert_cu(vr_sim_call_link_complete(sim, link, &code, &size), SUCCESS);
    assert_cu(vr_sim_call_module_load_data(sim, &module, code), SUCCESS);
    assert_cu(vr_sim_call_link_destroy(sim, link), SUCCESS);
    assert_cu(vr_sim_call_link_destroy(sim, link), INVALID_HANDLE);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "more"), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(sim, &function, module, "add_one"), SUCCESS);
    vram_driver_destroy(driver);
}

static void tensor_maps_are_checked(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = sim_of(driver);
    _Alignas(64) unsigned char map[128] = {0};
    const uint64_t sizes[] = {1024, 512}, strides[] = {2048}, odd[] = {2047};
    const uint32_t box[] = {64, 128}, wide[] = {128, 128}, steps[] = {1, 1};
    enum { HALF = 6, SWIZZLE_128 = 3 };
#define ENCODE(address, strides, box, swizzle)                                                                                             \
    vr_sim_call_tensor_map_encode_tiled(sim, map, HALF, 2, address, sizes, strides, box, steps, 0, swizzle, 0, 0)
    assert_cu(ENCODE(0x1000, strides, box, SWIZZLE_128), SUCCESS);
    assert_int_not_equal(map[0], 0);
    assert_cu(ENCODE(0x1008, strides, box, SWIZZLE_128), INVALID_VALUE);
    assert_cu(ENCODE(0x1000, odd, box, SWIZZLE_128), INVALID_VALUE);
    assert_cu(ENCODE(0x1000, strides, wide, SWIZZLE_128), INVALID_VALUE); // 256 bytes in a row
    assert_cu(ENCODE(0x1000, strides, wide, 0), SUCCESS);
    assert_cu(vr_sim_call_tensor_map_replace_address(sim, map, 0x2000), SUCCESS);
    assert_cu(vr_sim_call_tensor_map_replace_address(sim, map, 0x2001), INVALID_VALUE);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubin_is_read),
        cmocka_unit_test(ptx_is_read),
        cmocka_unit_test(highest_code_is_taken),
        cmocka_unit_test(compressed_code_is_read),
        cmocka_unit_test(damaged_compression_is_refused),
        cmocka_unit_test(large_parameters_are_read),
        cmocka_unit_test(closed_code_knows_every_name),
        cmocka_unit_test(strange_code_is_refused),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(stacks_take_memory),
        cmocka_unit_test(occupancy_is_counted),
        cmocka_unit_test(work_takes_time),
        cmocka_unit_test(captured_launch_keeps_arguments),
        cmocka_unit_test(linker_refuses_what_it_does_not_know),
        cmocka_unit_test(linker_puts_texts_together),
        cmocka_unit_test(tensor_maps_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
