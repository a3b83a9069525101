// The naive model: captures of graphs, and frees postponed by them. For each stream it keeps the set of graph nodes that precede the
// stream's next one: a kernel adds itself, and a wait for another stream adds that stream's set.
#include "model/naive_inside.h"

#include <stdlib.h>
#include <string.h>

static void add_all(struct naive_nodes *to, const struct naive_nodes *from) {
    for (size_t i = 0; i < VR_COUNT_OF(to->bits); i++) to->bits[i] |= from->bits[i];
}

static bool within(const struct naive_nodes *some, const struct naive_nodes *all) {
    for (size_t i = 0; i < VR_COUNT_OF(some->bits); i++)
        if (some->bits[i] & ~all->bits[i]) return false;
    return true;
}

static bool is_empty(const struct naive_nodes *nodes) { return within(nodes, &(struct naive_nodes){{0}}); }

// --- capturing streams -----------------------------------------------------------------------------------------------------

// Finds a stream's membership; a stream takes part in at most one capture. *capture may be NULL.
struct naive_member *naive_member_of(const struct naive_device *device, uint64_t stream, const struct naive_capture **capture) {
    for (size_t i = 0; i < device->capture_count; i++) {
        const struct naive_capture *candidate = &device->captures[i];
        for (size_t m = 0; m < candidate->member_count; m++) {
            if (candidate->members[m].stream != stream) continue;
            if (capture) *capture = candidate;
            return (struct naive_member *)&candidate->members[m];
        }
    }
    return NULL;
}

static struct naive_device *device_capturing(const struct naive *naive, uint64_t stream) {
    for (uint32_t d = 0; d < naive->device_count; d++)
        if (naive_member_of(&naive->device[d], stream, NULL)) return (struct naive_device *)&naive->device[d];
    return NULL;
}

uint64_t naive_capture_of(const struct naive *naive, uint64_t stream) {
    const struct naive_device *device = device_capturing(naive, stream);
    const struct naive_capture *capture = NULL;
    return device && naive_member_of(device, stream, &capture) ? capture->id : 0;
}

enum vram_status naive_capture_begin(struct naive *naive, struct naive_pool *pool, uint64_t stream) {
    struct naive_device *device = &naive->device[pool->device];
    if (stream == 0 || naive_member_of(device, stream, NULL)) return VRAM_INVALID_ARGUMENT;
    if (device->capture_count == NAIVE_CAPTURES) abort(); // the tests make fewer
    naive_pool_begin(naive, pool, &(struct vram_route){.kind = VRAM_ROUTE_CAPTURE, .stream = stream});
    device->captures[device->capture_count++] = (struct naive_capture){
        .id = ++naive->next_capture, .pool = pool, .stream = stream, .members = {{.stream = stream}}, .member_count = 1};
    pool->captured = true;
    return VRAM_OK;
}

// Returns whether everything captured precedes the origin's next node.
static bool is_joined(const struct naive_capture *capture) {
    for (size_t m = 1; m < capture->member_count; m++)
        if (!within(&capture->members[m].past, &capture->members[0].past)) return false;
    return true;
}

static void convert(struct naive *naive, struct naive_device *device, const struct naive_pool *pool, bool only);

// Ends a capture. With the option, frees postponed in the pool are settled at once, others by the next request.
enum vram_status naive_capture_end(struct naive *naive, struct naive_pool *pool, uint64_t stream) {
    struct naive_device *device = &naive->device[pool->device];
    size_t at = 0;
    while (at < device->capture_count && (device->captures[at].stream != stream || device->captures[at].pool != pool)) at++;
    if (at == device->capture_count) return VRAM_INVALID_ARGUMENT;
    const bool joined = is_joined(&device->captures[at]);
    device->captures[at] = device->captures[--device->capture_count];
    (void)naive_pool_end(naive, pool, &(struct vram_route){.kind = VRAM_ROUTE_CAPTURE, .stream = stream});
    if (device->capture_count == 0 && naive->options.reuse) convert(naive, device, pool, true);
    return joined ? VRAM_OK : VRAM_DRIVER;
}

