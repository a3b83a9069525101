// Prints out-of-memory events as text: the cause as a sentence, and the full account of an event.
#include "analyze/advice.h"
#include "analyze/oom_cause.h"
#include "base/text.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"
#include "vram/oom.h"

// ---- the cause as a sentence, and advice ----

static uint64_t driver_free(const struct vram_report_oom *oom) { return oom->has_device_free ? oom->device_free_bytes : 0; }

// --- pinned host memory -------------------------------------------------------------------------------------------------------------
static void put_host_cause(const struct vram_report_oom *oom, struct vr_text *out) {
    const uint64_t pinned = oom->allocated_bytes + oom->pending_bytes;
    if (oom->cause == VRAM_OOM_GROWTH) {
        vr_text_puts(out, oom->demand->text);
    } else if (oom->cause == VRAM_OOM_LIMIT) {
        vr_text_printf(out, "a limit on pinned memory refused the request: the system had %s available, enough for ",
                       vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "the %s requested, and %s was pinned", vr_bytes(oom->size_bytes).text, vr_bytes(pinned).text);
    } else if (oom->cause == VRAM_OOM_OUTSIDE) {
        vr_text_printf(out, "other uses held %s of the system's memory, which left %s for ", vr_bytes(oom->outside_bytes).text,
                       vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "the %s requested; only %s was pinned", vr_bytes(oom->size_bytes).text, vr_bytes(pinned).text);
    } else if (vr_oom_host_is_known(oom)) {
        vr_text_printf(out, "%s was pinned, and the system had %s available, ", vr_bytes(pinned).text,
                       vr_bytes(oom->device_free_bytes).text);
        vr_text_printf(out, "less than the %s requested", vr_bytes(oom->size_bytes).text);
    } else {
        vr_text_printf(out, "%s was pinned when a request for %s more failed; ", vr_bytes(pinned).text, vr_bytes(oom->size_bytes).text);
        vr_text_puts(out, "the recording does not say how much the system had available");
    }
}

// Begins with "pinned host memory", because the device itself is not short of memory.
static enum vram_status explain_host(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    struct vr_text out = {0};
    vr_text_puts(&out, "pinned host memory ran out, not the device's: ");
    put_host_cause(oom, &out);
    enum vram_status status = vr_text_status(&out);
    if (status == VRAM_OK) status = vr_arena_copy(arena, vr_text_string(&out), out.length, text);
    vr_text_release(&out);
    return status;
}

// --- device memory ---------------------------------------------------------------------------------------------------------------------
static enum vram_status explain_limit(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->limit_bytes != 0) {
        return vr_arena_printf(arena, text, "a memory limit of the process: it may hold %s, and the request needed %s more",
                               vr_bytes(oom->limit_bytes).text, vr_bytes(oom->segment_bytes).text);
    }
    if (oom->of_own_pool)
        return vr_arena_printf(arena, text,
                               "the driver had %s free, enough for the %s requested: the pool's own maximum (cudaMemPoolProps.maxSize) or "
                               "a limit of the process refused it",
                               vr_bytes(oom->device_free_bytes).text, vr_bytes(oom->segment_bytes).text);
    return vr_arena_printf(arena, text, "the driver had %s free, enough for a segment of %s: a memory limit of the process refused it",
                           vr_bytes(oom->device_free_bytes).text, vr_bytes(oom->segment_bytes).text);
}

static enum vram_status explain_fragments(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->cause == VRAM_OOM_PINNED && oom->pin_blocks == 1) {
        return vr_arena_printf(arena, text,
                               "fragmentation: %s was free for the request, but no gap was large enough; one small block of %s splits it, "
                               "and without that block the request would have fit",
                               vr_bytes(oom->usable_bytes).text, vr_bytes(oom->pin_bytes).text);
    }
    if (oom->cause == VRAM_OOM_PINNED) {
        return vr_arena_printf(arena, text,
                               "fragmentation: %s was free for the request, but no gap was large enough; %s small blocks (%s in total) "
                               "split it, and without them the request would have fit",
                               vr_bytes(oom->usable_bytes).text, vr_count(oom->pin_blocks).text, vr_bytes(oom->pin_bytes).text);
    }
    return vr_arena_printf(arena, text, "fragmentation: %s was free for the request, but the largest gap was %s",
                           vr_bytes(oom->usable_bytes).text, vr_bytes(oom->usable_largest_bytes).text);
}

