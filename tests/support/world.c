#include "support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "vram/sim.h"

static void remember(const struct vr_record *record, void *user) {
    struct vr_world *world = user;
    if (vr_grow((void **)&world->records, &world->record_capacity, world->record_count + 1, sizeof *world->records) != VRAM_OK) {
        world->record_lost = true;
        return;
    }
    world->records[world->record_count++] = *record;
}

static int by_handle(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static enum vram_status driver_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

// Creates streams for a device, whose context must be current.
static enum vram_status make_streams(struct vr_world *world, uint32_t device) {
    VR_TRY(driver_status(vr_cu(world->sim, primary_ctx_retain, &world->context[device], (int)device)));
    VR_TRY(driver_status(vr_cu(world->sim, ctx_set_current, world->context[device])));
    for (size_t i = 1; i < VR_WORLD_STREAMS; i++)
        VR_TRY(driver_status(vr_cu(world->sim, stream_create, &world->stream[device][i], VR_CU_STREAM_NON_BLOCKING)));
    qsort(world->stream[device] + 1, VR_WORLD_STREAMS - 1, sizeof(uint64_t), by_handle);
    return driver_status(vr_cu(world->sim, ctx_set_current, world->context[0]));
}

static enum vram_status open_allocator(struct vr_world *world, const struct vr_world_options *options) {
    world->driver = world->sim;
    if (options->faults) VR_TRY(vram_driver_fault(world->sim, &world->driver));
    char conf[512];
    const bool verified = getenv("VRAM_TEST_VERIFY") != NULL;
    (void)snprintf(conf, sizeof conf, "%s%s", verified ? "verify:True," : "", options->conf ? options->conf : "");
    const struct vram_create_info info = {
        .driver = world->driver,
        .conf = conf,
        .tie_break = options->tie_break,
        .ignore_environment = true,
    };
    VR_TRY(vram_create(&info, &world->allocator, NULL));
    if (!options->without_record) vr_allocator_set_recorder(world->allocator, remember, world);
    return VRAM_OK;
}

enum vram_status vr_world_open(struct vr_world *world, const struct vr_world_options *options) {
    static const struct vr_world_options defaults;
    if (!options) options = &defaults;
    memset(world, 0, sizeof *world);
    world->device_count = options->sim.device_count ? options->sim.device_count : 1;
    if (world->device_count > VR_WORLD_DEVICES) return VRAM_INVALID_ARGUMENT;
    enum vram_status status = vram_sim_create(&options->sim, &world->sim);
    for (uint32_t device = 0; device < world->device_count && status == VRAM_OK; device++) status = make_streams(world, device);
    if (status == VRAM_OK) status = open_allocator(world, options);
    if (status != VRAM_OK) (void)vr_world_close(world);
    return status;
}

void vr_world_destroy_allocator(struct vr_world *world) {
    vram_destroy(world->allocator);
    world->allocator = NULL;
}

uint64_t vr_world_close(struct vr_world *world) {
    vr_world_destroy_allocator(world);
    if (world->driver != world->sim) vram_driver_destroy(world->driver);
    uint64_t live = 0;
    if (world->sim) {
        for (uint32_t device = 0; device < VR_WORLD_DEVICES; device++) {
            for (size_t i = 1; i < VR_WORLD_STREAMS; i++) {
                if (!world->stream[device][i]) continue;
                if (vr_cu(world->sim, stream_destroy, world->stream[device][i]) != VR_CU_SUCCESS) live++;
            }
            if (world->context[device] && vr_cu(world->sim, primary_ctx_release, (int)device) != VR_CU_SUCCESS) live++;
        }
        live += vram_sim_live_objects(world->sim);
        vram_driver_destroy(world->sim);
    }
    free(world->records);
    memset(world, 0, sizeof *world);
    return live;
}

enum vram_status vr_world_complete(struct vr_world *world, uint32_t device, uint64_t stream) {
    VR_TRY(driver_status(vr_cu(world->sim, ctx_set_current, world->context[device])));
    VR_TRY(vram_sim_complete(world->sim, stream));
    return driver_status(vr_cu(world->sim, ctx_set_current, world->context[0]));
}

void vr_world_forget(struct vr_world *world) { world->record_count = 0; }
