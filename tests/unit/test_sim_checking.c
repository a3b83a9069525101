// Tests the simulated driver's reports to the checker: the findings for calls that a program makes.
#include "sim_fixture.h"

#include "check/check.h"
#include "sim/modules/sim_operands.h"
#include "sim/streams/sim_guards.h"

static struct vr_check_finding last;
static int found;
static uint32_t calls; // the number of the call is its stack
static void note_finding(void *user, const struct vr_check_finding *finding) {
    (void)user;
    if (finding->may) return;
    last = *finding;
    found++;
}
static bool hidden;
static uint32_t take_stack(void) { return hidden ? VR_SIM_STACK_HIDDEN : ++calls; }

static struct vr_sim_checking checking = {.take_stack = take_stack};

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry _Z4readPKfPf(.param .u64 from, .param .u64 to)\n{\n ret;\n}\n"
                          ".visible .entry _Z4bothPfS_(.param .u64 one, .param .u64 other)\n{\n ret;\n}\n"
                          ".visible .entry standin_work(.param .align 8 .b8 call[432])\n{\n ret;\n}\n";

static char unseen[64]; // the last work whose memory is not known
static int unseen_count;

static void note_unseen(const char *work) {
    (void)snprintf(unseen, sizeof unseen, "%s", work);
    unseen_count++;
}

static struct vram_driver *open_checked(void) {
    struct vram_driver *driver = NULL;
    uint64_t context;
    assert_int_equal(vr_check_create(note_finding, NULL, &checking.check), VRAM_OK);
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.memory_bytes = VR_GIB, .host_thread = true}, &driver), VRAM_OK);
    checking.unseen = note_unseen;
    unseen_count = 0;
    vr_sim_of(driver)->checking = &checking;
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    found = 0;
    return driver;
}

static void close_checked(struct vram_driver *driver) {
    vram_driver_destroy(driver);
    assert_false(vr_check_has_failed(checking.check));
    vr_check_destroy(checking.check);
}

static uint64_t new_stream(struct vram_driver *driver, unsigned flags) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, flags), SUCCESS);
    return stream;
}

static uint64_t new_event(struct vram_driver *driver) {
    uint64_t event;
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    return event;
}

static uint64_t alloc(struct vram_driver *driver, uint64_t size_bytes) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc, &address, size_bytes), SUCCESS);
    return address;
}

static void set(struct vram_driver *driver, uint64_t address, uint64_t stream) {
    assert_cu(vr_cu(driver, memset_d8_async, address, 1, 4096, stream), SUCCESS);
}

static void expect(enum vr_check_kind kind, int number) {
    assert_int_equal(found, number);
    if (number > 0) assert_int_equal(last.kind, kind);
}

static void streams_and_events(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t event = new_event(driver), memory = alloc(driver, 8192);
    set(driver, memory, a);
    assert_cu(vr_cu(driver, stream_wait_event, b, event, 0), SUCCESS); // not recorded: no wait
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 1);
    assert_string_equal(last.later.work, "a memset");
    assert_int_equal(last.later.stack, calls);
    assert_cu(vr_cu(driver, event_record, event, b), SUCCESS);
    set(driver, memory + 4096, b);
    assert_cu(vr_cu(driver, stream_wait_event, a, event, 0), SUCCESS);
    set(driver, memory, a);
    expect(VR_CHECK_RACE, 1);
    set(driver, memory + 4096, a); // after the record
    expect(VR_CHECK_RACE, 2);
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, b), SUCCESS);
    set(driver, memory, b);
    assert_cu(vr_cu(driver, event_record, event, b), SUCCESS);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    set(driver, memory, a);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 2);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
    close_checked(driver);
    (void)state;
}

static void default_streams(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t blocking = new_stream(driver, 0), free_running = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t memory = alloc(driver, 4096);
    set(driver, memory, blocking);
    set(driver, memory, 0);
    set(driver, memory, blocking);
    expect(VR_CHECK_RACE, 0);
    set(driver, memory, free_running);
    expect(VR_CHECK_RACE, 1);
    close_checked(driver);
    (void)state;
}