// Begins with the most striking use of memory, if one is known.
static enum vram_status explain_full(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (!oom->has_device_free && oom->room_bytes != 0)
        return vr_arena_printf(arena, text, "%s%smemory was full: %s of %s was live, which leaves less than the request",
                               oom->demand == NULL ? "" : oom->demand->text, oom->demand == NULL ? "" : "; ",
                               vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->room_bytes).text);
    return vr_arena_printf(
        arena, text,
        "%s%smemory was full: %s was live, and all free memory together (%s cached, %s in the driver) is less than the request",
        oom->demand == NULL ? "" : oom->demand->text, oom->demand == NULL ? "" : "; ", vr_bytes(oom->allocated_bytes).text,
        vr_bytes(oom->free_bytes).text, vr_bytes(driver_free(oom)).text);
}

static enum vram_status explain_unknown_room(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    if (oom->room_bytes == 0)
        return vr_arena_printf(arena, text, "the recording does not say how much memory the device had or how much was free; %s was live",
                               vr_bytes(oom->allocated_bytes).text);
    return vr_arena_printf(arena, text,
                           "%s of the device's %s was live, which leaves room for the request; the recording does not say what held the "
                           "rest or which limit refused it",
                           vr_bytes(oom->allocated_bytes).text, vr_bytes(oom->room_bytes).text);
}

static bool is_of_others(const struct vram_report_oom *oom) {
    return oom->accounts != NULL && oom->accounts->other_bytes >= oom->outside_bytes / 2;
}

// Formats "process 4711 (python3)", or "process 4711" if the name is unknown.
static enum vram_status name_process(const struct vram_report_process *process, struct vr_arena *arena, const char **name) {
    if (process->name[0] == '\0') return vr_arena_printf(arena, name, "process %llu", (unsigned long long)process->id);
    return vr_arena_printf(arena, name, "process %llu (%s)", (unsigned long long)process->id, process->name);
}

// Describes the holders outside the recording, as far as they are known.
static enum vram_status explain_outside(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    const struct vram_report_accounts *accounts = oom->accounts;
    if (accounts == NULL)
        return vr_arena_printf(arena, text,
                               "%s of the device was held outside this allocator (by other libraries, the context or other processes)",
                               vr_bytes(oom->outside_bytes).text);
    if (is_of_others(oom) && accounts->apart && accounts->process_count == 1) {
        const char *name = NULL;
        VR_TRY(name_process(&accounts->processes[0], arena, &name));
        return vr_arena_printf(arena, text, "%s held %s of the device", name, vr_bytes(accounts->other_bytes).text);
    }
    const uint64_t own = accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes;
    if (accounts->other_bytes == 0 && own == 0)
        return vr_arena_printf(arena, text, "%s of the device was held outside the recording; its owner is not known",
                               vr_bytes(oom->outside_bytes).text);
    return vr_arena_printf(
        arena, text,
        "%s of the device was held outside the recording: %s by other processes, %s by the driver for this process, %s by an unknown owner",
        vr_bytes(oom->outside_bytes).text, vr_bytes(accounts->other_bytes).text, vr_bytes(own).text,
        vr_bytes(accounts->unknown_bytes).text);
}

static void put_other_streams(const struct vram_report_oom *oom, struct vr_text *out) {
    vr_text_printf(out, "%s was free, but in the caches of other streams, which this stream cannot use",
                   vr_bytes(oom->other_stream_bytes).text);
    if (!oom->has_held_stream) return;
    vr_text_printf(out, oom->held_stream > 0xFFFF ? ", most of it on stream 0x%llx" : ", most of it on stream %llu",
                   (unsigned long long)oom->held_stream);
    if (oom->held_stream_is_idle) vr_text_puts(out, ", which has nothing in use");
}