bool naive_kernel(struct naive *naive, uint64_t stream) {
    struct naive_device *device = device_capturing(naive, stream);
    const struct naive_capture *capture = NULL;
    struct naive_member *member = naive_member_of(device, stream, &capture);
    if (capture->node_count == NAIVE_MAX_NODES) return false;
    const size_t node = ((struct naive_capture *)capture)->node_count++;
    member->past.bits[node / 64] |= (uint64_t)1 << node % 64;
    return true;
}

void naive_order(struct naive *naive, uint64_t from, uint64_t to) {
    struct naive_device *device = device_capturing(naive, from);
    const struct naive_capture *capture = NULL;
    const struct naive_nodes past = naive_member_of(device, from, &capture)->past;
    struct naive_member *member = naive_member_of(device, to, NULL);
    if (!member) {
        if (capture->member_count == NAIVE_MEMBERS) abort(); // the tests use fewer streams
        member = &((struct naive_capture *)capture)->members[((struct naive_capture *)capture)->member_count++];
        *member = (struct naive_member){.stream = to};
    }
    add_all(&member->past, &past);
}

// --- postponing --------------------------------------------------------------------------------------------------------------

static bool mark(const struct naive_device *device, uint64_t stream, struct naive_deferred *deferred) {
    const struct naive_capture *capture = NULL;
    const struct naive_member *member = naive_member_of(device, stream, &capture);
    if (!member) return false;
    deferred->ids[deferred->count] = capture->id;
    deferred->past[deferred->count++] = member->past;
    return true;
}

// Postpones a free. A use that was not captured is in no graph, so only the end of the capture can order it.
void naive_defer(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    struct naive_deferred deferred = {.block = block};
    deferred.marked = naive->options.reuse && mark(device, block->segment->stream, &deferred);
    for (size_t i = 0; i < block->use_count && deferred.marked; i++)
        deferred.marked = block->use_captured[i] && mark(device, block->uses[i], &deferred);
    block->deferred = true;
    naive_make_room((void **)&device->deferred, &device->deferred_capacity, device->deferred_count + 1, sizeof deferred);
    device->deferred[device->deferred_count++] = deferred;
}

static void forget_deferred(struct naive_device *device, size_t at) {
    device->deferred[at].block->deferred = false;
    device->deferred_count--;
    memmove(&device->deferred[at], &device->deferred[at + 1], (device->deferred_count - at) * sizeof *device->deferred);
}

static bool use_captures(const struct naive *naive, const struct naive_block *block) {
    for (size_t i = 0; i < block->use_count; i++)
        if (naive_capture_of(naive, block->uses[i])) return true;
    return false;
}

// Settles postponed frees of one pool or all. Blocks used on a stream that captures now keep waiting.
static void convert(struct naive *naive, struct naive_device *device, const struct naive_pool *pool, bool only) {
    for (size_t at = 0; at < device->deferred_count;) {
        struct naive_block *block = device->deferred[at].block;
        if (use_captures(naive, block) || (only && block->segment->pool != pool)) {
            at++;
            continue;
        }
        forget_deferred(device, at);
        size_t kept = 0;
        for (size_t i = 0; i < block->use_count; i++)
            if (!block->use_captured[i]) block->uses[kept++] = block->uses[i];
        block->use_count = kept;
        if (kept)
            naive_record_events(naive, device, block);
        else
            naive_complete_free(naive, device, block);
    }
}

void naive_convert(struct naive *naive, struct naive_device *device) { convert(naive, device, NULL, false); }

static bool is_over(const struct naive_deferred *deferred, uint64_t capture, const struct naive_nodes *past) {
    if (!deferred->marked) return false;
    for (size_t i = 0; i < deferred->count; i++) {
        if (is_empty(&deferred->past[i])) continue;
        if (deferred->ids[i] != capture || !within(&deferred->past[i], past)) return false;
    }
    return true;
}

// The description leaves the order open.
void naive_reuse(struct naive *naive, struct naive_device *device, uint64_t stream) {
    const struct naive_capture *capture = NULL;
    const struct naive_nodes past = naive_member_of(device, stream, &capture)->past;
    for (size_t i = 0; i < device->deferred_count;) {
        struct naive_block *block = device->deferred[i].block;
        if (block->segment->stream != stream || !is_over(&device->deferred[i], capture->id, &past)) {
            i++;
            continue;
        }
        forget_deferred(device, i);
        naive_complete_free(naive, device, block);
    }
}
