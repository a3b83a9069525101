// Compares the contents of device memory under bytes=all, sparse and none with byte arrays that undergo the same operations: allocations,
// pools, memory of graphs, and pages mapped, unmapped and mapped elsewhere.
#include "sim_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/sim.h"
#include "os/os.h"
#include "vram/sim.h"

#define PAGE VR_SIM_GRANULARITY

enum { RANGES = 8, PHYSICALS = 4, ROUNDS = 800, LARGEST = 3 << 20 };
enum held { UNWRITTEN, WRITTEN, NOT_KEPT };

// Memory and its expected contents. A physical allocation has an address while it is mapped; `second` is another mapping.
struct memory {
    bool live, pooled;
    uint64_t address, second, size_bytes, handle;
    unsigned char *bytes, *held; // value and enum held of each byte
};

struct trial {
    struct vram_driver *driver;
    enum vram_sim_bytes kind;
    uint64_t context, stream, seed, spaces[PHYSICALS];
    struct memory ranges[RANGES + PHYSICALS];
    unsigned char *buffer;
};

static uint64_t draw(struct trial *trial, uint64_t below) { return vr_mix64(++trial->seed) % below; }

static const struct vram_sim_options base = {.profile = VRAM_SIM_FREE, .memory_bytes = VR_GIB, .alloc_base = 0x551000000000};

static struct vram_driver *open_kind(enum vram_sim_bytes kind) {
    struct vram_sim_options options = base;
    options.bytes = kind;
    return open_sim(&options);
}

static void set_model(struct memory *memory, uint64_t size_bytes) {
    memory->size_bytes = size_bytes;
    memory->bytes = calloc(1, size_bytes);
    memory->held = calloc(1, size_bytes);
    assert_non_null(memory->bytes);
    assert_non_null(memory->held);
}

static void forget_model(struct memory *memory) {
    free(memory->bytes);
    free(memory->held);
    *memory = (struct memory){0};
}

// --- operations -------------------------------------------------------------------------------------------------------------------

static void make_range(struct trial *trial, struct memory *memory) {
    const uint64_t size = 1 + draw(trial, draw(trial, 2) == 0 ? 3000 : LARGEST);
    memory->pooled = draw(trial, 2) == 0;
    if (memory->pooled)
        assert_cu(vr_cu(trial->driver, mem_alloc_async, &memory->address, size, trial->stream), SUCCESS);
    else
        assert_cu(vr_cu(trial->driver, mem_alloc, &memory->address, size), SUCCESS);
    memory->live = true;
    set_model(memory, size);
}

static void end_range(struct trial *trial, struct memory *memory) {
    if (memory->pooled)
        assert_cu(vr_cu(trial->driver, mem_free_async, memory->address, trial->stream), SUCCESS);
    else
        assert_cu(vr_cu(trial->driver, mem_free, memory->address), SUCCESS);
    forget_model(memory);
}

static void map(struct trial *trial, const struct memory *memory, uint64_t address) {
    const struct vr_cu_access_desc access = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    assert_cu(vr_cu(trial->driver, mem_map, address, PAGE, 0, memory->handle, 0), SUCCESS);
    assert_cu(vr_cu(trial->driver, mem_set_access, address, PAGE, &access, 1), SUCCESS);
}

static void unmap(struct trial *trial, uint64_t address) { assert_cu(vr_cu(trial->driver, mem_unmap, address, PAGE), SUCCESS); }

