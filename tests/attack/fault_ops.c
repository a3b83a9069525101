// Attacks an allocator whose driver refuses calls: single calls, pairs (the second is refused while the first refusal is handled), or a
// random 1 to 30 % of all calls. There are 240 scenarios, each an option string and a mix of operations; calls are refused while the
// allocator is created, used and destroyed. Invariants hold after each refusal, no two blocks overlap, the library works once the driver
// does, and at the end memory, objects and contexts are released. fault_ops [--seed N] [--faults COUNT] [--refusals single|pairs|random]:
// runs seeds from N until COUNT calls were refused. A seed selects a scenario; 240 consecutive seeds cover all.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "fault_attack.h"
#include "vram/host.h"
#include "vram/sim.h"

enum { OPERATIONS = 160, SCENARIOS = 240, CONFS = SCENARIOS / ATTACK_MIXES };
#define CONTEXT_BYTES (2 * VR_MIB)

enum refusals { SINGLE, PAIRS, RANDOM, REFUSALS };
static const char *const refusal_names[REFUSALS] = {"single", "pairs", "random"};

static const char *const confs[CONFS] = {
    "",
    "expandable_segments:True",
    "expandable_segments:True,large_segment_size_mb:12,expandable_segments_reserve:0.5",
    "max_split_size_mb:24,garbage_collection_threshold:0.6",
    "release_lock_on_cudamalloc:True",
    "backend:cudaMallocAsync",
    "paged:True",
    "paged:True,warm:64MiB",
    "paged:True,share_live_pools:True",
    "paged:True,expandable_segments:True",
    "paged:True,reclaim_streams:True,warm:0.1",
    "sleepable:True",
    "sleepable:True,share_live_pools:True",
    "share_live_pools:True,reclaim_streams:True",
    "reclaim_streams:True",
    "roundup_power2_divisions:4,max_split_size_mb:32",
    "expandable_segments:True,max_split_size_mb:21,expandable_segments_reuse_oversize:True",
    "graph_capture_record_stream_reuse:True",
    "graph_capture_record_stream_reuse:True,expandable_segments:True",
    "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True",
};

// --- the machine ------------------------------------------------------------------------------------------------------------------------

static bool open_machine(struct attack *attack) {
    const struct vram_sim_options options = {
        .device_count = ATTACK_DEVICES, .memory_bytes = 400 * VR_MIB, .context_bytes = CONTEXT_BYTES, .manual_completion = true};
    if (vram_sim_create(&options, &attack->sim) != VRAM_OK || vram_driver_fault(attack->sim, &attack->driver) != VRAM_OK) return false;
    for (int device = ATTACK_DEVICES - 1; device >= 0; device--) { // so that the first device's context is current afterwards
        if (vr_cu(attack->sim, primary_ctx_retain, &attack->context[device], device) != VR_CU_SUCCESS) return false;
        if (vr_cu(attack->sim, ctx_set_current, attack->context[device]) != VR_CU_SUCCESS) return false;
        for (int i = 1; i < ATTACK_STREAMS; i++)
            if (vr_cu(attack->sim, stream_create, &attack->stream[device][i], VR_CU_STREAM_NON_BLOCKING) != VR_CU_SUCCESS) return false;
    }
    return true;
}

// Closes the machine and checks that nothing is left.
static void close_machine(struct attack *attack) {
    for (int device = 0; device < ATTACK_DEVICES; device++) {
        for (int i = 1; i < ATTACK_STREAMS; i++)
            if (vr_cu(attack->sim, stream_destroy, attack->stream[device][i]) != VR_CU_SUCCESS) attack_wrong(attack, "a stream is gone");
        if (vram_sim_memory_used(attack->sim, (uint32_t)device) > CONTEXT_BYTES) attack_wrong(attack, "memory was lost");
    }
    if (vram_sim_live_objects(attack->sim) != 0) attack_wrong(attack, "driver objects were left behind");
    for (int device = 0; device < ATTACK_DEVICES; device++) {
        if (vr_cu(attack->sim, primary_ctx_release, device) != VR_CU_SUCCESS) attack_wrong(attack, "a context is gone");
        if (vram_sim_memory_used(attack->sim, (uint32_t)device) != 0) attack_wrong(attack, "a context was lost");
    }
    vram_driver_destroy(attack->driver);
    vram_driver_destroy(attack->sim);
}