static void put_out_of_reach(const struct vram_report_oom *oom, struct vr_text *out) {
    if (oom->cause == VRAM_OOM_OTHER_STREAMS)
        put_other_streams(oom, out);
    else if (oom->cause == VRAM_OOM_OTHER_POOLS)
        vr_text_printf(out, "%s was free, but only for requests of the other size class (%s)", vr_bytes(oom->other_pool_bytes).text,
                       oom->size_bytes <= VR_MIB ? "above 1 MiB" : "up to 1 MiB");
    else if (oom->cause == VRAM_OOM_PRIVATE_POOLS)
        vr_text_printf(out, "%s was free, but in other pools (CUDA graphs, private pools), which this request cannot use",
                       vr_bytes(oom->private_pool_bytes).text);
    else
        vr_text_printf(out, "%s was freed, but was still waiting for other streams (record_stream)", vr_bytes(oom->pending_bytes).text);
}

static enum vram_status explain_driver_pools(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    return vr_arena_printf(
        arena, text, "%s was free in the driver's own pools (cudaMallocAsync), fragmented or still waiting for streams, and %s was in use",
        vr_bytes(oom->driver_pool_bytes).text, vr_bytes(oom->allocated_bytes).text);
}

// Adds the call site that requested the largest part, if known.
static enum vram_status explain_out_of_reach(struct vr_arena *arena, const struct vram_report_oom *oom, const char **text) {
    struct vr_text out = {0};
    put_out_of_reach(oom, &out);
    if (oom->held_site != NULL) {
        vr_text_puts(&out, "; the largest part was allocated by ");
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
        return vr_arena_printf(
            arena, text, "the recording does not explain this failure: it has a free block of %s, which would have served the request",
            vr_bytes(oom->usable_largest_bytes).text);
    case VRAM_OOM_FULL: return explain_full(arena, oom, text);
    case VRAM_OOM_GROWTH: return vr_arena_printf(arena, text, "%s", oom->demand->text);
    case VRAM_OOM_ROOM_UNKNOWN: return explain_unknown_room(arena, oom, text);
    case VRAM_OOM_UNKNOWN:
    case VRAM_OOM_CAUSE_COUNT: break;
    }
    return vr_arena_printf(arena, text, "not examined: only the last %d out-of-memory events are examined", VRAM_REPORT_OOM_PICTURES);
}

static enum vram_status put_words(struct vr_arena *arena, const struct vram_report_device *device, struct vram_report_oom *oom) {
    oom->advice = vr_advice_after(oom->cause, vr_grounds_of_oom(device, oom));
    if (oom->demand != NULL) VR_TRY(vr_demand_sentences(arena, oom->demand));
    return keep_oom_text(arena, oom, &oom->text);
}

enum vram_status vr_oom_sentences(struct vr_arena *arena, const struct vram_report_device *device) {
    struct vram_report_oom *ooms = (struct vram_report_oom *)(uintptr_t)device->ooms; // owned by the arena and not yet shared
    const char *unexamined = NULL;
    if (device->demand != NULL) VR_TRY(vr_demand_sentences(arena, device->demand));
    for (size_t i = 0; i < device->oom_count; i++) {
        if (ooms[i].has_picture || unexamined == NULL) VR_TRY(put_words(arena, device, &ooms[i]));
        if (ooms[i].has_picture) continue;
        if (unexamined == NULL) unexamined = ooms[i].text; // events without a picture share one sentence
        ooms[i].text = unexamined;
        ooms[i].advice = "";
    }
    return VRAM_OK;
}

// ---- the account of an event: the request, the use of memory, the cause, what would have helped, and the holders ----

enum { MOST_EARLIER = 3, MARK_COLUMNS = 5, MOST_NAMED = 5 };

struct oom_printer {
    struct vr_text *text;
    const struct vram_style *style;
    const struct vram_report_device *device;
    const struct vram_report_oom *oom;
};

// --- the request ------------------------------------------------------------------------------------------------------------
static void print_request(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    struct vr_text *text = page->text;
    vr_text_puts(text, "    ");
    vr_text_colour(text, page->style, VR_RED);
    vr_text_printf(text, "%s requested", vr_bytes(oom->size_bytes).text);
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_printf(text, " on stream %lld, event %s", (long long)oom->stream, vr_count(oom->event).text);
    if (oom->has_time && page->device->has_times && oom->time_us >= page->device->first_time_us) {
        const uint64_t us = (uint64_t)oom->time_us - (uint64_t)page->device->first_time_us;
        vr_text_printf(text, " (+%s)", vr_duration_ns(vr_us_to_ns(us)).text);
    }
    vr_text_puts(text, "\n    by ");
    vr_text_site(text, oom->site, strlen(oom->site));
    vr_text_puts(text, "\n");
}