// cuMemFree waits for the device, so the next user of the memory is ordered after it.
static void frees_that_wait(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t memory = alloc(driver, 4096);
    set(driver, memory, a);
    assert_cu(vr_cu(driver, mem_free, memory), SUCCESS);
    memory = alloc(driver, 4096);
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 0);
    close_checked(driver);
    (void)state;
}

static void pools(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t memory;
    assert_cu(vr_cu(driver, mem_alloc_async, &memory, 4096, a), SUCCESS);
    set(driver, memory, a);
    assert_cu(vr_cu(driver, mem_free_async, memory, a), SUCCESS);
    expect(VR_CHECK_RACE, 0);
    assert_cu(vr_cu(driver, mem_alloc_async, &memory, 4096, a), SUCCESS);
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 1); // b does not wait for the allocation
    assert_cu(vr_cu(driver, mem_free_async, memory, a), SUCCESS);
    expect(VR_CHECK_FREED_IN_USE, 2);
    assert_string_equal(last.later.work, "cuMemFreeAsync");
    close_checked(driver);
    (void)state;
}

// A copy to pageable memory is complete when it returns; one to pinned memory is not.
static void host_memory(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t memory = alloc(driver, 4096);
    static char pageable[4096];
    uint64_t pinned;
    set(driver, memory, a);
    assert_cu(vr_cu(driver, memcpy_async, (uint64_t)(uintptr_t)pageable, memory, 4096, a), SUCCESS);
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 0);
    assert_cu(vr_cu(driver, stream_synchronize, b), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_alloc, &pinned, 4096, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, pinned, memory, 4096, a), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, pinned), SUCCESS);
    expect(VR_CHECK_HOST_RACE, 1);
    assert_string_equal(last.earlier.work, "a copy from the device to the host");
    close_checked(driver);
    (void)state;
}

// The program may go on to use memory that was registered, and what comes after pinned memory at the same address.
static void memory_that_was_registered(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t memory = alloc(driver, 4096);
    static char bytes[4096];
    const uint64_t host = (uint64_t)(uintptr_t)bytes;
    assert_cu(vr_cu(driver, mem_host_register, host, sizeof bytes, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_unregister, host), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_htod, memory, bytes, sizeof bytes), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, bytes, memory, sizeof bytes), SUCCESS);
    expect(VR_CHECK_USE_AFTER_FREE, 0);
    close_checked(driver);
    (void)state;
}

// A set of pinned or managed memory that is not "async" is complete when it returns; so is any copy from the host to the host.
static void calls_that_wait_for_host_memory(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t one, other;
    assert_cu(vr_cu(driver, mem_host_alloc, &one, 4096, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_alloc, &other, 4096, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, one, other, 4096, a), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, other), SUCCESS);
    expect(VR_CHECK_HOST_RACE, 0);
    assert_cu(vr_cu(driver, memset_d8, one, 1, 4096), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, one), SUCCESS);
    expect(VR_CHECK_HOST_RACE, 0);
    assert_cu(vr_cu(driver, mem_host_alloc, &one, 4096, 0), SUCCESS);
    set(driver, one, a); // the asynchronous one
    assert_cu(vr_cu(driver, mem_free_host, one), SUCCESS);
    expect(VR_CHECK_HOST_RACE, 1);
    close_checked(driver);
    (void)state;
}