// Maps a physical allocation twice, moves one of its mappings, or releases it.
static void change_physical(struct trial *trial, struct memory *memory, uint64_t space) {
    if (!memory->live) {
        const struct vr_cu_allocation_prop prop = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
                                                   .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
        assert_cu(vr_cu(trial->driver, mem_create, &memory->handle, PAGE, &prop, 0), SUCCESS);
        memory->live = true;
        memory->address = space;
        memory->second = space + 2 * PAGE;
        set_model(memory, PAGE);
        map(trial, memory, memory->address);
        map(trial, memory, memory->second);
    } else if (draw(trial, 4) == 0) {
        unmap(trial, memory->address);
        unmap(trial, memory->second);
        assert_cu(vr_cu(trial->driver, mem_release, memory->handle), SUCCESS);
        forget_model(memory);
    } else {
        unmap(trial, memory->address);
        memory->address = memory->address == space ? space + PAGE : space;
        map(trial, memory, memory->address);
    }
}

static void launch(struct trial *trial, uint64_t graph) {
    uint64_t exec;
    assert_cu(vr_cu(trial->driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(trial->driver, graph_launch, exec, trial->stream), SUCCESS);
    assert_cu(vr_cu(trial->driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(trial->driver, graph_destroy, graph), SUCCESS);
}

static void set(struct trial *trial, struct memory *memory, uint64_t at, uint64_t size) {
    const uint32_t element = 1u << draw(trial, 3), value = draw(trial, 3) == 0 ? 0 : (uint32_t)draw(trial, UINT32_MAX);
    at -= at % element;
    size -= size % element;
    const uint64_t rows = size < 64 ? 1 : 1 + draw(trial, 3), pitch = vr_round_down(size / rows, element);
    struct vr_cu_memset_node node = {.address = memory->address + at, .pitch_bytes = pitch, .value = value, .element_bytes = element};
    node.rows = rows;
    node.width_elements = (rows == 1 ? size : vr_round_down(pitch / 2 + 1, element)) / element;
    if (node.width_elements == 0) return;
    uint64_t graph, made;
    assert_cu(vr_cu(trial->driver, graph_create, &graph, 0), SUCCESS);
    assert_cu(vr_cu(trial->driver, graph_add_memset_node, &made, graph, NULL, 0, &node, trial->context), SUCCESS);
    launch(trial, graph);
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = 0; i < node.width_elements; i++) {
            memcpy(&memory->bytes[at + row * pitch + i * element], &value, element);
            memset(&memory->held[at + row * pitch + i * element], WRITTEN, element);
        }
}

static void copy_in(struct trial *trial, struct memory *memory, uint64_t at, uint64_t size) {
    const bool repeated = draw(trial, 4) == 0;
    const uint64_t seed = draw(trial, UINT64_MAX);
    for (uint64_t i = 0; i < size; i++) trial->buffer[i] = (unsigned char)vr_mix64(repeated ? seed + i % 4 : seed + i);
    if (draw(trial, 2) == 0)
        assert_cu(vr_cu(trial->driver, memcpy_htod, memory->address + at, trial->buffer, size), SUCCESS);
    else
        assert_cu(vr_cu(trial->driver, memcpy_async, memory->address + at, (uint64_t)(uintptr_t)trial->buffer, size, trial->stream),
                  SUCCESS);
    const bool kept = trial->kind != VRAM_SIM_BYTES_NONE || size <= VR_SIM_SMALL_COPY_BYTES;
    memcpy(&memory->bytes[at], trial->buffer, size);
    if (!kept) memset(&memory->bytes[at], 0, size);
    memset(&memory->held[at], kept ? WRITTEN : NOT_KEPT, size);
}

// Copies between two places that may overlap.
static void copy_over(struct trial *trial, struct memory *to, uint64_t at, uint64_t size) {
    struct memory *from = &trial->ranges[draw(trial, VR_COUNT_OF(trial->ranges))];
    if (!from->live || from->size_bytes < size) from = to;
    const uint64_t start = draw(trial, from->size_bytes - size + 1);
    const bool second = from->second != 0 && from != to && draw(trial, 2) == 0;
    assert_cu(vr_cu(trial->driver, memcpy_async, to->address + at, (second ? from->second : from->address) + start, size, trial->stream),
              SUCCESS);
    memmove(&to->bytes[at], &from->bytes[start], size);
    memmove(&to->held[at], &from->held[start], size);
}

static void compare(struct trial *trial, const struct memory *memory, uint64_t at, uint64_t size) {
    const uint64_t address = memory->second != 0 && draw(trial, 2) == 0 ? memory->second : memory->address;
    memset(trial->buffer, 0xee, size);
    assert_cu(vr_cu(trial->driver, memcpy_dtoh, trial->buffer, address + at, size), SUCCESS);
    for (uint64_t i = 0; i < size; i++) {
        if (trial->kind == VRAM_SIM_BYTES_ALL && memory->held[at + i] != WRITTEN) continue; // undefined contents
        if (trial->buffer[i] != memory->bytes[at + i]) fail_msg("byte %llu of %llu", (unsigned long long)i, (unsigned long long)size);
    }
}

static void step(struct trial *trial) {
    const uint64_t which = draw(trial, VR_COUNT_OF(trial->ranges));
    struct memory *memory = &trial->ranges[which];
    const uint64_t action = draw(trial, 10);
    if (!memory->live || action == 0) {
        if (which >= RANGES)
            change_physical(trial, memory, trial->spaces[which - RANGES]);
        else if (memory->live)
            end_range(trial, memory);
        else
            make_range(trial, memory);
        return;
    }
    const uint64_t most = draw(trial, 2) == 0 && memory->size_bytes > 200 ? 200 : memory->size_bytes;
    const uint64_t size = 1 + draw(trial, most), at = draw(trial, memory->size_bytes - size + 1);
    if (action < 4)
        set(trial, memory, at, size);
    else if (action < 6)
        copy_in(trial, memory, at, size);
    else if (action < 8)
        copy_over(trial, memory, at, size);
    else
        compare(trial, memory, at, size);
}

static void open_trial(struct trial *trial, enum vram_sim_bytes kind, uint64_t seed) {
    *trial = (struct trial){.driver = open_kind(kind), .kind = kind, .seed = seed, .buffer = malloc(LARGEST)};
    assert_non_null(trial->buffer);
    assert_cu(vr_cu(trial->driver, ctx_get_current, &trial->context), SUCCESS);
    assert_cu(vr_cu(trial->driver, stream_create, &trial->stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    for (size_t i = 0; i < PHYSICALS; i++)
        assert_cu(vr_cu(trial->driver, mem_address_reserve, &trial->spaces[i], 3 * PAGE, 0, 0, 0), SUCCESS);
}

static void operations_agree_with_arrays_of_bytes(void **state) {
    for (uint64_t seed = 1; seed <= 2; seed++)
        for (enum vram_sim_bytes kind = VRAM_SIM_BYTES_ALL; kind <= VRAM_SIM_BYTES_NONE; kind++) {
            struct trial trial;
            open_trial(&trial, kind, seed << 40);
            for (uint64_t i = 0; i < ROUNDS; i++) {
                step(&trial);
                if (i % 64 == 0) assert_true(vr_sim_check(vr_sim_of(trial.driver)));
            }
            for (size_t i = 0; i < VR_COUNT_OF(trial.ranges); i++) {
                struct memory *memory = &trial.ranges[i];
                if (memory->live) compare(&trial, memory, 0, memory->size_bytes);
                if (memory->live) forget_model(memory);
            }
            vram_driver_destroy(trial.driver);
            free(trial.buffer);
        }
    (void)state;
}

// --- contents that take no host memory --------------------------------------------------------------------------------------------

// Returns the host bytes used for the contents of device memory.
static uint64_t taken(struct vram_driver *driver) {
    uint64_t sum = 0;
    const struct vr_sim_windows *windows = &vr_sim_of(driver)->content.windows;
    for (size_t i = 0; i < windows->count; i++)
        for (uint64_t block = 0; block < VR_SIM_WINDOW_BLOCKS; block++)
            sum += (windows->items[i].touched[block / 64] >> block % 64 & 1) * (VR_SIM_WINDOW_BYTES / VR_SIM_WINDOW_BLOCKS);
    return sum;
}

static void fills_and_copies_of_fills_take_no_bytes(void **state) {
    struct vram_sim_options options = base;
    options.memory_bytes = 100 * VR_GIB;
    options.bytes = VRAM_SIM_BYTES_SPARSE;
    struct vram_driver *driver = open_sim(&options);
    uint64_t one, two;
    assert_cu(vr_cu(driver, mem_alloc, &one, 40 * VR_GIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &two, 40 * VR_GIB), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, one, two, 40 * VR_GIB, 0), SUCCESS); // never written
    assert_cu(vr_cu(driver, memset_d8, one, 7, 40 * VR_GIB), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, two, one, 40 * VR_GIB, 0), SUCCESS);
    assert_int_equal(taken(driver), 0);
    unsigned char bytes[3] = {0};
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, two + 39 * VR_GIB + 1, sizeof bytes), SUCCESS);
    assert_memory_equal(bytes, ((unsigned char[]){7, 7, 7}), 3);
    // A few bytes use a page; a fill or a free releases it.
    assert_cu(vr_cu(driver, memcpy_htod, two + 20 * VR_GIB, "abc", 3), SUCCESS);
    assert_int_equal(taken(driver), 2 * VR_MIB);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, two + 20 * VR_GIB, sizeof bytes), SUCCESS);
    assert_memory_equal(bytes, "abc", 3);
    assert_cu(vr_cu(driver, memset_d8, two, 0, 40 * VR_GIB), SUCCESS);
    assert_int_equal(taken(driver), 0);
    assert_cu(vr_cu(driver, memcpy_htod, two + 20 * VR_GIB, "abc", 3), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, two), SUCCESS);
    assert_int_equal(taken(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void zeros_from_the_host_take_no_bytes(void **state) {
    struct vram_driver *driver = open_kind(VRAM_SIM_BYTES_SPARSE);
    const uint64_t size = 64 * VR_MIB;
    unsigned char *bytes = calloc(1, size);
    assert_non_null(bytes);
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, size), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_htod, address, bytes, size), SUCCESS);
    assert_int_equal(taken(driver), 0);
    bytes[5] = 1;
    assert_cu(vr_cu(driver, memcpy_htod, address, bytes, size), SUCCESS);
    assert_true(taken(driver) > 0 && taken(driver) <= 4 * VR_MIB);
    memset(bytes, 9, size);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, size), SUCCESS);
    assert_int_equal(bytes[5], 1);
    assert_int_equal(bytes[4] + bytes[6] + bytes[size - 1], 0);
    free(bytes);
    vram_driver_destroy(driver);
    (void)state;
}

