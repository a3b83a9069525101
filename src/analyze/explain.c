// Why a request failed: one cause of a closed list, as a sentence, and what could have helped.
#include "analyze/accounts.h"
#include "analyze/explain.h"

// A few blocks pin large free memory when all of them together are at most this part of the request.
#define PIN_PART 8u
// Memory outside the allocator is the cause only where it is more than this part of the device: every process has a context.
#define OUTSIDE_PART 8u

static uint64_t driver_free(const struct vram_report_oom *oom) { return oom->has_device_free ? oom->device_free_bytes : 0; }

static bool is_limited(const struct vram_report_oom *oom) {
    if (oom->has_device_free && oom->device_free_bytes >= oom->segment_bytes) return true;
    // What was held and what was free together reach the limit, but for rounding.
    return oom->limit_bytes != 0 && oom->room_bytes >= oom->limit_bytes - oom->limit_bytes / 64;
}

static bool is_pinned(const struct vram_report_oom *oom) { return oom->pin_blocks != 0 && oom->pin_bytes <= oom->size_bytes / PIN_PART; }

// Of what was free but out of reach: the one that would have sufficed alone (the largest, if several), else the largest of all that
// would have sufficed together. FULL when they do not.
static enum vram_report_oom_cause out_of_reach(const struct vram_report_oom *oom, uint64_t missing) {
    const struct {
        enum vram_report_oom_cause cause;
        uint64_t bytes;
    } lots[] = {{VRAM_OOM_PENDING, oom->pending_bytes},
                {VRAM_OOM_OTHER_STREAMS, oom->other_stream_bytes},
                {VRAM_OOM_OTHER_POOLS, oom->other_pool_bytes},
                {VRAM_OOM_PRIVATE_POOLS, oom->private_pool_bytes}};
    size_t largest = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < VR_COUNT_OF(lots); i++) {
        sum += lots[i].bytes;
        if (lots[i].bytes > lots[largest].bytes) largest = i;
    }
    if (sum >= missing && sum != 0) return lots[largest].cause;
    if (sum + oom->outside_bytes >= missing && oom->outside_bytes > oom->device_total_bytes / OUTSIDE_PART) return VRAM_OOM_OUTSIDE;
    return VRAM_OOM_FULL;
}

static enum vram_report_oom_cause find_cause(const struct vram_report_oom *oom) {
    if (!oom->has_picture) return VRAM_OOM_UNKNOWN;
    if (oom->usable_largest_bytes >= oom->size_bytes) return VRAM_OOM_CONTRADICTORY;
    if (is_limited(oom)) return VRAM_OOM_LIMIT;
    const uint64_t in_reach = driver_free(oom) + oom->usable_bytes;
    if (in_reach >= oom->size_bytes && oom->usable_bytes != 0) return is_pinned(oom) ? VRAM_OOM_PINNED : VRAM_OOM_FRAGMENTED;
    const uint64_t wanted = in_reach >= oom->size_bytes ? oom->segment_bytes : oom->size_bytes;
    return out_of_reach(oom, wanted > in_reach ? wanted - in_reach : 1);
}

static enum vram_status explain_limit(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->limit_bytes != 0) {
        return vr_arena_printf(arena, text, "the process may hold %s, and %s more than it held were needed",
                               vr_bytes(oom->limit_bytes).text, vr_bytes(oom->segment_bytes).text);
    }
    return vr_arena_printf(arena, text,
                           "the driver still had %s free, enough for a segment of %s: a memory limit of the process refused it",
                           vr_bytes(oom->device_free_bytes).text, vr_bytes(oom->segment_bytes).text);
}

static enum vram_status explain_fragments(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->cause == VRAM_OOM_PINNED && oom->pin_blocks == 1) {
        return vr_arena_printf(arena, text,
                               "%s lay free where the request could look, kept apart by small blocks: without one of them, of %s, it would "
                               "have fitted",
                               vr_bytes(oom->usable_bytes).text, vr_bytes(oom->pin_bytes).text);
    }
    if (oom->cause == VRAM_OOM_PINNED) {
        return vr_arena_printf(arena, text,
                               "%s lay free where the request could look, kept apart by small blocks: without %s of them, %s together, it "
                               "would have fitted",
                               vr_bytes(oom->usable_bytes).text, vr_count(oom->pin_blocks).text, vr_bytes(oom->pin_bytes).text);
    }
    return vr_arena_printf(arena, text, "fragmentation: %s lay free where the request could look, but the largest piece held %s",
                           vr_bytes(oom->usable_bytes).text, vr_bytes(oom->usable_largest_bytes).text);
}

static enum vram_status explain_full(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    return vr_arena_printf(
        arena, text,
        "the memory was in use: %s live, and all that was free together (%s cached, %s at the driver) is less than the request",
        vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->free_bytes).text, vr_bytes(driver_free(oom)).text);
}

static bool is_of_others(const struct vram_report_oom *oom) {
    return oom->accounts != NULL && oom->accounts->other_bytes >= oom->outside_bytes / 2;
}