// A module's variables may get the addresses of memory that was freed.
static void variables_of_modules(void **state) {
    static const char variable[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b32 num;\n";
    struct vram_driver *driver = open_checked();
    uint64_t module, address, size_bytes;
    const uint32_t number = 1;
    vr_sim_of(driver)->options.addresses = VRAM_SIM_REUSE;
    const uint64_t memory = alloc(driver, 4096);
    assert_cu(vr_cu(driver, mem_free, memory), SUCCESS);
    assert_cu(vr_sim_call_module_load_data(vr_sim_of(driver), &module, variable), SUCCESS);
    assert_cu(vr_sim_call_module_get_global(vr_sim_of(driver), &address, &size_bytes, module, "num"), SUCCESS);
    assert_int_equal(address, memory);
    assert_cu(vr_cu(driver, memcpy_htod, address, &number, size_bytes), SUCCESS);
    expect(VR_CHECK_USE_AFTER_FREE, 0);
    close_checked(driver);
    (void)state;
}

static struct {
    uint64_t address, size_bytes;
    enum vr_sim_page_access access;
} protected;
static void protect(uint64_t address, uint64_t size_bytes, enum vr_sim_page_access access) {
    protected.address = address;
    protected.size_bytes = size_bytes;
    protected.access = access;
}

// Pinned memory is closed until the host has waited for the copy that writes it, and readable while a copy reads it.
static void guards(void **state) {
    checking.protect = protect;
    struct vram_driver *driver = open_checked();
    struct vr_sim *sim = vr_sim_of(driver);
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), memory = alloc(driver, 1 << 16), page = vr_os_page_bytes();
    uint64_t pinned;
    assert_cu(vr_cu(driver, mem_host_alloc, &pinned, 1 << 16, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, pinned + 8, memory, page, a), SUCCESS);
    assert_int_equal(protected.address, pinned);
    assert_int_equal(protected.size_bytes, 2 * page);
    assert_int_equal(protected.access, VR_SIM_PAGE_CLOSED);
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    assert_int_equal(protected.access, VR_SIM_PAGE_OPEN);
    assert_false(vr_sim_guards_fault(sim, pinned + 8, false, (struct vr_check_place){0}));

    assert_cu(vr_cu(driver, memcpy_async, memory, pinned, 4096, a), SUCCESS);
    assert_int_equal(protected.access, VR_SIM_PAGE_READABLE);
    assert_true(vr_sim_guards_fault(sim, pinned + 4, true, (struct vr_check_place){7, "the host"}));
    assert_int_equal(protected.access, VR_SIM_PAGE_OPEN);
    expect(VR_CHECK_HOST_RACE, 1);
    assert_int_equal(last.later.stack, 7);

    // Bytes of the page that the copy does not use: no mistake, but the page is open again.
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, pinned, memory, 16, a), SUCCESS);
    assert_int_equal(protected.access, VR_SIM_PAGE_CLOSED);
    assert_true(vr_sim_guards_fault(sim, pinned + 64, true, (struct vr_check_place){8, "the host"}));
    assert_int_equal(protected.access, VR_SIM_PAGE_OPEN);
    expect(VR_CHECK_HOST_RACE, 1);
    assert_int_equal(sim->guard_count, 0);
    close_checked(driver);
    checking.protect = NULL;
    (void)state;
}

static void launch(struct vram_driver *driver, uint64_t kernel, uint64_t from, uint64_t to, uint64_t stream) {
    void *arguments[] = {&from, &to};
    assert_cu(vr_sim_call_launch_kernel(vr_sim_of(driver), kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL), SUCCESS);
}

