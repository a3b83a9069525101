// sim_checkpoint.c: a process whose calls are locked and whose device memory is given back (cuCheckpointProcess*). The driver of a program
// checkpoints its own process only. The bytes of device memory are host memory already, so a checkpoint moves none.
#include "sim/sim.h"
#include "sim/sim_abi.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_streams.h"

static vr_cu_result check_process(int pid) {
    if (pid <= 0) return VR_CU_INVALID_VALUE;
    return (uint64_t)pid == vr_os_process_id() ? VR_CU_SUCCESS : VR_CU_NOT_SUPPORTED;
}

static vr_cu_result check_state(const struct vr_sim *sim, int pid, enum vr_sim_process_state needed) {
    const vr_cu_result result = check_process(pid);
    if (result != VR_CU_SUCCESS) return result;
    return sim->process.state == needed ? VR_CU_SUCCESS : VR_CU_ILLEGAL_STATE;
}

static bool are_zero(const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (((const unsigned char *)bytes)[i] != 0) return false;
    return true;
}

void vr_sim_wait_until_running(struct vr_sim *sim) {
    while (sim->process.state != VR_SIM_PROCESS_RUNNING) vr_signal_wait(&sim->process.changed, &sim->lock, UINT64_MAX);
}

// Returns when the work of all devices ends.
static uint64_t end_of_work(const struct vr_sim *sim) {
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        if (sim->devices[i].tail_ns > end_ns) end_ns = sim->devices[i].tail_ns;
    return end_ns;
}

// Other threads' calls wait from now on; work that was submitted ends first, with its host functions.
vr_cu_result vr_sim_checkpoint_process_lock(struct vr_sim *sim, int pid, const struct vr_cu_checkpoint_lock *options) {
    const vr_cu_result result = check_state(sim, pid, VR_SIM_PROCESS_RUNNING);
    if (result != VR_CU_SUCCESS) return result;
    if (options != NULL && (options->reserved_0 != 0 || !are_zero(options->reserved, sizeof options->reserved))) return VR_CU_INVALID_VALUE;
    const uint64_t most_ns = options == NULL || options->timeout_ms == 0 ? UINT64_MAX : options->timeout_ms * UINT64_C(1000000);
    if (end_of_work(sim) > sim->clock_ns && end_of_work(sim) - sim->clock_ns > most_ns) {
        sim->clock_ns += most_ns;
        return VR_CU_NOT_READY;
    }
    sim->process.state = VR_SIM_PROCESS_LOCKED;
    vr_sim_callback_wait(sim, sim->callbacks.posted);
    vr_sim_wait_all(sim);
    return VR_CU_SUCCESS;
}

// Memory that other processes or the host share would have to be taken from them.
vr_cu_result vr_sim_checkpoint_process_checkpoint(struct vr_sim *sim, int pid, const struct vr_cu_checkpoint_reserved *options) {
    const vr_cu_result result = check_state(sim, pid, VR_SIM_PROCESS_LOCKED);
    if (result != VR_CU_SUCCESS) return result;
    if (options != NULL && !are_zero(options, sizeof *options)) return VR_CU_INVALID_VALUE;
    if (sim->shared_count != 0 || sim->managed.live != 0) return VR_CU_NOT_SUPPORTED;
    for (uint32_t i = 0; i < sim->options.device_count; i++) {
        sim->process.away_bytes[i] = sim->devices[i].used_bytes;
        sim->devices[i].used_bytes = 0;
    }
    sim->process.state = VR_SIM_PROCESS_CHECKPOINTED;
    return VR_CU_SUCCESS;
}

static bool stays_on_its_devices(const struct vr_cu_checkpoint_restore *options) {
    for (uint32_t i = 0; i < options->pair_count; i++)
        if (memcmp(options->pairs[i].from, options->pairs[i].to, sizeof options->pairs[i].from) != 0) return false;
    return true;
}

void vr_sim_process_take_back(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->options.device_count; i++) {
        sim->devices[i].used_bytes += sim->process.away_bytes[i];
        sim->process.away_bytes[i] = 0;
    }
}

// Takes the memory of all devices, or none.
vr_cu_result vr_sim_checkpoint_process_restore(struct vr_sim *sim, int pid, const struct vr_cu_checkpoint_restore *options) {
    const vr_cu_result result = check_state(sim, pid, VR_SIM_PROCESS_CHECKPOINTED);
    if (result != VR_CU_SUCCESS) return result;
    if (options != NULL && options->pair_count != 0 && options->pairs == NULL) return VR_CU_INVALID_VALUE;
    if (options != NULL && !stays_on_its_devices(options)) return VR_CU_NOT_SUPPORTED;
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        if (sim->process.away_bytes[i] > sim->devices[i].memory_bytes) return VR_CU_OUT_OF_MEMORY;
    vr_sim_process_take_back(sim);
    sim->process.state = VR_SIM_PROCESS_LOCKED;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_checkpoint_process_unlock(struct vr_sim *sim, int pid, const struct vr_cu_checkpoint_reserved *options) {
    const vr_cu_result result = check_state(sim, pid, VR_SIM_PROCESS_LOCKED);
    if (result != VR_CU_SUCCESS) return result;
    if (options != NULL && !are_zero(options, sizeof *options)) return VR_CU_INVALID_VALUE;
    sim->process.state = VR_SIM_PROCESS_RUNNING;
    vr_signal_raise(&sim->process.changed);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_checkpoint_process_get_state(struct vr_sim *sim, int pid, int *state) {
    const vr_cu_result result = state == NULL ? VR_CU_INVALID_VALUE : check_process(pid);
    if (result == VR_CU_SUCCESS) *state = sim->process.state;
    return result;
}

// NVIDIA's driver has a thread for this. Here the calling thread restores, so the process's first thread stands for it.
vr_cu_result vr_sim_checkpoint_process_get_restore_thread_id(struct vr_sim *sim, int pid, int *thread) {
    (void)sim;
    const vr_cu_result result = thread == NULL ? VR_CU_INVALID_VALUE : check_process(pid);
    if (result == VR_CU_SUCCESS) *thread = pid;
    return result;
}