// --- the use of memory ------------------------------------------------------------------------------------------------------
// One share of the device's memory at that moment. Shares are in the order of the bar.
struct oom_share {
    struct vr_part part;
    const char *name;
    struct vr_text why;
};
enum { IN_USE, WAITING, FREE_BLOCKS, STREAMS, CLASS, POOLS, DRIVER_POOLS, DRIVER, OVERHEAD, OTHERS, OUTSIDE, SHARE_COUNT };

// Returns the memory that the driver took for this process in addition to what the process requested.
static uint64_t overhead_of(const struct vram_report_accounts *accounts) {
    return accounts == NULL ? 0 : accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes;
}

static void explain_overhead(const struct vram_report_accounts *accounts, struct vr_text *why) {
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"contexts", accounts->context_bytes},
                 {"modules", accounts->module_bytes},
                 {accounts->has_context   ? "other"
                  : accounts->has_modules ? "contexts, other"
                                          : "contexts, modules, other",
                  accounts->driver_bytes}};
    const char *before = "for this process: ";
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++) {
        if (parts[i].bytes == 0) continue;
        vr_text_printf(why, "%s%s %s", before, parts[i].name, vr_bytes(parts[i].bytes).text);
        before = ", ";
    }
}

static void share_outside(const struct vram_report_accounts *accounts, struct vr_text *why) {
    if (accounts == NULL) {
        vr_text_puts(why, "other libraries, the context, other processes");
        return;
    }
    vr_text_puts(why, accounts->has_self ? "owner not known" : "contexts, other processes");
    if (accounts->has_self || accounts->at_start_bytes == UINT64_MAX) return;
    vr_text_printf(why, "; %s was in use just after the first context was created", vr_bytes(accounts->at_start_bytes).text);
}

// Sets the explanations for pinned memory, where the system takes the driver's place.
static void explain_host_shares(const struct vram_report_oom *oom, struct oom_share shares[SHARE_COUNT]) {
    const bool enough = oom->device_free_bytes >= oom->size_bytes;
    vr_text_printf(&shares[DRIVER].why, "in the system%s %s requested%s", enough ? ", enough for the" : ", less than the",
                   vr_bytes(oom->size_bytes).text, enough ? ": a limit refused it" : "");
    vr_text_puts(&shares[OUTSIDE].why, "other processes, and this process's unpinned memory");
}

static void explain_shares(const struct oom_printer *page, struct oom_share shares[SHARE_COUNT]) {
    const struct vram_report_oom *oom = page->oom;
    vr_text_puts(&shares[IN_USE].why, "live allocations, including rounding");
    vr_text_puts(&shares[WAITING].why, "freed, waiting for other streams");
    vr_text_printf(&shares[FREE_BLOCKS].why, "free for this request, in %s; the largest is %s", vr_counted(oom->usable_pieces, "gap").text,
                   vr_bytes(oom->usable_largest_bytes).text);
    vr_text_puts(&shares[STREAMS].why, "free, but only for requests of those streams");
    vr_text_printf(&shares[CLASS].why, "free, but only for requests %s", oom->size_bytes <= VR_MIB ? "above 1 MiB" : "up to 1 MiB");
    vr_text_puts(&shares[POOLS].why, "free, but only for their own graphs and pools");
    vr_text_puts(&shares[DRIVER_POOLS].why, "free there (cudaMallocAsync), fragmented or waiting for streams");
    if (oom->is_host) {
        explain_host_shares(oom, shares);
        return;
    }
    if (oom->device_free_bytes >= oom->segment_bytes) {
        vr_text_printf(&shares[DRIVER].why, "enough for the segment of %s: a limit refused it", vr_bytes(oom->segment_bytes).text);
    } else {
        vr_text_printf(&shares[DRIVER].why, "free in the driver%s, less than the %s %s", oom->limit_bytes != 0 ? " within the limit" : "",
                       vr_bytes(oom->segment_bytes).text, page->device->whole_program ? "requested" : "that a segment needs");
    }
    share_outside(oom->accounts, &shares[OUTSIDE].why);
    if (oom->accounts == NULL) return;
    explain_overhead(oom->accounts, &shares[OVERHEAD].why);
    vr_text_puts(&shares[OTHERS].why, oom->accounts->apart ? "other processes" : "other processes, possibly including this one");
}

