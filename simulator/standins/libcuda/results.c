// results.c: functions for adapters/fit/vram_values.py and vram_code.py and for the stand-in for NCCL, with names that NVIDIA's driver does
// not have. Any thread may call them. They take no time on the virtual clock and are not counted as calls.
#include <string.h>

#include "libcuda.h"
#include "sim/modules/sim_modules.h"
#include "sim/streams/sim_callbacks.h"
#include "vram/sim.h"

EXPORT int vram_sim_results_begin(uint32_t device, uint64_t stream);
EXPORT int vram_sim_results_look(uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes, uint8_t *levels);
EXPORT int vram_sim_results_put(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels);
EXPORT int vram_sim_results_forget(uint64_t address, uint64_t size_bytes);
EXPORT void vram_sim_results_answer(const int64_t *numbers, unsigned count, int level);
EXPORT unsigned vram_sim_results_shield(const uint64_t *addresses, const uint64_t *sizes, unsigned count);
EXPORT void vram_sim_results_end(unsigned shields);
EXPORT unsigned vram_sim_results_captured(uint64_t *addresses, uint64_t *sizes, unsigned most);
EXPORT void vram_sim_results_pass(uint64_t address, uint64_t size_bytes);
EXPORT void vram_sim_kernel_code(uint64_t function, const char *ptx);
EXPORT void vram_sim_results_lose(uint64_t address, uint64_t size_bytes);

// Checks that an operation's results can be stored after the work of a stream. Returns 0 or the driver's error.
int vram_sim_results_begin(uint32_t device, uint64_t stream) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_after(sim, device, stream);
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// Reads elements. `bytes` and `levels` have room for elements * element_bytes each; the first `elements` levels are set. Returns a mask
// with a bit for each level that occurs (bit 0: known), or the negated error of the driver.
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

// Writes elements. levels == NULL: all are known; level 3: leave the element unchanged. Returns 0 or the driver's error.
int vram_sim_results_put(uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes, const uint8_t *levels) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_put(sim, address, elements, element_bytes, bytes, levels);
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// Marks a large result, which was not computed, as unknown. Returns 0 or the driver's error.
int vram_sim_results_forget(uint64_t address, uint64_t size_bytes) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return VR_CU_NOT_INITIALIZED;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_results_forget(sim, address, size_bytes);
    vr_mutex_unlock(&sim->lock);
    return (int)result;
}

// Sets the results of this thread's next copies of one number to the host, up to the end of the operation.
void vram_sim_results_answer(const int64_t *numbers, unsigned count, int level) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    vr_sim_answers_say(sim, numbers, count, level > VR_SIM_KNOWN ? VR_SIM_LIKELY : VR_SIM_KNOWN);
    vr_mutex_unlock(&sim->lock);
}

// Protects ranges from the thread's kernels. Returns the number of earlier shields, to be passed to vram_sim_results_end(): operations
// nest.
unsigned vram_sim_results_shield(const uint64_t *addresses, const uint64_t *sizes, unsigned count) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return 0;
    vr_mutex_lock(&sim->lock);
    const struct vr_sim_results *results = vr_sim_results_here(sim);
    const unsigned before = results == NULL ? 0 : results->shield_count;
    for (unsigned i = 0; i < count; i++) vr_sim_shields_add(sim, addresses[i], sizes[i]);
    vr_mutex_unlock(&sim->lock);
    return before;
}

// Ends an operation: drops its answers, and all but the first `shields` shields.
void vram_sim_results_end(unsigned shields) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    vr_sim_answers_say(sim, NULL, 0, VR_SIM_KNOWN);
    vr_sim_shields_cut(sim, shields);
    vr_mutex_unlock(&sim->lock);
}

// Takes the outputs of kernels without shields that were captured since the last call, at most `most`, and returns their number. Size
// UINT64_MAX: unknown. most == 0 drops all. Nothing is recorded before the first call.
unsigned vram_sim_results_captured(uint64_t *addresses, uint64_t *sizes, unsigned most) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return 0;
    vr_mutex_lock(&sim->lock);
    const size_t count = vr_sim_captured_take(sim, addresses, sizes, most);
    vr_mutex_unlock(&sim->lock);
    return (unsigned)count;
}

// Marks a range as written by a kernel with unknown results.
void vram_sim_results_pass(uint64_t address, uint64_t size_bytes) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    vr_sim_transfer_pass(sim, address, size_bytes, false);
    vr_mutex_unlock(&sim->lock);
}

// The PTX of a loaded kernel, from a compiler that loads only the cubin: it shows what the kernel reads and writes.
void vram_sim_kernel_code(uint64_t function, const char *ptx) {
    struct vr_sim *sim = vr_libcuda_sim();
    const char *entry = ptx == NULL ? NULL : strstr(ptx, ".entry");
    const char *code = entry == NULL ? NULL : strchr(entry, '(');
    if (sim == NULL || code == NULL) return;
    vr_mutex_lock(&sim->lock);
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (found != NULL) vr_sim_kernel_follow(&found->image->kernels[found->kernel], code, strlen(code));
    vr_mutex_unlock(&sim->lock);
}

// Drops the data of exactly the range, which a library writes and whose results are unknown.
void vram_sim_results_lose(uint64_t address, uint64_t size_bytes) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    vr_mutex_lock(&sim->lock);
    vr_sim_transfer_lose(sim, address, size_bytes);
    vr_mutex_unlock(&sim->lock);
}