static uint64_t load_kernel(struct vram_driver *driver, const char *name) {
    uint64_t module, kernel;
    assert_cu(vr_sim_call_module_load_data(vr_sim_of(driver), &module, ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(vr_sim_of(driver), &kernel, module, name), SUCCESS);
    return kernel;
}

// A pointer to const is read, and the other one of such a kernel is written.
static void kernels(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t from = alloc(driver, 4096), to = alloc(driver, 8192);
    const uint64_t copy = load_kernel(driver, "_Z4readPKfPf"), both = load_kernel(driver, "_Z4bothPfS_");
    launch(driver, copy, from, to, a);
    launch(driver, copy, from, to + 4096, b); // both only read `from`
    expect(VR_CHECK_RACE, 0);
    launch(driver, copy, from, to, b);
    expect(VR_CHECK_RACE, 1);
    assert_int_equal(last.address, to);
    set(driver, from, b);
    expect(VR_CHECK_RACE, 2);
    assert_string_equal(last.earlier.work, "_Z4readPKfPf");
    assert_int_equal(last.earlier.effect, VR_CHECK_READ);
    // It is unknown which of its two pointers the other kernel writes.
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    launch(driver, both, from, to, a);
    launch(driver, both, from, to, b);
    expect(VR_CHECK_RACE, 2);
    set(driver, to, b);
    expect(VR_CHECK_RACE, 3);
    close_checked(driver);
    (void)state;
}

// A kernel that writes mapped memory, and a set of managed memory: the host has to wait before it reads.
static void guards_of_kernels(void **state) {
    checking.protect = protect;
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), from = alloc(driver, 4096);
    const uint64_t copy = load_kernel(driver, "_Z4readPKfPf");
    uint64_t mapped, managed;
    assert_cu(vr_cu(driver, mem_host_alloc, &mapped, 4096, VR_CU_MEM_HOST_ALLOC_DEVICE_MAP), SUCCESS);
    launch(driver, copy, from, mapped, a);
    assert_int_equal(protected.address, mapped);
    assert_int_equal(protected.access, VR_SIM_PAGE_CLOSED);
    assert_true(vr_sim_guards_fault(vr_sim_of(driver), mapped, false, (struct vr_check_place){7, "the host"}));
    expect(VR_CHECK_HOST_RACE, 1);
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    assert_cu(vr_sim_call_mem_alloc_managed(vr_sim_of(driver), &managed, 4096, VR_CU_MEM_ATTACH_GLOBAL), SUCCESS);
    set(driver, managed, a);
    assert_int_equal(protected.address, managed);
    assert_int_equal(protected.access, VR_SIM_PAGE_CLOSED);
    assert_true(vr_sim_guards_fault(vr_sim_of(driver), managed, false, (struct vr_check_place){8, "the host"}));
    expect(VR_CHECK_HOST_RACE, 2);
    close_checked(driver);
    checking.protect = NULL;
    (void)state;
}

// cuMemcpyDtoD may return before the copy is complete. Streams that do not follow the default stream have to wait for it.
static void copies_on_the_device(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t free_running = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), blocking = new_stream(driver, 0);
    const uint64_t from = alloc(driver, 4096), to = alloc(driver, 4096);
    static char pageable[4096];
    assert_cu(vr_sim_call_memcpy_dtod(vr_sim_of(driver), to, from, 4096), SUCCESS);
    set(driver, to, blocking);
    expect(VR_CHECK_RACE, 0);
    set(driver, from, free_running);
    expect(VR_CHECK_RACE, 1);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, pageable, to, 4096), SUCCESS);
    set(driver, to, free_running);
    expect(VR_CHECK_RACE, 1);
    close_checked(driver);
    (void)state;
}