static void none_keeps_small_copies_only(void **state) {
    struct vram_driver *driver = open_kind(VRAM_SIM_BYTES_NONE);
    const uint64_t large = VR_SIM_SMALL_COPY_BYTES + 1;
    unsigned char *bytes = malloc(large);
    assert_non_null(bytes);
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, VR_MIB), SUCCESS);
    for (uint64_t i = 0; i < large; i++) bytes[i] = (unsigned char)vr_mix64(i);
    assert_cu(vr_cu(driver, memcpy_htod, address, bytes, large), SUCCESS);
    assert_int_equal(taken(driver), 0);
    assert_cu(vr_cu(driver, memcpy_htod, address, bytes, large - 1), SUCCESS);
    assert_int_equal(taken(driver), 2 * VR_MIB);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, large), SUCCESS);
    for (uint64_t i = 0; i < large - 1; i++) assert_int_equal(bytes[i], (unsigned char)vr_mix64(i));
    assert_int_equal(bytes[large - 1], 0);
    free(bytes);
    vram_driver_destroy(driver);
    (void)state;
}

// Freed memory releases everything, however often that happens.
static void freed_memory_leaves_nothing(void **state) {
    struct vram_driver *driver = open_kind(VRAM_SIM_BYTES_SPARSE);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, 0), SUCCESS);
    for (int i = 0; i < 300; i++) {
        uint64_t address, piece;
        assert_cu(vr_cu(driver, mem_alloc, &address, 512 * VR_MIB), SUCCESS);
        assert_cu(vr_cu(driver, mem_alloc_async, &piece, 4 * VR_MIB, stream), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, address + 300 * VR_MIB, "abc", 3), SUCCESS);
        assert_cu(vr_cu(driver, memset_d8, address, 3, VR_MIB), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, piece + VR_MIB, "abc", 3), SUCCESS);
        assert_cu(vr_cu(driver, mem_free_async, piece, stream), SUCCESS);
        assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
        assert_int_equal(sim->content.extents.count, 0);
        assert_true(taken(driver) <= 4 * VR_MIB && sim->content.windows.count <= 3);
    }
    vram_driver_destroy(driver);
    (void)state;
}