// Whoever held it, as far as that is known.
static enum vram_status explain_outside(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    const struct vram_report_accounts *accounts = oom->accounts;
    if (accounts == NULL)
        return vr_arena_printf(arena, text,
                               "%s of the device were held by others than this allocator (other libraries, the context, other processes)",
                               vr_bytes(oom->outside_bytes).text);
    if (is_of_others(oom) && accounts->apart && accounts->process_count == 1) {
        const char *name = NULL;
        VR_TRY(vr_accounts_name(&accounts->processes[0], arena, &name));
        return vr_arena_printf(arena, text, "%s held %s of the device", name, vr_bytes(accounts->other_bytes).text);
    }
    const uint64_t own = accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes;
    if (accounts->other_bytes == 0 && own == 0)
        return vr_arena_printf(arena, text, "%s of the device were held past what was recorded, and nobody says by whom",
                               vr_bytes(oom->outside_bytes).text);
    return vr_arena_printf(
        arena, text,
        "%s of the device were held past what was recorded: %s by other processes, %s by the driver for this one, and of "
        "%s it is not known",
        vr_bytes(oom->outside_bytes).text, vr_bytes(accounts->other_bytes).text, vr_bytes(own).text,
        vr_bytes(accounts->unknown_bytes).text);
}

static enum vram_status put_text(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    switch (oom->cause) {
    case VRAM_OOM_LIMIT: return explain_limit(arena, oom, text);
    case VRAM_OOM_FRAGMENTED:
    case VRAM_OOM_PINNED: return explain_fragments(arena, oom, text);
    case VRAM_OOM_OTHER_STREAMS:
        return vr_arena_printf(arena, text, "%s lay free in the caches of other streams, where this stream cannot take it",
                               vr_bytes(oom->other_stream_bytes).text);
    case VRAM_OOM_OTHER_POOLS:
        return vr_arena_printf(arena, text, "%s lay free for requests of the other size class (%s), where this request cannot take it",
                               vr_bytes(oom->other_pool_bytes).text, oom->size_bytes <= VR_MIB ? "above 1 MiB" : "up to 1 MiB");
    case VRAM_OOM_PRIVATE_POOLS:
        return vr_arena_printf(arena, text, "%s lay free in other pools (CUDA graphs, private pools), where this request cannot take it",
                               vr_bytes(oom->private_pool_bytes).text);
    case VRAM_OOM_PENDING:
        return vr_arena_printf(arena, text, "%s was freed but still waited for other streams (record_stream)",
                               vr_bytes(oom->pending_bytes).text);
    case VRAM_OOM_OUTSIDE: return explain_outside(arena, oom, text);
    case VRAM_OOM_CONTRADICTORY:
        return vr_arena_printf(arena, text, "by the recording a free block of %s would have served: it does not explain this failure",
                               vr_bytes(oom->usable_largest_bytes).text);
    case VRAM_OOM_FULL: return explain_full(arena, oom, text);
    case VRAM_OOM_UNKNOWN:
    case VRAM_OOM_CAUSE_COUNT: break;
    }
    return vr_arena_printf(arena, text, "not examined: only the last %d out-of-memory events are", VRAM_REPORT_OOM_PICTURES);
}

static const char *advise(const struct vram_report_oom *oom, bool expandable) {
    switch (oom->cause) {
    case VRAM_OOM_LIMIT:
        return oom->limit_bytes != 0 ? "raise the limit, or let the program need less"
                                     : "look for set_per_process_memory_fraction or per_process_memory_fraction";
    case VRAM_OOM_FRAGMENTED:
        return expandable ? "expandable segments are on already; release memory between phases, or allocate long-lived tensors first"
                          : "expandable_segments:True lets free pieces join; `vram replay` shows whether it would have fitted";
    case VRAM_OOM_PINNED: return "allocate what lives long before the large temporary tensors, or free it with them";
    case VRAM_OOM_OTHER_STREAMS: return "allocate on one stream, or empty the cache before the other stream's phase";
    case VRAM_OOM_OTHER_POOLS: return "free what holds the other size class's segments, or allocate it elsewhere";
    case VRAM_OOM_PRIVATE_POOLS: return "drop graphs or pools that are not replayed any more, or let them share one pool";
    case VRAM_OOM_PENDING: return "free earlier, or synchronize with the other stream before the large request";
    case VRAM_OOM_OUTSIDE:
        if (is_of_others(oom)) return "end the other processes, or give this one a device of its own";
        return oom->accounts == NULL ? "`nvidia-smi` lists other processes; `vram run` names the libraries of this one"
                                     : "`nvidia-smi` lists other processes";
    default: return "";
    }
}

enum vram_status vr_explain(struct vr_arena *arena, bool expandable, struct vram_report_oom *oom) {
    oom->cause = find_cause(oom);
    oom->advice = advise(oom, expandable);
    return put_text(arena, oom, &oom->text);
}