// Prints one row. It is not a vr_table because each mark has its own colour, that of the bar.
static void print_share(const struct oom_printer *page, const struct oom_share *share, int name_columns) {
    struct vr_text *text = page->text;
    vr_text_puts(text, "    ");
    vr_text_colour(text, page->style, share->part.colour);
    vr_text_puts(text, vr_part_mark(&share->part, page->style));
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_printf(text, "  %-*s  ", name_columns, share->name);
    vr_text_colour(text, page->style, VR_BOLD);
    vr_text_printf(text, "%10s", vr_bytes(share->part.bytes).text);
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_puts(text, "  ");
    vr_text_colour(text, page->style, VR_DIM);
    vr_text_flow(text, page->style, (unsigned)name_columns + 21, (unsigned)name_columns + 21, vr_text_string(&share->why));
    vr_text_colour(text, page->style, VR_PLAIN);
    vr_text_puts(text, "\n");
}

static void print_shares(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    const uint64_t idle = oom->free_bytes + oom->pending_bytes;
    const uint64_t live = oom->reserved_bytes == 0 ? oom->allocated_bytes : oom->reserved_bytes > idle ? oom->reserved_bytes - idle : 0;
    struct oom_share shares[SHARE_COUNT] = {
        [IN_USE] = {{live, "█", "#", VR_CYAN}, "in use", {0}},
        [WAITING] = {{oom->pending_bytes, "▚", "w", VR_MAGENTA}, "waiting", {0}},
        [FREE_BLOCKS] = {{oom->usable_bytes, "▒", "o", VR_YELLOW}, "free blocks", {0}},
        [STREAMS] = {{oom->other_stream_bytes, "▞", "s", VR_MAGENTA}, "other streams", {0}},
        [CLASS] = {{oom->other_pool_bytes, "▤", "c", VR_YELLOW}, "other size class", {0}},
        [POOLS] = {{oom->private_pool_bytes, "▥", "p", VR_BLUE}, "other pools", {0}},
        [DRIVER_POOLS] = {{oom->driver_pool_bytes, "▥", "p", VR_BLUE}, "driver's pools", {0}},
        [DRIVER] = {{oom->has_device_free ? oom->device_free_bytes : 0, "░", ".", VR_GREEN}, oom->is_host ? "available" : "driver", {0}},
        [OVERHEAD] = {{overhead_of(oom->accounts), "▦", "k", VR_BLUE}, "context", {0}},
        [OTHERS] = {{oom->accounts == NULL ? 0 : oom->accounts->other_bytes, "▓", "x", VR_RED}, "others", {0}},
        [OUTSIDE] = {{oom->outside_bytes, "▓", "x", VR_RED}, "outside", {0}},
    };
    if (oom->accounts != NULL) shares[OUTSIDE] = (struct oom_share){{oom->accounts->unknown_bytes, "▨", "u", VR_MAGENTA}, "not known", {0}};
    struct vr_part parts[SHARE_COUNT];
    int longest = 0;
    explain_shares(page, shares);
    for (size_t i = 0; i < SHARE_COUNT; i++) {
        parts[i] = shares[i].part;
        if (parts[i].bytes != 0 && (int)strlen(shares[i].name) > longest) longest = (int)strlen(shares[i].name);
    }
    vr_text_puts(page->text, "\n    ");
    vr_chart_bar(page->text, page->style, parts, SHARE_COUNT, page->style->columns - 4);
    vr_text_puts(page->text, "\n");
    for (size_t i = 0; i < SHARE_COUNT; i++) {
        if (parts[i].bytes != 0) print_share(page, &shares[i], longest);
        page->text->failed = page->text->failed || shares[i].why.failed;
        vr_text_release(&shares[i].why);
    }
    vr_text_puts(page->text, "\n");
}

