// results.c: what adapters/fit/vram_values.py asks of the simulated driver, by names that no driver of NVIDIA's has. Any thread may call
// them. None takes time on the virtual clock, and none is counted as a call.
#include "driver/sim/streams/sim_results.h"
#include "libcuda.h"

EXPORT int vram_sim_results_begin(uint32_t device, uint64_t stream, int quiet);
EXPORT int vram_sim_results_look(uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes, uint8_t *levels);
EXPORT int vram_sim_results_put(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels);
EXPORT int vram_sim_results_forget(uint64_t address, uint64_t size_bytes);
EXPORT void vram_sim_results_answer(const int64_t *numbers, unsigned count, int level);
EXPORT void vram_sim_results_end(void);

// Begins an operation behind the work of a stream of a device; 0, or the driver's error: then nothing is begun. `quiet`: the thread's
// launches leave memory as it is until the end.
int vram_sim_results_begin(uint32_t device, uint64_t stream, int quiet) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = vr_sim_results_after(sim, device, stream);
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (result == VR_CU_SUCCESS && results == NULL) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) *results = (struct vr_sim_results){.begun = quiet != 0};
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// `bytes` and `levels` have room for elements * element_bytes each; the first `elements` levels are the elements'. Returns a bit for each
// level that occurs (bit 0: known), or the driver's error, negative.
int vram_sim_results_look(uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes, uint8_t *levels) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return -VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_look(sim, address, elements, element_bytes, bytes, levels);
    vr_mutex_unlock(&sim->lock);
    if (result != VR_CU_SUCCESS) return -(int)result;
    int found = 0;
    for (uint64_t i = 0; i < elements; i++) found |= 1 << levels[i];
    return found;
}

// levels NULL: all are known; 3 among them: the element stays as it is. 0, or the driver's error.
int vram_sim_results_put(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_put(sim, address, elements, element_bytes, bytes, levels);
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// A large result, which nobody computed. 0, or the driver's error.
int vram_sim_results_forget(uint64_t address, uint64_t size_bytes) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_forget(sim, address, size_bytes);
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// What the next copies of one number to the host give, made by this thread before it ends the operation.
void vram_sim_results_answer(const int64_t *numbers, unsigned count, int level) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    vr_sim_answers_say(sim, numbers, count, level > VR_SIM_KNOWN ? VR_SIM_LIKELY : VR_SIM_KNOWN);
    vr_mutex_unlock(&sim->lock);
}

void vram_sim_results_end(void) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results != NULL) *results = (struct vr_sim_results){.begun = false};
    vr_mutex_unlock(&sim->lock);
}
