// sim_check.c: consistency check of an instance.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_managed.h"
#include "sim/memory/sim_pools.h"

struct device_sums {
    uint64_t used_bytes, small_bytes;
};

static const struct vr_sim_physical *checked_physical_at(const struct vr_sim *sim, uint32_t index) {
    return (const struct vr_sim_physical *)(const void *)vr_sim_slots_item(&sim->physicals, index);
}

static bool check_memory(const struct vr_sim *sim) {
    struct device_sums sums[VR_SIM_MAX_DEVICES] = {{0, 0}};
    const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, 0);
    for (; range != NULL; range = vr_sim_ranges_next(&sim->spaces, vr_sim_range_end(range))) {
        if (range->kind == VR_SIM_CHUNK) sums[vr_sim_pool_at(sim, range->owner)->device].used_bytes += range->size_bytes;
        if (range->kind != VR_SIM_ALLOCATION && range->kind != VR_SIM_INNER) continue;
        const struct vr_sim_context *context = vr_sim_context_find(sim, range->owner);
        if (context == NULL || range->size_bytes > range->span) return false;
        sums[context->device].used_bytes += range->size_bytes;
        if (range->kind == VR_SIM_ALLOCATION && range->size_bytes < VR_MIB) sums[context->device].small_bytes += range->size_bytes;
    }
    uint64_t named = 0;
    for (uint32_t i = 0; i < sim->physicals.used; i++) {
        const struct vr_sim_physical *physical = checked_physical_at(sim, i);
        if (!physical->slot.live) continue;
        if (!physical->slot.named && physical->mappings == 0 && physical->bindings == 0) return false;
        if (physical->slot.named != (physical->references > 0)) return false;
        named += physical->slot.named;
        if (physical->shared == 0 && physical->team == 0) sums[physical->device].used_bytes += physical->size_bytes;
    }
    for (uint32_t i = 0; i < sim->contexts.used; i++) {
        const struct vr_sim_context *context = (const struct vr_sim_context *)(const void *)vr_sim_slots_item(&sim->contexts, i);
        if (context->slot.live && !context->inactive)
            sums[context->device].used_bytes += sim->devices[context->device].context_bytes + context->stacks_bytes;
    }
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        sums[i].used_bytes += vr_sim_graph_memory_bytes(sim, i) + vr_sim_exec_memory_bytes(sim, i) + vr_sim_managed_bytes(sim, i);
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        if (sim->devices[i].used_bytes + sim->process.away_bytes[i] != sums[i].used_bytes ||
            sim->devices[i].small_bytes != sums[i].small_bytes)
            return false;
    return named == sim->named_physicals;
}

static bool check_mappings(const struct vr_sim *sim) {
    uint64_t counted = 0, bound = 0;
    for (uint32_t i = 0; i < sim->physicals.used; i++) {
        if (!checked_physical_at(sim, i)->slot.live) continue;
        counted += checked_physical_at(sim, i)->mappings;
        bound += checked_physical_at(sim, i)->bindings;
    }
    const struct vr_sim_range *range = vr_sim_ranges_next(&sim->mappings, 0);
    for (; range != NULL; range = vr_sim_ranges_next(&sim->mappings, vr_sim_range_end(range))) {
        const struct vr_sim_range *space = vr_sim_ranges_holding(&sim->spaces, range->base);
        if (space == NULL || space->kind != VR_SIM_RESERVATION || vr_sim_range_end(range) > vr_sim_range_end(space)) return false;
        if (!checked_physical_at(sim, (uint32_t)range->owner)->slot.live) return false;
    }
    return counted == sim->mappings.count && bound == sim->binding_count;
}

static const struct vr_sim_exec *exec_at(const struct vr_sim *sim, uint32_t index) {
    return (const struct vr_sim_exec *)(const void *)vr_sim_slots_item(&sim->execs, index);
}

// Counts the events, last launches and edges that refer to the stream in slot `index`.
static uint64_t count_references(const struct vr_sim *sim, uint32_t index) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < sim->events.used; i++) {
        const struct vr_sim_event *event = (const struct vr_sim_event *)(const void *)vr_sim_slots_item(&sim->events, i);
        count += event->slot.live && event->recorded && event->stream == index;
    }
    for (uint32_t i = 0; i < sim->execs.used; i++) {
        const struct vr_sim_event *launch = &exec_at(sim, i)->launch;
        count += exec_at(sim, i)->slot.live && launch->recorded && launch->stream == index;
    }
    for (uint32_t i = 0; i < sim->streams.used; i++)
        for (size_t e = 0; vr_sim_stream_at(sim, i)->slot.live && e < vr_sim_stream_at(sim, i)->edge_count; e++)
            count += vr_sim_stream_at(sim, i)->edges[e].target == index;
    return count;
}

static bool check_streams(const struct vr_sim *sim) {
    uint64_t users = 0;
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live) continue;
        users += stream->user && stream->slot.named;
        if (stream->done_work > stream->work) return false;
        if (sim->options.manual_completion && stream->references != count_references(sim, i)) return false;
        for (size_t e = 1; e < stream->edge_count; e++)
            if (stream->edges[e - 1].at > stream->edges[e].at) return false;
    }
    return users == sim->user_streams;
}