// --- other processes --------------------------------------------------------------------------------------------------------
static void print_others(const struct oom_printer *page) {
    static const struct vr_table_column columns[] = {{"", VR_RIGHT, VR_BOLD, false}, {"", VR_LEFT, VR_PLAIN, true}};
    const struct vram_report_accounts *accounts = page->oom->accounts;
    if (accounts == NULL) return;
    if (!accounts->has_processes) {
        struct vr_text sentence = {0};
        vr_text_puts(&sentence, "not known");
        if (accounts->why[0] != '\0') vr_text_printf(&sentence, ": %s", accounts->why);
        vr_text_item(page->text, page->style, VR_DIM, "others", MARK_COLUMNS + 1, vr_text_string(&sentence));
        page->text->failed = page->text->failed || sentence.failed;
        vr_text_release(&sentence);
        vr_text_puts(page->text, "\n");
        return;
    }
    if (accounts->process_count == 0) return;
    const size_t shown = accounts->process_count < MOST_NAMED ? accounts->process_count : MOST_NAMED;
    const uint64_t more = accounts->process_count - shown + accounts->left_out;
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < shown; i++) {
        const struct vram_report_process *process = &accounts->processes[i];
        vr_table_cell(&table, "%s", process->bytes == UINT64_MAX ? "not known" : vr_bytes(process->bytes).text);
        vr_table_cell(&table, "process %llu%s%s%s", (unsigned long long)process->id, process->name[0] == '\0' ? "" : " (", process->name,
                      process->name[0] == '\0' ? "" : ")");
    }
    vr_text_puts(page->text, accounts->apart ? "    other processes\n" : "    processes on the device, possibly including this one\n");
    vr_table_print(&table, page->text, page->style, 6);
    vr_table_release(&table);
    if (more != 0) vr_text_printf(page->text, "      and %s more\n", vr_count(more).text);
    vr_text_puts(page->text, "\n");
}

// --- holders ----------------------------------------------------------------------------------------------------------------
static void print_groups(const struct oom_printer *page, const char *title, const struct vram_report_group *groups, size_t count) {
    static const struct vr_table_column columns[] = {
        {"", VR_RIGHT, VR_BOLD, false}, {"", VR_RIGHT, VR_PLAIN, false}, {"", VR_LEFT, VR_CYAN, false}, {"", VR_LEFT, VR_PLAIN, true}};
    if (count == 0) return;
    struct vr_table table;
    vr_table_init(&table, columns, VR_COUNT_OF(columns));
    for (size_t i = 0; i < count; i++) {
        struct vr_text bar = {0};
        vr_text_bar(&bar, page->style, groups[i].bytes, groups[0].bytes, 12);
        vr_table_cell(&table, "%s", vr_bytes(groups[i].bytes).text);
        vr_table_cell(&table, "%s", vr_percent(groups[i].bytes, page->oom->allocated_bytes).text);
        vr_table_cell_bytes(&table, vr_text_string(&bar), bar.length);
        vr_table_site(page->text, &table, groups[i].name[0] == '\0' ? "not known" : groups[i].name);
        page->text->failed = page->text->failed || bar.failed;
        vr_text_release(&bar);
    }
    vr_text_puts(page->text, title);
    vr_table_print(&table, page->text, page->style, 6);
    vr_table_release(&table);
}

// Prints the first few libraries and all call sites. The report lists all libraries at the peak.
static void print_holders(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    const size_t libraries = oom->library_count < MOST_NAMED ? oom->library_count : MOST_NAMED;
    print_groups(page, "    allocated by\n", oom->libraries, libraries);
    if (libraries != 0 && oom->holder_count != 0) vr_text_puts(page->text, "\n");
    print_groups(page, "    in use, allocated by\n", oom->holders, oom->holder_count);
}

// --- the cause and the remedies -----------------------------------------------------------------------------------------------
static void print_cure(const struct oom_printer *page, const struct vram_cure *cure) {
    struct vr_text sentence = {0};
    vr_cure_sentence(cure, &sentence);
    if (cure->verdict == VRAM_CURE_SETTING) {
        vr_text_puts(page->text, "    ");
        vr_text_colour(page->text, page->style, VR_GREEN);
        vr_text_puts(page->text, "cure");
        vr_text_colour(page->text, page->style, VR_BOLD);
        if (cure->conf[0] == '\0')
            vr_text_printf(page->text, "  unset %s\n", cure->variable);
        else
            vr_text_printf(page->text, "  %s=%s\n", cure->variable, cure->conf);
        vr_text_colour(page->text, page->style, VR_PLAIN);
        vr_text_item(page->text, page->style, VR_GREEN, "", MARK_COLUMNS, vr_text_string(&sentence));
    } else {
        vr_text_item(page->text, page->style, VR_YELLOW, "cure", MARK_COLUMNS, vr_text_string(&sentence));
    }
    page->text->failed = page->text->failed || sentence.failed;
    vr_text_release(&sentence);
}