// Variables of modules and memory of graphs are also kept, and are new in each lifetime.
static void variables_and_memory_of_graphs_are_kept(void **state) {
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 table[96];\n";
    struct vram_driver *driver = open_kind(VRAM_SIM_BYTES_SPARSE);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t module, address, size, stream, graph, exec;
    unsigned char bytes[3];
    for (int i = 0; i < 2; i++) {
        assert_cu(vr_sim_call_module_load_data(sim, &module, ptx), SUCCESS);
        assert_cu(vr_sim_call_module_get_global(sim, &address, &size, module, "table"), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, 3), SUCCESS);
        assert_memory_equal(bytes, "\0\0\0", 3);
        assert_cu(vr_cu(driver, memcpy_htod, address + 1, "ab", 2), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, 3), SUCCESS);
        assert_memory_equal(bytes, "\0ab", 3);
        assert_cu(vr_sim_call_module_unload(sim, module), SUCCESS);
        assert_int_equal(sim->content.extents.count, 0);
    }
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc_async, &address, 1000, stream), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8_async, address, 7, 1000, stream), SUCCESS);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address + 997, 3), SUCCESS);
    assert_memory_equal(bytes, "\7\7\7", 3);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_int_equal(sim->content.extents.count, 0);
    vram_driver_destroy(driver);
    (void)state;
}

