// Making and unmaking an allocator of pinned memory; its settings.
#include "host/host_background.h"
#include "host/host_context.h"
#include "host/host_fences.h"
#include "host/host_pools.h"
#include "host/host_source.h"

static enum vram_status open_driver(struct vram_host *host, struct vram_driver *driver, struct vram_error *error) {
    host->driver = driver;
    if (driver == NULL) {
        VR_TRY(vram_driver_system(&host->driver, error));
        host->owns_driver = true;
    }
    return VRAM_OK;
}

enum vram_status vram_host_create(const struct vram_host_create_info *info, struct vram_host **host, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, host);
    static const struct vram_host_create_info defaults;
    if (info == NULL) info = &defaults;
    struct vram_host *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for an allocator");
    vr_mutex_init(&made->poll);
    vr_mutex_init(&made->giving);
    vr_mutex_init(&made->setup);
    vr_mutex_init(&made->mutex);
    vr_signal_init(&made->work);
    made->device = info->device;
    made->standard.host = made;
    made->standard.references = 1;
    vr_options_init(&made->options);
    const char *variable = NULL;
    const char *conf = info->conf != NULL ? info->conf : info->ignore_environment ? NULL : vr_options_environment(&variable);
    enum vram_status status = vr_options_parse(&made->options, conf, error);
    if (status == VRAM_OK) status = open_driver(made, info->driver, error);
    if (status != VRAM_OK) {
        vram_host_destroy(made);
        return status;
    }
    *host = made;
    return VRAM_OK;
}

enum vram_status vram_host_configure(struct vram_host *host, const char *conf, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, host);
    vr_host_lock(host);
    struct vr_options options = host->options;
    const enum vram_status status = vr_options_parse(&options, conf, error);
    if (status == VRAM_OK) host->options = options;
    vr_host_background_wake(host);
    vr_host_unlock(host);
    return status;
}

// --- the end ------------------------------------------------------------------------------------------------------------------------

static int by_address(const void *left, const void *right) {
    const struct vr_host_block *a = *(struct vr_host_block *const *)left, *b = *(struct vr_host_block *const *)right;
    return VR_ORDER(b->address, a->address);
}

static void send_one_out(struct vram_host *host, struct vr_host_block *block) {
    vr_host_uses_drop(host, block);
    if (block->origin == VRAM_HOST_RESERVED) {
        free(block);
        return;
    }
    block->next = host->outgoing;
    host->outgoing = block;
}

// Every block goes, in whatever state it is; those of the reserve segment go with it. By address, so that every run of a program gives back
// in the same order; where there is no memory for that, in any.
static void send_everything_out(struct vram_host *host) {
    struct vr_host_block **sorted = malloc((host->table.blocks.count + 1) * sizeof *sorted), *block;
    size_t at = 0, count = 0;
    while ((block = vr_host_table_next(&host->table, &at)) != NULL) {
        if (sorted == NULL)
            send_one_out(host, block);
        else
            sorted[count++] = block;
    }
    if (count != 0) qsort(sorted, count, sizeof(struct vr_host_block *), by_address);
    for (size_t i = 0; i < count; i++) send_one_out(host, sorted[i]);
    free(sorted);
    vr_map_release(&host->table.blocks);
}

// What the driver does not take even now is left to it: memory that it may still have mapped must not be unmapped.
static void forget_stuck(struct vram_host *host) {
    vr_host_send_stuck_out(host);
    while (host->outgoing != NULL) {
        struct vr_host_block *block = host->outgoing;
        host->outgoing = block->next;
        free(block);
    }
}

static void free_pools(struct vram_host *host) {
    while (host->pools != NULL) {
        struct vram_host_pool *next = host->pools->next;
        free(host->pools);
        host->pools = next;
    }
    free(host->routes);
}

static void give_everything_back(struct vram_host *host) {
    (void)vr_host_poll(host, VR_HOST_POLL_WAIT);
    (void)vr_host_poll(host, VR_HOST_POLL_WAIT); // what had no event before has one now
    send_everything_out(host);
    vr_host_fences_release(host);
    for (int attempt = 0; attempt < VR_CU_TRIES; attempt++) {
        vr_host_send_stuck_out(host);
        (void)vr_host_give_back(host);
    }
    forget_stuck(host);
    vr_host_reserve_release(host);
    vr_host_leave_home(host);
}

void vram_host_destroy(struct vram_host *host) {
    if (host == NULL) return;
    vr_host_background_end(host);
    if (host->driver != NULL) give_everything_back(host);
    free_pools(host);
    if (host->owns_driver) vram_driver_destroy(host->driver);
    vr_signal_destroy(&host->work);
    vr_mutex_destroy(&host->mutex);
    vr_mutex_destroy(&host->setup);
    vr_mutex_destroy(&host->giving);
    vr_mutex_destroy(&host->poll);
    free(host);
}