// --- a run ------------------------------------------------------------------------------------------------------------------------------

static bool make(struct attack *attack, bool refused) {
    const struct vram_create_info info = {.driver = attack->driver, .conf = attack->conf, .ignore_environment = true};
    if (refused) attack_refuse(attack, 3);
    if (vram_create(&info, &attack->allocator, NULL) == VRAM_OK) return true;
    attack_unrefuse(attack);
    if (vram_create(&info, &attack->allocator, NULL) != VRAM_OK) attack_wrong(attack, "no allocator can be made");
    return attack->wrong == NULL;
}

static void finish(struct attack *attack, bool refused) {
    attack_unrefuse(attack);
    attack_try_all(attack);
    const bool settles = attack_draw(attack, 3) != 0; // otherwise everything is live at the end
    if (settles) attack_settle(attack);
    if (settles && attack->pinned == NULL && attack_draw(attack, 2) != 0) attack_try_all(attack);
    if (!settles && attack->pool != NULL) vram_pool_release(attack->pool);
    if (refused) attack_refuse(attack, 30);
    vram_host_destroy(attack->host);
    vram_destroy(attack->allocator);
    attack_unrefuse(attack);
}

static bool run(uint64_t seed, enum refusals refusals, uint64_t *faults, uint64_t *operations) {
    static const uint32_t percents[] = {1, 3, 10, 30};
    const unsigned scenario = (unsigned)(seed % SCENARIOS);
    struct attack attack = {.random = seed * REFUSALS + refusals,
                            .conf = confs[scenario % CONFS],
                            .mix = scenario / CONFS,
                            .pairs = refusals != SINGLE,
                            .often = refusals == RANDOM};
    if (!open_machine(&attack)) return false;
    if (make(&attack, attack_draw(&attack, 4) == 0)) {
        const uint32_t percent = percents[attack_draw(&attack, VR_COUNT_OF(percents))];
        if (refusals == RANDOM) vr_fault_random(attack.driver, percent, seed);
        if (attack_draw(&attack, 2) != 0) attack_refuse(&attack, 8); // refuses calls while the device is set up
        while (attack.operations < OPERATIONS && attack.wrong == NULL) {
            if (attack_draw(&attack, 3) == 0) attack_refuse(&attack, 1 + attack_draw(&attack, 24));
            attack_step(&attack);
        }
        finish(&attack, attack_draw(&attack, 2) != 0);
    }
    *faults += vram_driver_fault_count(attack.driver);
    close_machine(&attack);
    *operations += attack.operations;
    if (attack.wrong == NULL) return true;
    printf("%s: \"%s\", mix %u, operation %" PRIu64 "; repeat: fault_ops --refusals %s --seed %" PRIu64 " --faults 1\n", attack.wrong,
           attack.conf, attack.mix, attack.operations, refusal_names[refusals], seed);
    return false;
}

int main(int argc, char **argv) {
    uint64_t seed = 1, wanted = 20000, faults = 0, operations = 0, runs = 0, failed = 0;
    bool chosen[REFUSALS] = {true, true, true};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--faults") == 0) wanted = strtoull(argv[i + 1], NULL, 0);
        for (int k = 0; k < REFUSALS && strcmp(argv[i], "--refusals") == 0; k++) chosen[k] = strcmp(argv[i + 1], refusal_names[k]) == 0;
    }
    const clock_t start = clock();
    for (; faults < wanted && failed < 10; runs++)
        for (int k = 0; k < REFUSALS; k++)
            if (chosen[k]) failed += !run(seed + runs, (enum refusals)k, &faults, &operations);
    printf("%" PRIu64 " faults in %" PRIu64 " operations of %" PRIu64 " scenarios, seeds %" PRIu64 " to %" PRIu64 ", %.1f s: %" PRIu64
           " failed\n",
           faults, operations, runs < SCENARIOS ? runs : SCENARIOS, seed, seed + runs - 1, (double)(clock() - start) / CLOCKS_PER_SEC,
           failed);
    return failed != 0;
}