// A library's kernel names the call that it stands for, and the memory that the call reads and writes.
static void library_calls(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t from = alloc(driver, 8192), to = alloc(driver, 8192), kernel = load_kernel(driver, "standin_work");
    const uint64_t rest = alloc(driver, 8192);
    struct vr_sim_library_call call = {.name = "ncclAllGather",
                                       .count = 3,
                                       .operands = {{from, 4096, VR_CHECK_READ}, {to, 8192, VR_CHECK_WRITE}, {to, 0, VR_CHECK_WRITE}}};
    void *arguments[] = {&call};
    assert_cu(vr_sim_call_launch_kernel(vr_sim_of(driver), kernel, 1, 1, 1, 1, 1, 1, 0, a, arguments, NULL), SUCCESS);
    set(driver, from + 4096, b);
    expect(VR_CHECK_RACE, 0);
    set(driver, to + 4096, b);
    expect(VR_CHECK_RACE, 1);
    assert_string_equal(last.earlier.work, "ncclAllGather");
    assert_int_equal(last.earlier.effect, VR_CHECK_WRITE);
    set(driver, from, b);
    expect(VR_CHECK_RACE, 2);
    assert_int_equal(last.earlier.effect, VR_CHECK_READ);
    call = (struct vr_sim_library_call){.name = "cufftExecC2C", .count = 1, .operands = {{rest, 4, VR_CHECK_WRITE | VR_SIM_LIBRARY_OPEN}}};
    assert_cu(vr_sim_call_launch_kernel(vr_sim_of(driver), kernel, 1, 1, 1, 1, 1, 1, 0, a, arguments, NULL), SUCCESS);
    set(driver, rest + 4096, b); // perhaps beyond the operand: not certain
    expect(VR_CHECK_RACE, 2);
    set(driver, rest, b);
    expect(VR_CHECK_RACE, 3);
    assert_int_equal(unseen_count, 0);
    call.count = 100; // not a library's: nothing is known
    assert_cu(vr_sim_call_launch_kernel(vr_sim_of(driver), kernel, 1, 1, 1, 1, 1, 1, 0, b, arguments, NULL), SUCCESS);
    expect(VR_CHECK_RACE, 3);
    call = (struct vr_sim_library_call){.name = "cublasSgemmBatched"};
    assert_cu(vr_sim_call_launch_kernel(vr_sim_of(driver), kernel, 1, 1, 1, 1, 1, 1, 0, b, arguments, NULL), SUCCESS);
    assert_int_equal(unseen_count, 2);
    assert_string_equal(unseen, "cublasSgemmBatched");
    close_checked(driver);
    (void)state;
}

// Calls that a library makes only for the simulator order nothing and use nothing.
static void hidden_calls(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t memory = alloc(driver, 4096);
    set(driver, memory, a);
    hidden = true;
    set(driver, memory, b);
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    hidden = false;
    expect(VR_CHECK_RACE, 0);
    set(driver, memory, b);
    expect(VR_CHECK_RACE, 1); // the hidden wait did not order it
    vr_check_disagreement(checking.check, (struct vr_check_place){9, "ncclAllReduce of 8 float32 on rank 1"},
                          "ncclAllReduce of 9 float32 on rank 0");
    expect(VR_CHECK_COLLECTIVE, 2);
    assert_int_equal(last.later.stack, 9);
    close_checked(driver);
    (void)state;
}

// Two branches of a captured graph that write the same bytes, and the work after the launch.
static void graphs(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    const uint64_t fork = new_event(driver), join = new_event(driver), memory = alloc(driver, 8192), other = alloc(driver, 4096);
    uint64_t graph, exec;
    assert_cu(vr_cu(driver, stream_begin_capture, a, VR_CU_STREAM_CAPTURE_MODE_GLOBAL), SUCCESS);
    set(driver, other, a);
    assert_cu(vr_cu(driver, event_record, fork, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, b, fork, 0), SUCCESS);
    set(driver, memory, a);
    set(driver, memory + 4096, b);
    set(driver, other, b);
    assert_cu(vr_cu(driver, event_record, join, b), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, a, join, 0), SUCCESS);
    set(driver, memory + 4096, a);
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    for (int i = 0; i < 3; i++) assert_cu(vr_cu(driver, graph_launch, exec, i == 1 ? b : a), SUCCESS); // a launch waits for the one before
    set(driver, memory, a);
    expect(VR_CHECK_RACE, 0);
    set(driver, other, b);
    expect(VR_CHECK_RACE, 1);
    assert_true(last.earlier.launch > last.earlier.stack && last.later.launch == 0); // captured, then launched
    close_checked(driver);
    (void)state;
}

