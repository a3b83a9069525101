// sim_calls.c: the call table of the simulated driver. Each row of calls.def gets a function that takes the lock, counts the call, runs
// vr_sim_<member>() and moves the clock by the call's cost.
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_guards.h"

// Calls that an allocator makes when it checks its fences. They complete nothing, so they count as progress only if they take time.
VR_INLINE bool is_question(const char *member) {
    return strcmp(member, "event_query") == 0 || strncmp(member, "ctx_get_", 8) == 0 || strcmp(member, "ctx_set_current") == 0 ||
           strcmp(member, "stream_is_capturing") == 0 || strcmp(member, "thread_exchange_capture_mode") == 0;
}

static void leave_call(struct vr_sim *sim, enum vr_sim_call call, uint64_t entered_ns, bool question) {
    if (VR_UNLIKELY(sim->checking != NULL)) {
        vr_sim_guards_refresh(sim);
        vr_check_pause(sim->checking->check, false);
        sim->stack = 0;
    }
    sim->clock_ns += sim->charge_ns;
    if (!question || sim->clock_ns != entered_ns) vr_sim_moved(sim);
    sim->counts[call]++;
    vr_sim_publish(sim);
    sim->costs_ns[call] += sim->clock_ns - entered_ns;
#if VRAM_CHECK >= 3
    // The check walks every object, so it runs less often the more there are: its share of the time stays bounded.
    uint64_t objects = sim->spaces.count + sim->mappings.count + sim->events.live + sim->streams.live + sim->nodes.live;
    assert(sim->counts[call] % (1 + objects / 64) != 0 || vr_sim_check(sim));
#endif
    if (VR_LIKELY(sim->watch == NULL || !vr_sim_read_any(&sim->read))) {
        vr_mutex_unlock(&sim->lock);
        return;
    }
    const struct vr_sim_read read = sim->read;
    const struct vr_sim_reader reader = sim->reader;
    sim->counted = 0; // applies to one read only
    sim->read = (struct vr_sim_read){0};
    vr_mutex_unlock(&sim->lock);
    sim->watch->notify(&reader, &read);
}

// Returns whether this member can copy device memory to the host. Resolved at compile time.
VR_INLINE bool may_read(const char *member) {
    return (strncmp(member, "memcpy", 6) == 0 && strncmp(member, "memcpy_htod", 11) != 0) || strcmp(member, "graph_launch") == 0;
}

VR_INLINE bool begins_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

// Returns whether this member can use, allocate or free memory, now or in a graph. Resolved at compile time.
VR_INLINE bool may_use(const char *member) {
    return begins_with(member, "mem") || begins_with(member, "ipc_") || begins_with(member, "launch") || begins_with(member, "graph_") ||
           strcmp(member, "stream_batch_mem_op") == 0 || begins_with(member, "stream_w") || strcmp(member, "event_destroy") == 0 ||
           strcmp(member, "event_synchronize") == 0 || strcmp(member, "stream_destroy") == 0 || strcmp(member, "stream_synchronize") == 0;
}

// Returns whether this member is allowed while the process's calls are locked. Resolved at compile time.
VR_INLINE bool may_pass(const char *member) { return begins_with(member, "checkpoint_"); }

VR_INLINE uint64_t enter_call(struct vr_sim *sim, enum vr_sim_call call, bool reads, bool uses, bool passes) {
    struct vr_sim_reader reader = {0};
    const uint32_t stack = uses && VR_UNLIKELY(sim->checking != NULL) ? sim->checking->take_stack() : 0;
    if (reads && VR_UNLIKELY(sim->watch != NULL)) sim->watch->come(&reader);
    vr_mutex_lock(&sim->lock);
    if (!passes && VR_UNLIKELY(sim->process.state != VR_SIM_PROCESS_RUNNING)) vr_sim_wait_until_running(sim);
    if (reads && VR_UNLIKELY(sim->watch != NULL)) sim->reader = reader;
    if (uses) sim->stack = stack;
    if (uses && VR_UNLIKELY(stack == VR_SIM_STACK_HIDDEN)) vr_check_pause(sim->checking->check, true);
    sim->charge_ns = vr_sim_base_cost_ns(sim, call);
    return sim->clock_ns;
}

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define WITH_SIM(...) (sim, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)      \
    static vr_cu_result call_sim_##member WITH_SELF parameters {             \
        struct vr_sim *sim = (struct vr_sim *)(void *)self;              \
        uint64_t entered_ns = enter_call(sim, VR_SIM_CALL_##member, may_read(#member), may_use(#member), may_pass(#member)); \
        const bool refused = vr_sim_is_callback_thread(sim);             \
        vr_cu_result result = refused ? VR_CU_NOT_PERMITTED : vr_sim_##member WITH_SIM arguments; \
        leave_call(sim, VR_SIM_CALL_##member, entered_ns, is_question(#member)); \
        return result;                                                   \
    }
#include "driver/calls.def"
#undef X

#define WITH_SIM_FIRST(...) (struct vr_sim *sim, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)      \
    vr_cu_result vr_sim_call_##member WITH_SIM_FIRST parameters {        \
        uint64_t entered_ns = enter_call(sim, VR_SIM_CALL_##member, may_read(#member), may_use(#member), may_pass(#member)); \
        const bool refused = vr_sim_is_callback_thread(sim);             \
        vr_cu_result result = refused ? VR_CU_NOT_PERMITTED : vr_sim_##member WITH_SIM arguments; \
        leave_call(sim, VR_SIM_CALL_##member, entered_ns, is_question(#member)); \
        return result;                                                   \
    }
#include "sim/program_calls.def"
#undef X

const struct vr_driver_calls vr_sim_calls = {
#define X(member, symbol, exported, version, parameters, arguments) call_sim_##member,
#include "driver/calls.def"
#undef X
};
// clang-format on