static void print_paged(const struct oom_printer *page, const struct vram_report_source *source) {
    struct vr_text sentences = {0};
    vr_paged_of_report(source, page->device->device, &sentences);
    if (sentences.length != 0) vr_text_item(page->text, page->style, VR_GREEN, "or", MARK_COLUMNS, vr_text_string(&sentences));
    page->text->failed = page->text->failed || sentences.failed;
    vr_text_release(&sentences);
}

static void print_why(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    vr_text_puts(page->text, "\n");
    vr_text_item(page->text, page->style, VR_RED, "why", MARK_COLUMNS, oom->text);
    if (oom->cause == VRAM_OOM_PINNED && oom->pin_site != NULL) {
        struct vr_text who = {0};
        vr_text_puts(&who, oom->pin_blocks == 1 ? "It was allocated by " : "The largest of them was allocated by ");
        vr_text_site(&who, oom->pin_site, strlen(oom->pin_site));
        vr_text_item(page->text, page->style, VR_PLAIN, "", MARK_COLUMNS, vr_text_string(&who));
        vr_text_release(&who);
    }
}

static const struct vram_cure *find_cure(const struct vram_report_source *source, uint32_t device, uint64_t event) {
    for (size_t i = 0; source != NULL && i < source->cure_count; i++) {
        if (source->cures[i].device == device && source->cures[i].event == event) return &source->cures[i];
    }
    return NULL;
}

// --- all events -------------------------------------------------------------------------------------------------------------
// Prints one event in full. print_earlier() prints a line for each earlier one.
static void print_page(const struct oom_printer *page, struct vr_report_output *output) {
    const struct vram_report_oom *oom = page->oom;
    print_request(page);
    if (oom->has_picture) print_shares(page);
    print_others(page);
    print_holders(page);
    print_why(page);
    const struct vram_report_source *source = vr_report_replayed(output);
    const struct vram_cure *cure = find_cure(source, page->device->device, oom->event);
    if (cure != NULL) print_cure(page, cure);
    print_paged(page, source);
    if (oom->advice[0] != '\0' && (cure == NULL || cure->verdict != VRAM_CURE_SETTING))
        vr_text_item(page->text, page->style, VR_GREEN, "try", MARK_COLUMNS, oom->advice);
    if (oom->demand != NULL && (cure == NULL || cure->verdict != VRAM_CURE_SETTING)) vr_demand_list(page->text, page->style, oom->demand);
}

static void print_earlier(const struct oom_printer *page) {
    const struct vram_report_oom *oom = page->oom;
    struct vr_text line = {0};
    vr_text_printf(&line, "event %s: %s requested by ", vr_count(oom->event).text, vr_bytes(oom->size_bytes).text);
    vr_text_site(&line, oom->site, strlen(oom->site));
    vr_text_printf(&line, "; %s", oom->text);
    vr_text_bullet(page->text, page->style, VR_RED, "", vr_text_string(&line));
    page->text->failed = page->text->failed || line.failed;
    vr_text_release(&line);
}

void vr_oom_report(struct vr_report_output *output, const struct vram_style *style, const struct vram_report_device *device) {
    if (device->oom_count == 0) return;
    struct vr_text *text = output->text;
    struct oom_printer page = {.text = text, .style = style, .device = device};
    struct vr_text rest = {0};
    const size_t last = device->oom_count - 1;
    vr_text_printf(&rest, "  %s time%s%s", vr_count(device->oom_count).text, last == 0 ? "" : "s", last == 0 ? "" : "; the last");
    vr_text_heading(text, style, "Out of memory", vr_text_string(&rest));
    vr_text_release(&rest);
    page.oom = &device->ooms[last];
    print_page(&page, output);
    if (last == 0) return;
    vr_text_printf(text, "\n    earlier%s\n", last > MOST_EARLIER ? ", the latest" : "");
    for (size_t i = last > MOST_EARLIER ? last - MOST_EARLIER : 0; i < last; i++) {
        page.oom = &device->ooms[i];
        print_earlier(&page);
    }
}