// A copy without host memory reports that, and nothing else is affected.
static void a_host_without_memory_is_said(void **state) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); // sanitizers need address space at any time
#endif
    if (getenv("VRAM_TEST_EMULATED") != NULL) skip(); // qemu-user does not enforce the limit
    struct vram_driver *driver = open_kind(VRAM_SIM_BYTES_SPARSE);
    struct rlimit before;
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, PAGE), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address, 4, PAGE), SUCCESS);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit none = {.rlim_cur = 64 * VR_MIB, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    const vr_cu_result refused = vr_cu(driver, memcpy_htod, address, "abc", 3);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_cu(refused, OUT_OF_MEMORY);
    unsigned char bytes[3];
    assert_true(vr_sim_check(vr_sim_of(driver)));
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address + 3, 3), SUCCESS);
    assert_memory_equal(bytes, "\4\4\4", 3);
    assert_cu(vr_cu(driver, memcpy_htod, address, "abc", 3), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, 3), SUCCESS);
    assert_memory_equal(bytes, "abc", 3);
    vram_driver_destroy(driver);
    (void)state;
}

// Memory that a forked child frees, or leaves at its end, still belongs to its parent.
static void a_forked_child_takes_nothing_away(void **state) {
    for (enum vram_sim_bytes kind = VRAM_SIM_BYTES_ALL; kind <= VRAM_SIM_BYTES_NONE; kind++) {
        struct vram_driver *driver = open_kind(kind);
        uint64_t address, other;
        unsigned char bytes[3] = {0};
        assert_cu(vr_cu(driver, mem_alloc, &address, PAGE), SUCCESS);
        assert_cu(vr_cu(driver, mem_alloc, &other, PAGE), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, address, "abc", 3), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, other, "def", 3), SUCCESS);
        const pid_t child = fork();
        if (child == 0) {
            const bool freed = vr_cu(driver, mem_free, address) == VR_CU_SUCCESS;
            vram_driver_destroy(driver);
            _exit(freed ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes, address, 3), SUCCESS);
        assert_memory_equal(bytes, "abc", 3);
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes, other, 3), SUCCESS);
        assert_memory_equal(bytes, "def", 3);
        vram_driver_destroy(driver);
    }
    (void)state;
}

