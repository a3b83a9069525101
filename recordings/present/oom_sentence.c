// An out-of-memory event's cause as a sentence, and what could have helped.
#include "present/oom_sentence.h"

#include "analyze/advice.h"
#include "analyze/oom_cause.h"
#include "base/text.h"
#include "present/demand_text.h"
#include "present/text_parts.h"

static uint64_t driver_free(const struct vram_report_oom *oom) { return oom->has_device_free ? oom->device_free_bytes : 0; }

// --- pinned host memory -------------------------------------------------------------------------------------------------------------
static void put_host_cause(const struct vram_report_oom *oom, struct vr_text *out) {
    const uint64_t pinned = oom->allocated_bytes + oom->pending_bytes;
    if (oom->cause == VRAM_OOM_GROWTH) {
        vr_text_puts(out, oom->demand->text);
    } else if (oom->cause == VRAM_OOM_LIMIT) {
        vr_text_printf(out, "the system had %s available, enough for ", vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "the %s asked for, and %s were pinned: a limit on what may be pinned refused it",
                       vr_bytes(oom->size_bytes).text, vr_bytes(pinned).text);
    } else if (oom->cause == VRAM_OOM_OUTSIDE) {
        vr_text_printf(out, "%s of the system's memory were used otherwise, and %s were left for ", vr_bytes(oom->outside_bytes).text,
                       vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "the %s asked for; only %s were pinned", vr_bytes(oom->size_bytes).text, vr_bytes(pinned).text);
    } else if (vr_oom_host_is_known(oom)) {
        vr_text_printf(out, "%s were pinned, and the system had %s available, ", vr_bytes(pinned).text,
                       vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "less than the %s asked for", vr_bytes(oom->size_bytes).text);
    } else {
        vr_text_printf(out, "%s were pinned when %s more were refused; ", vr_bytes(pinned).text, vr_bytes(oom->size_bytes).text);
        vr_text_puts(out, "the recording does not say what the system had left");
    }
}

// It is not the device that is short of memory: that comes first.
static enum vram_status explain_host(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    struct vr_text out = {0};
    vr_text_puts(&out, "pinned host memory, not the device's: ");
    put_host_cause(oom, &out);
    enum vram_status status = vr_text_status(&out);
    if (status == VRAM_OK) status = vr_arena_copy(arena, vr_text_string(&out), out.length, text);
    vr_text_release(&out);
    return status;
}

// --- a device's ---------------------------------------------------------------------------------------------------------------------
static enum vram_status explain_limit(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->limit_bytes != 0) {
        return vr_arena_printf(arena, text, "the process may hold %s, and %s more than it held were needed",
                               vr_bytes(oom->limit_bytes).text, vr_bytes(oom->segment_bytes).text);
    }
    if (oom->of_own_pool)
        return vr_arena_printf(arena, text,
                               "the driver still had %s free, enough for the %s asked for: the pool it was asked from has a maximum of its "
                               "own (cudaMemPoolProps.maxSize), or a limit of the process refused it",
                               vr_bytes(oom->device_free_bytes).text, vr_bytes(oom->segment_bytes).text);
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

// What stands out in what was in use comes first.
static enum vram_status explain_full(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (!oom->has_device_free && oom->room_bytes != 0)
        return vr_arena_printf(arena, text, "%s%sthe memory was in use: %s of %s was live, which leaves less than the request",
                               oom->demand == NULL ? "" : oom->demand->text, oom->demand == NULL ? "" : "; ",
                               vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->room_bytes).text);
    return vr_arena_printf(
        arena, text,
        "%s%sthe memory was in use: %s live, and all that was free together (%s cached, %s at the driver) is less than the request",
        oom->demand == NULL ? "" : oom->demand->text, oom->demand == NULL ? "" : "; ", vr_bytes(oom->allocated_bytes).text,
        vr_bytes(oom->free_bytes).text, vr_bytes(driver_free(oom)).text);
}

static enum vram_status explain_unknown_room(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->room_bytes == 0)
        return vr_arena_printf(arena, text,
                               "the recording does not say how much memory the device had, or how much of it was free: %s was live",
                               vr_bytes(oom->allocated_bytes).text);
    return vr_arena_printf(
        arena, text,
        "%s of the device's %s was live, which leaves room for the request: the recording does not say who held the rest, or "
        "which limit refused it",
        vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->room_bytes).text);
}

static bool is_of_others(const struct vram_report_oom *oom) {
    return oom->accounts != NULL && oom->accounts->other_bytes >= oom->outside_bytes / 2;
}