// A copy in a graph guards the pinned memory that it reads.
static void guards_of_graphs(void **state) {
    checking.protect = protect;
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), memory = alloc(driver, 4096);
    uint64_t pinned, graph, exec;
    assert_cu(vr_cu(driver, mem_host_alloc, &pinned, 4096, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, a, VR_CU_STREAM_CAPTURE_MODE_GLOBAL), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, memory, pinned, 4096, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_int_equal(vr_sim_of(driver)->guard_count, 0);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    assert_int_equal(protected.access, VR_SIM_PAGE_READABLE);
    assert_true(vr_sim_guards_fault(vr_sim_of(driver), pinned + 4, true, (struct vr_check_place){7, "the host"}));
    expect(VR_CHECK_HOST_RACE, 1);
    close_checked(driver);
    checking.protect = NULL;
    (void)state;
}

// A launch of a graph whose memory was freed and allocated again, and of one whose memory was not.
static void stale_graphs(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t memory = alloc(driver, 4096), graph, exec;
    assert_cu(vr_cu(driver, stream_begin_capture, a, VR_CU_STREAM_CAPTURE_MODE_GLOBAL), SUCCESS);
    set(driver, memory, a);
    const uint32_t captured = calls;
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    expect(VR_CHECK_STALE_GRAPH, 0);
    assert_cu(vr_cu(driver, mem_free, memory), SUCCESS);
    assert_int_equal(vram_sim_queue_address(driver, memory), VRAM_OK);
    assert_int_equal(alloc(driver, 4096), memory);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    expect(VR_CHECK_STALE_GRAPH, 1);
    assert_int_equal(last.earlier.stack, captured);
    assert_int_equal(last.later.stack, calls);
    close_checked(driver);
    (void)state;
}

static void refused_calls(void **state) {
    struct vram_driver *driver = open_checked();
    const uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), memory = alloc(driver, 4096), event = new_event(driver);
    assert_cu(vr_cu(driver, memset_d8_async, memory, 1, 8192, a), INVALID_VALUE);
    expect(VR_CHECK_OUT_OF_BOUNDS, 1);
    assert_cu(vr_cu(driver, mem_free, memory + 512), INVALID_VALUE);
    expect(VR_CHECK_MISUSE, 2);
    assert_false(last.was_freed);
    assert_cu(vr_cu(driver, mem_free, memory), SUCCESS);
    const uint32_t freed = calls;
    assert_cu(vr_cu(driver, mem_free, memory), INVALID_VALUE);
    expect(VR_CHECK_MISUSE, 3);
    assert_int_equal(last.freed.stack, freed);
    assert_cu(vr_cu(driver, memset_d8_async, memory, 1, 16, a), INVALID_VALUE);
    expect(VR_CHECK_USE_AFTER_FREE, 4);
    assert_cu(vr_cu(driver, mem_free, 1234), INVALID_VALUE); // nothing is known about it
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, a, event, 0), INVALID_HANDLE);
    expect(VR_CHECK_MISUSE, 5);
    assert_cu(vr_cu(driver, stream_destroy, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, a), INVALID_HANDLE);
    expect(VR_CHECK_MISUSE, 6);
    assert_string_equal(last.earlier.work, "the destruction of the stream");
    close_checked(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_and_events),
        cmocka_unit_test(default_streams),
        cmocka_unit_test(frees_that_wait),
        cmocka_unit_test(pools),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(memory_that_was_registered),
        cmocka_unit_test(calls_that_wait_for_host_memory),
        cmocka_unit_test(variables_of_modules),
        cmocka_unit_test(guards),
        cmocka_unit_test(kernels),
        cmocka_unit_test(guards_of_kernels),
        cmocka_unit_test(copies_on_the_device),
        cmocka_unit_test(library_calls),
        cmocka_unit_test(hidden_calls),
        cmocka_unit_test(graphs),
        cmocka_unit_test(guards_of_graphs),
        cmocka_unit_test(stale_graphs),
        cmocka_unit_test(refused_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