static bool are_nodes_of(const struct vr_sim *sim, const struct vr_sim_nodes *nodes, uint32_t graph) {
    for (size_t i = 0; i < nodes->count; i++) {
        const struct vr_sim_node *node = vr_sim_node_find(sim, nodes->items[i]);
        if (node == NULL || node->graph != graph) return false;
    }
    return true;
}

static bool check_nodes(const struct vr_sim *sim, uint32_t graph) {
    const struct vr_sim_nodes *nodes = &vr_sim_graph_at(sim, graph)->nodes;
    if (!are_nodes_of(sim, nodes, graph)) return false;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct vr_sim_node *node = vr_sim_node_find(sim, nodes->items[i]);
        if (node->place != i || !are_nodes_of(sim, &node->dependencies, graph)) return false;
        if (node->work.type == VR_CU_GRAPH_NODE_TYPE_GRAPH && !vr_sim_graph_at(sim, node->work.child)->owned) return false;
    }
    return true;
}

static bool check_graphs(const struct vr_sim *sim) {
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < sim->graphs.used; i++) {
        const struct vr_sim_graph *graph = vr_sim_graph_at(sim, i);
        if (!graph->slot.live) continue;
        nodes += graph->nodes.count;
        if (!graph->slot.named || graph->depth > VR_SIM_MAX_DEPTH || !check_nodes(sim, i)) return false;
        if (graph->capture != 0 && vr_sim_capture_find(sim, graph->capture) == NULL) return false;
    }
    return nodes == sim->nodes.live;
}

// Frontiers are nodes of the captured graph; a capture's origin stream takes part in it.
static bool check_captures(const struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live || stream->capture == 0) continue;
        const struct vr_sim_capture *capture = vr_sim_capture_find(sim, stream->capture);
        if (capture == NULL || vr_sim_stream_at(sim, capture->origin)->capture != stream->capture) return false;
        const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, capture->graph);
        if (graph == NULL || graph->capture != stream->capture) return false;
        const uint32_t index = vr_sim_slots_index(&sim->graphs, graph);
        if (!are_nodes_of(sim, &stream->frontier, index) || !are_nodes_of(sim, &capture->orphans, index)) return false;
    }
    return true;
}

static uint64_t count_imports(const struct vr_sim *sim, uint32_t pool) {
    uint64_t count = 0;
    const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, 0);
    for (; range != NULL; range = vr_sim_ranges_next(&sim->spaces, vr_sim_range_end(range)))
        if (range->kind == VR_SIM_POOL_IMPORT && range->owner == pool) count += range->write_mask;
    return count;
}

// Pieces of a pool: allocated ones add up to used_bytes, all of them to reserved_bytes; neighbours refer to each other and are adjacent; an
// allocated piece is found by its address.
static bool check_pool(const struct vr_sim *sim, uint32_t pool) {
    uint64_t used = 0, all = 0;
    for (uint32_t i = 0; i < sim->pieces.used; i++) {
        const struct vr_sim_piece *piece = (const struct vr_sim_piece *)(const void *)vr_sim_slots_item(&sim->pieces, i);
        if (!piece->slot.live || piece->pool != pool) continue;
        all += piece->size_bytes;
        if (piece->taken) used += piece->size_bytes;
        if (piece->taken != (vr_sim_piece_at(sim, piece->address) == piece)) return false;
        if (piece->next == 0) continue;
        const struct vr_sim_piece *next = (const struct vr_sim_piece *)(const void *)vr_sim_slots_item(&sim->pieces, piece->next - 1);
        if (next->previous != i + 1 || next->address != piece->address + piece->size_bytes) return false;
    }
    return used == vr_sim_pool_at(sim, pool)->used_bytes && count_imports(sim, pool) == vr_sim_pool_at(sim, pool)->imports &&
           all == vr_sim_pool_at(sim, pool)->reserved_bytes;
}

static bool check_pools(const struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->pools.used; i++)
        if (vr_sim_pool_at(sim, i)->slot.live && !check_pool(sim, i)) return false;
    return vr_sim_ranges_check(&sim->pooled);
}

static bool check_slots(const struct vr_sim *sim) {
#define X(table, type)                                                                                                                     \
    if (!vr_sim_slots_check(&sim->table)) return false;
    VR_SIM_TABLES(X)
#undef X
    return true;
}

bool vr_sim_check(const struct vr_sim *sim) {
    bool ranges = vr_sim_ranges_check(&sim->spaces) && vr_sim_ranges_check(&sim->mappings) && vr_sim_ranges_check(&sim->hosts) &&
                  vr_sim_regions_check(sim);
    return check_slots(sim) && ranges && check_pools(sim) && check_memory(sim) && check_mappings(sim) && check_streams(sim) &&
           check_graphs(sim) && check_captures(sim) && vr_sim_content_check(&sim->content);
}