// --- other processes, represented by other instances ------------------------------------------------------------------------------

static void shared_memory_is_the_same_in_any_kind(void **state) {
    for (enum vram_sim_bytes kind = VRAM_SIM_BYTES_ALL; kind <= VRAM_SIM_BYTES_NONE; kind++)
        for (enum vram_sim_bytes other = VRAM_SIM_BYTES_ALL; other <= VRAM_SIM_BYTES_NONE; other++) {
            struct vram_driver *here = open_kind(kind), *there = open_kind(other);
            uint64_t ours, theirs;
            struct vr_cu_ipc_handle handle;
            unsigned char bytes[8] = {0};
            assert_cu(vr_cu(here, mem_alloc, &ours, VR_MIB), SUCCESS);
            assert_cu(vr_cu(here, memcpy_htod, ours + 4094, "abcd", 4), SUCCESS);
            assert_cu(vr_cu(here, memset_d8, ours + 5000, 5, 100), SUCCESS);
            assert_cu(vr_cu(here, memset_d8, ours + 4095, 0, 1), SUCCESS); // between known bytes
            assert_cu(vr_cu(here, ipc_get_mem_handle, &handle, ours), SUCCESS);
            assert_cu(vr_cu(there, ipc_open_mem_handle, &theirs, handle, VR_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), SUCCESS);
            assert_cu(vr_cu(there, memcpy_dtoh, bytes, theirs + 4094, 4), SUCCESS);
            assert_memory_equal(bytes, "a\0cd", 4);
            assert_cu(vr_cu(there, memcpy_dtoh, bytes, theirs + 4999, 2), SUCCESS);
            assert_memory_equal(bytes, "\0\5", 2);
            assert_cu(vr_cu(there, memset_d8, theirs, 6, VR_MIB), SUCCESS);
            assert_cu(vr_cu(here, memcpy_dtoh, bytes, ours + VR_MIB - 2, 2), SUCCESS);
            assert_memory_equal(bytes, "\6\6", 2);
            assert_cu(vr_cu(here, memset_d8, ours + 1, 0, VR_MIB - 2), SUCCESS);
            assert_cu(vr_cu(there, memcpy_dtoh, bytes, theirs, 2), SUCCESS);
            assert_memory_equal(bytes, "\6\0", 2);
            assert_cu(vr_cu(here, mem_free, ours), SUCCESS);
            assert_cu(vr_cu(there, memcpy_dtoh, bytes, theirs + VR_MIB - 2, 2), SUCCESS);
            assert_memory_equal(bytes, "\0\6", 2);
            vram_driver_destroy(here);
            vram_driver_destroy(there);
        }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_agree_with_arrays_of_bytes), cmocka_unit_test(fills_and_copies_of_fills_take_no_bytes),
        cmocka_unit_test(zeros_from_the_host_take_no_bytes),     cmocka_unit_test(none_keeps_small_copies_only),
        cmocka_unit_test(freed_memory_leaves_nothing),           cmocka_unit_test(variables_and_memory_of_graphs_are_kept),
        cmocka_unit_test(a_host_without_memory_is_said),         cmocka_unit_test(a_forked_child_takes_nothing_away),
        cmocka_unit_test(shared_memory_is_the_same_in_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
