#define _GNU_SOURCE
#include "other.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vram/sim.h"

// --- bytes ------------------------------------------------------------------------------------------------------------------------

// Every 8th word of a page suffices to distinguish seeds, and is fast.
enum { STEP = 512 };

void other_write(uint64_t address, uint64_t size_bytes, uint64_t seed) {
    for (uint64_t at = 0; at + 8 <= size_bytes; at += STEP) *(volatile uint64_t *)(uintptr_t)(address + at) = vr_mix64(seed + at);
}

int other_is(uint64_t address, uint64_t size_bytes, uint64_t seed) {
    for (uint64_t at = 0; at + 8 <= size_bytes; at += STEP)
        if (*(volatile uint64_t *)(uintptr_t)(address + at) != vr_mix64(seed + at)) return 0;
    return 1;
}

// --- the worker -------------------------------------------------------------------------------------------------------------------

static int transfer(int socket, void *bytes, size_t size_bytes, ssize_t (*call)(int, void *, size_t)) {
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t now = call(socket, (char *)bytes + done, size_bytes - done);
        if (now <= 0) return 0;
        done += (size_t)now;
    }
    return 1;
}
static ssize_t put(int socket, void *bytes, size_t size_bytes) { return send(socket, bytes, size_bytes, MSG_NOSIGNAL); }
static ssize_t get(int socket, void *bytes, size_t size_bytes) { return recv(socket, bytes, size_bytes, 0); }

static enum vram_status malloc_raw(struct vr_world *world, uint64_t size_bytes, uint64_t *address) {
    vram_set_caching(world->allocator, false);
    const enum vram_status status = vram_malloc(world->allocator, 0, size_bytes, 0, address);
    vram_set_caching(world->allocator, true);
    return status;
}

static enum vram_status carry_out(struct vr_world *world, const struct other_order *order, struct other_reply *reply,
                                  struct vram_error *error) {
    struct vram_allocator *allocator = world->allocator;
    size_t size = 0;
    enum vram_status status;
    switch (order->what) {
    case OTHER_MALLOC: return vram_malloc(allocator, 0, order->size_bytes, 0, &reply->address);
    case OTHER_MALLOC_RAW: return malloc_raw(world, order->size_bytes, &reply->address);
    case OTHER_FREE: return vram_free(allocator, order->address);
    case OTHER_EMPTY_CACHE: return vram_empty_cache(allocator);
    case OTHER_EXPORT:
        status = vram_export(allocator, order->address, reply->handle, sizeof reply->handle, &size, error);
        reply->handle_bytes = (uint32_t)size;
        return status;
    case OTHER_EXPORT_END: return vram_export_end(allocator, order->address);
    case OTHER_IMPORT: return vram_import(allocator, order->handle, order->handle_bytes, &reply->imported, error);
    case OTHER_RELEASE: return vram_import_release(allocator, order->address);
    case OTHER_SEND: return vram_export_send(allocator, order->address, OTHER_SOCKET, error);
    case OTHER_RECEIVE: return vram_import_receive(allocator, OTHER_SOCKET, &reply->imported, error);
    case OTHER_WRITE: other_write(order->address, order->size_bytes, order->seed); return VRAM_OK;
    case OTHER_READ: return other_is(order->address, order->size_bytes, order->seed) ? VRAM_OK : VRAM_MISMATCH;
    case OTHER_STATS:
        vram_get_share_stats(allocator, &reply->stats);
        reply->used_bytes = vram_sim_memory_used(world->sim, 0);
        return VRAM_OK;
    case OTHER_END: reply->left = vr_world_close(world); return VRAM_OK;
    }
    return VRAM_INVALID_ARGUMENT;
}

int other_main(const char *conf) {
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2, .memory_bytes = VR_GIB, .backed = true}, .conf = conf};
    if (vr_world_open(&world, &options) != VRAM_OK) return 1;
    static struct other_order order;
    while (transfer(OTHER_SOCKET, &order, sizeof order, get)) {
        static struct other_reply reply;
        struct vram_error error = {.message = ""};
        reply = (struct other_reply){.status = VRAM_OK};
        reply.status = carry_out(&world, &order, &reply, &error);
        memcpy(reply.message, error.message, sizeof reply.message);
        if (!transfer(OTHER_SOCKET, &reply, sizeof reply, put)) return 1;
        if (order.what == OTHER_END) return 0;
    }
    return 1;
}

// --- the test's side --------------------------------------------------------------------------------------------------------------

int other_start(struct other *other, const char *conf) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
    other->process = fork();
    if (other->process == 0) {
        if (ends[1] != OTHER_SOCKET && dup2(ends[1], OTHER_SOCKET) < 0) _exit(127);
        if (ends[1] == OTHER_SOCKET) (void)fcntl(OTHER_SOCKET, F_SETFD, 0);
        execl("/proc/self/exe", "other", "other", conf, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    other->socket = ends[0];
    return other->process > 0;
}

void other_tell(struct other *other, const struct other_order *order) {
    (void)transfer(other->socket, (void *)(uintptr_t)order, sizeof *order, put);
}

struct other_reply other_hear(struct other *other) {
    struct other_reply reply;
    if (!transfer(other->socket, &reply, sizeof reply, get)) reply = (struct other_reply){.status = VRAM_IO};
    return reply;
}

struct other_reply other_do(struct other *other, const struct other_order *order) {
    other_tell(other, order);
    return other_hear(other);
}

void other_stop(struct other *other, int crash) {
    if (crash) (void)kill(other->process, SIGKILL);
    (void)close(other->socket);
    (void)waitpid(other->process, NULL, 0);
}