// "process 4711 (python3)", or "process 4711".
static enum vram_status name_process(const struct vram_report_process *process, struct vr_arena *arena, const char **name) {
    if (process->name[0] == '\0') return vr_arena_printf(arena, name, "process %llu", (unsigned long long)process->id);
    return vr_arena_printf(arena, name, "process %llu (%s)", (unsigned long long)process->id, process->name);
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
        VR_TRY(name_process(&accounts->processes[0], arena, &name));
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

static void put_other_streams(const struct vram_report_oom *oom, struct vr_text *out) {
    vr_text_printf(out, "%s lay free in the caches of other streams, where this stream cannot take it",
                   vr_bytes(oom->other_stream_bytes).text);
    if (!oom->has_held_stream) return;
    vr_text_printf(out, oom->held_stream > 0xFFFF ? ", most of it on stream 0x%llx" : ", most of it on stream %llu",
                   (unsigned long long)oom->held_stream);
    if (oom->held_stream_is_idle) vr_text_puts(out, ", which has nothing in use any more");
}

static void put_out_of_reach(const struct vram_report_oom *oom, struct vr_text *out) {
    if (oom->cause == VRAM_OOM_OTHER_STREAMS)
        put_other_streams(oom, out);
    else if (oom->cause == VRAM_OOM_OTHER_POOLS)
        vr_text_printf(out, "%s lay free for requests of the other size class (%s), where this request cannot take it",
                       vr_bytes(oom->other_pool_bytes).text, oom->size_bytes <= VR_MIB ? "above 1 MiB" : "up to 1 MiB");
    else if (oom->cause == VRAM_OOM_PRIVATE_POOLS)
        vr_text_printf(out, "%s lay free in other pools (CUDA graphs, private pools), where this request cannot take it",
                       vr_bytes(oom->private_pool_bytes).text);
    else
        vr_text_printf(out, "%s was freed but still waited for other streams (record_stream)", vr_bytes(oom->pending_bytes).text);
}

static enum vram_status explain_driver_pools(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    return vr_arena_printf(arena, text,
                           "%s lay free in the driver's own pools (cudaMallocAsync), in pieces or where streams had not passed yet, "
                           "beside %s in use",
                           vr_bytes(oom->driver_pool_bytes).text, vr_bytes(oom->allocated_bytes).text);
}

// With who made the most of it, where that is known.
static enum vram_status explain_out_of_reach(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    struct vr_text out = {0};
    put_out_of_reach(oom, &out);
    if (oom->held_site != NULL) {
        vr_text_puts(&out, "; the largest part was asked for by ");
        vr_text_site(&out, oom->held_site, strlen(oom->held_site));
    }
    enum vram_status status = vr_text_status(&out);
    if (status == VRAM_OK) status = vr_arena_copy(arena, vr_text_string(&out), out.length, text);
    vr_text_release(&out);
    return status;
}

static enum vram_status keep_oom_text(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->is_host && oom->has_picture) return explain_host(arena, oom, text);
    switch (oom->cause) {
    case VRAM_OOM_DRIVER_POOLS: return explain_driver_pools(arena, oom, text);
    case VRAM_OOM_LIMIT: return explain_limit(arena, oom, text);
    case VRAM_OOM_FRAGMENTED:
    case VRAM_OOM_PINNED: return explain_fragments(arena, oom, text);
    case VRAM_OOM_OTHER_STREAMS:
    case VRAM_OOM_OTHER_POOLS:
    case VRAM_OOM_PRIVATE_POOLS:
    case VRAM_OOM_PENDING: return explain_out_of_reach(arena, oom, text);
    case VRAM_OOM_OUTSIDE: return explain_outside(arena, oom, text);
    case VRAM_OOM_CONTRADICTORY:
        return vr_arena_printf(arena, text, "by the recording a free block of %s would have served: it does not explain this failure",
                               vr_bytes(oom->usable_largest_bytes).text);
    case VRAM_OOM_FULL: return explain_full(arena, oom, text);
    case VRAM_OOM_GROWTH: return vr_arena_printf(arena, text, "%s", oom->demand->text);
    case VRAM_OOM_ROOM_UNKNOWN: return explain_unknown_room(arena, oom, text);
    case VRAM_OOM_UNKNOWN:
    case VRAM_OOM_CAUSE_COUNT: break;
    }
    return vr_arena_printf(arena, text, "not examined: only the last %d out-of-memory events are", VRAM_REPORT_OOM_PICTURES);
}

static enum vram_status put_words(struct vr_arena *arena, const struct vram_report_device *device, struct vram_report_oom *oom) {
    oom->advice = vr_advice_after(oom->cause, vr_grounds_of_oom(device, oom));
    if (oom->demand != NULL) VR_TRY(vr_demand_sentences(arena, oom->demand));
    return keep_oom_text(arena, oom, &oom->text);
}

enum vram_status vr_oom_sentences(struct vr_arena *arena, const struct vram_report_device *device) {
    struct vram_report_oom *ooms = (struct vram_report_oom *)(uintptr_t)device->ooms; // of the arena, and nobody else's yet
    const char *unexamined = NULL;
    if (device->demand != NULL) VR_TRY(vr_demand_sentences(arena, device->demand));
    for (size_t i = 0; i < device->oom_count; i++) {
        if (ooms[i].has_picture || unexamined == NULL) VR_TRY(put_words(arena, device, &ooms[i]));
        if (ooms[i].has_picture) continue;
        if (unexamined == NULL) unexamined = ooms[i].text; // those that were not looked at share a sentence
        ooms[i].text = unexamined;
        ooms[i].advice = "";
    }
    return VRAM_OK;
}
