// Describes the memory in use and what would reduce it. Names of call sites come from the recording, so print them with vr_text_site().
#include "base/json_rows.h"
#include "present/report_members.h"
#include "present/shared_texts.h"

#include "analyze/demand.h"
#include "present/text_parts.h"

enum { MARK_COLUMNS = 5, MOST_AT_PEAK = 3 };

static void put_site(struct vr_text *out, const char *before, const char *site, const char *after) {
    vr_text_puts(out, before);
    vr_text_site(out, site, strlen(site));
    vr_text_puts(out, after);
}

// Prints ", most of it by SITE (9.0 GiB), SITE (6.0 GiB) and SITE (5.5 GiB)": the sites with at least a quarter of the first one's bytes.
static void put_sites(struct vr_text *out, const struct vram_report_demand *demand, const char *most) {
    size_t count = 0;
    while (count < demand->site_count && demand->sites[count].bytes >= demand->sites[0].bytes / 4) count++;
    for (size_t i = 0; i < count; i++) {
        put_site(out, i == 0 ? most : i + 1 == count ? " and " : ", ", demand->sites[i].name, " (");
        vr_text_printf(out, "%s)", vr_bytes(demand->sites[i].bytes).text);
    }
}

// --- demands -----------------------------------------------------------------------------------------------------------------------------

static void put_request(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "a single request of %s %s the %s available", vr_bytes(demand->request_bytes).text,
                   demand->request_bytes > demand->room_bytes ? "exceeds" : "takes most of", vr_bytes(demand->room_bytes).text);
}

static void put_retained(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "graphs of earlier steps are kept: %s of activations, %s more per step", vr_bytes(demand->bytes).text,
                   vr_bytes((uint64_t)demand->per_step_bytes).text);
    put_sites(out, demand, ", most allocated by ");
}

static void put_growth(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "a leak: %s is held by allocations that grow by %s per step", vr_bytes(demand->bytes).text,
                   vr_bytes((uint64_t)demand->per_step_bytes).text);
    put_sites(out, demand, ", allocated by ");
}

static void put_not_trained(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "a forward pass without a backward pass keeps %s of activations", vr_bytes(demand->bytes).text);
    put_sites(out, demand, ", most allocated by ");
}

static void put_first_step(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "the optimizer was allocating its state in its first step: %s so far, with %s of parameters and %s of gradients",
                   vr_bytes(demand->bytes).text, vr_bytes(demand->of_role[VRAM_ROLE_PARAMETERS].bytes).text,
                   vr_bytes(demand->of_role[VRAM_ROLE_GRADIENTS].bytes).text);
    put_sites(out, demand, ", allocated by ");
}

static void put_held_gradients(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "%s of gradients stays live through the forward pass", vr_bytes(demand->bytes).text);
}

static void put_rounding(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "blocks are %s larger than the %s requested, and are not split", vr_bytes(demand->bytes).text,
                   vr_bytes(demand->in_use_bytes).text);
    put_sites(out, demand, ", most allocated by ");
}

static void put_role(struct vr_text *out, const struct vram_report_demand *demand) {
    const char *title = vram_role_title(demand->role);
    const bool many = title[strlen(title) - 1] == 's' || demand->role == VRAM_ROLE_RECOMPUTED;
    vr_text_printf(out, "%s %s %s of the %s in use", title, many ? "hold" : "holds", vr_bytes(demand->bytes).text,
                   vr_bytes(demand->in_use_bytes).text);
    put_sites(out, demand, many ? ", most allocated by " : ", most allocated by ");
}

static void put_caller(struct vr_text *out, const struct vram_report_demand *demand) {
    vr_text_printf(out, "%s is in use", vr_bytes(demand->in_use_bytes).text);
    put_sites(out, demand, ", most allocated by ");
}

static void put_blocks(struct vr_text *out, const struct vram_report_remedy *remedy) {
    vr_text_printf(out, "%s (%s%s)", vr_counted(remedy->blocks, "block").text, vr_bytes(remedy->bytes).text,
                   remedy->blocks == 1 ? "" : " in total");
}

// --- remedies ----------------------------------------------------------------------------------------------------------------------------

static void do_recompute(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_site(out, remedy->function ? "recompute each call of the function at " : "recompute what ", remedy->site,
             remedy->function    ? ""
             : remedy->calls > 1 ? " calls, one call at a time"
                                 : " calls");
    vr_text_puts(out, " (torch.utils.checkpoint)");
}
static void say_recompute(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    vr_text_puts(out, "frees ");
    put_blocks(out, remedy);
    vr_text_printf(out,
                   " that the forward pass keeps for the backward pass; peak recomputed: the result of each of its %s per pass stays, the "
                   "rest is live only during the call and its own backward pass",
                   vr_counted(remedy->calls, "call").text);
}

static void do_batch(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    vr_text_printf(out, "reduce the batch to at most %.0f %%", 100 * remedy->factor - 0.5 < 0 ? 0 : 100 * remedy->factor - 0.5);
    const char *before = " (";
    for (unsigned size = 8; size <= 64; size *= 2) {
        const unsigned fits = (unsigned)(remedy->factor * size);
        if (fits == 0) continue;
        vr_text_printf(out, "%s%u of %u", before, fits, size);
        before = ", ";
    }
    if (before[0] == ',') vr_text_puts(out, ")");
}
// Returns whether the program trains: it keeps memory for a backward pass, or has gradients or optimizer state.
static bool is_trained(const struct vram_report_demand *demand) {
    bool kept = demand->later_bytes != 0 || demand->of_role[VRAM_ROLE_GRADIENTS].bytes != 0;
    for (size_t i = 0; i < demand->remedy_count; i++) kept = kept || demand->remedies[i].remedy == VRAM_REMEDY_RECOMPUTE;
    return kept || demand->of_role[VRAM_ROLE_OPTIMIZER_STATE].bytes != 0;
}

static void say_batch(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    vr_text_puts(out, "estimate: activations, inputs and temporaries scale with the batch, here ");
    put_blocks(out, remedy);
    vr_text_printf(out, "%s; parameters%s do not", demand->request_bytes == 0 ? "" : ", and the request",
                   is_trained(demand) ? ", gradients and optimizer state" : "");
    if (demand->later_bytes != 0)
        vr_text_printf(out, "; includes %s of gradients and Adam state not yet allocated", vr_bytes(demand->later_bytes).text);
    if (demand->earlier_step)
        vr_text_puts(out, "; the rest of the step is estimated from the previous step, scaled by their forward passes");
    else if (demand->unfinished)
        vr_text_puts(out, "; the request failed in the forward pass, so the rest of the step is not recorded and may need a smaller batch");
}

static void do_chunks(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    vr_text_printf(out, "compute the largest tensors in %u parts, one after the other", remedy->divisor);
    put_site(out, " (", remedy->site, remedy->of_loss ? "; for logits, compute the loss over chunks of tokens and recompute them)" : ")");
}
static void say_chunks(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_printf(out, " %s its size, or of half or twice its size; peak recomputed with 1/%u of %s", remedy->blocks == 1 ? "has" : "have",
                   remedy->divisor, remedy->blocks == 1 ? "it" : "them");
}

static void do_gradients_none(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "drop gradients before the forward pass: zero_grad(set_to_none=True), unless you accumulate them");
}
static void say_gradients_none(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, "; peak recomputed: each is live again from the moment the backward pass computes it");
}

static void do_state_8bit(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "keep the optimizer's state in 8 bits");
}
static void say_state_8bit(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, ", assumed to be 32-bit values; 8 bits and a scale per 256 values need 26 % of that");
}

static void do_state_offload(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "keep the optimizer's state in the host's memory");
}
static void say_blocks(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, " would not be live");
}

static void do_sharding(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    const bool gradients = demand->of_role[VRAM_ROLE_GRADIENTS].bytes != 0, state = demand->of_role[VRAM_ROLE_OPTIMIZER_STATE].bytes != 0;
    vr_text_printf(out, "shard parameters%s%s across %u devices (FSDP%s)",
                   !gradients ? ""
                   : state    ? ", gradients"
                              : " and gradients",
                   state ? " and the optimizer's state" : "", remedy->divisor, gradients || state ? "" : " or tensor parallelism");
}
static void say_sharding(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_printf(out, ", 1/%u of each, plus one gathered layer", remedy->divisor);
}

static void do_kv_cache(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    vr_text_printf(out, "reduce the KV cache to at most %.0f %% of its tokens",
                   100 * remedy->factor - 0.5 < 0 ? 0 : 100 * remedy->factor - 0.5);
}
static void say_kv_cache(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, " scale with the number of tokens");
}

static void do_attention(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "compute attention without its scores in memory: scaled_dot_product_attention (flash attention)");
}
static void say_attention(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, " allocated in attention, of the size of its scores (batch x heads x tokens x tokens), would not be allocated");
}

static void do_foreach(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "create the optimizer with foreach=False, or with fused=True if it supports that");
}
static void say_foreach(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_blocks(out, remedy);
    vr_text_puts(out, " that foreach allocates for all parameters at once would not be live; foreach=False is slower, fused=True is not");
}

static void do_casts(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(
        out, "keep the weights in bf16, so that autocast does not copy them (for inference, autocast with cache_enabled=False also works)");
}

static void do_release(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    put_site(out, "in each step, free what ", remedy->site, " allocated in it, or keep a copy on the host");
}
static void do_detach(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "detach values that are kept across steps (loss.item(), .detach(), no retain_graph), because their graphs keep these "
                      "activations alive");
}
static void do_no_grad(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    (void)remedy;
    vr_text_puts(out, "run that forward pass under torch.no_grad()");
}
static void say_growth(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    vr_text_printf(out, "of the %s that accumulates from step to step, one step's %s would remain", vr_bytes(remedy->bytes).text,
                   vr_bytes((uint64_t)demand->per_step_bytes).text);
}
static void say_no_grad(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    (void)demand;
    vr_text_printf(out, "%s is kept for a backward pass that never runs; the running layer needs memory in addition",
                   vr_bytes(remedy->bytes).text);
}

static const struct {
    void (*what)(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand);
    void (*basis)(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand);
} words[VRAM_REMEDY_COUNT] = {
    [VRAM_REMEDY_RECOMPUTE] = {do_recompute, say_recompute},
    [VRAM_REMEDY_BATCH] = {do_batch, say_batch},
    [VRAM_REMEDY_CHUNKS] = {do_chunks, say_chunks},
    [VRAM_REMEDY_GRADIENTS_NONE] = {do_gradients_none, say_gradients_none},
    [VRAM_REMEDY_STATE_8BIT] = {do_state_8bit, say_state_8bit},
    [VRAM_REMEDY_STATE_OFFLOAD] = {do_state_offload, say_blocks},
    [VRAM_REMEDY_SHARDING] = {do_sharding, say_sharding},
    [VRAM_REMEDY_KV_CACHE] = {do_kv_cache, say_kv_cache},
    [VRAM_REMEDY_RELEASE] = {do_release, say_growth},
    [VRAM_REMEDY_DETACH] = {do_detach, say_growth},
    [VRAM_REMEDY_NO_GRAD] = {do_no_grad, say_no_grad},
    [VRAM_REMEDY_ATTENTION] = {do_attention, say_attention},
    [VRAM_REMEDY_FOREACH] = {do_foreach, say_foreach},
    [VRAM_REMEDY_CASTS] = {do_casts, say_blocks},
};

static void put_outcome(struct vr_text *out, const struct vram_report_remedy *remedy, const struct vram_report_demand *demand) {
    vr_text_printf(out, ": %s less, %s in total", vr_bytes(remedy->saved_bytes).text, vr_bytes(remedy->left_bytes).text);
    if (!demand->room_is_named) return;
    if (remedy->fits)
        vr_text_puts(out, demand->unfinished && !(remedy->remedy == VRAM_REMEDY_BATCH && demand->earlier_step)
                              ? ", so that the request fits"
                              : ", which fits");
    else
        vr_text_printf(out, ", still %s too much", vr_bytes(remedy->left_bytes - demand->room_bytes).text);
}

// Prints the moment of the new peak. If a remedy saves less than its blocks hold, another moment has become the peak.
static void put_next_moment(struct vr_text *out, const struct vram_report_remedy *remedy) {
    if (remedy->next_event == VR_SAME_MOMENT) return;
    if (remedy->next_event < 0)
        vr_text_puts(out, "; the peak is then before the first event");
    else
        vr_text_printf(out, "; the peak is then after event %s", vr_count((uint64_t)remedy->next_event).text);
}

// --- texts -------------------------------------------------------------------------------------------------------------------------------

static enum vram_status keep_demand_text(struct vr_arena *arena, struct vr_text *text, const char **kept) {
    enum vram_status status = vr_text_status(text);
    if (status == VRAM_OK) status = vr_arena_copy(arena, vr_text_string(text), text->length, kept);
    vr_text_release(text);
    return status;
}

static enum vram_status put_remedy(struct vr_arena *arena, const struct vram_report_demand *demand, struct vram_report_remedy *remedy) {
    struct vr_text text = {0}, basis = {0};
    words[remedy->remedy].what(&text, remedy, demand);
    put_outcome(&text, remedy, demand);
    words[remedy->remedy].basis(&basis, remedy, demand);
    put_next_moment(&basis, remedy);
    const enum vram_status status = keep_demand_text(arena, &text, &remedy->text);
    if (status == VRAM_OK) return keep_demand_text(arena, &basis, &remedy->basis);
    vr_text_release(&basis);
    return status;
}

enum vram_status vr_demand_sentences(struct vr_arena *arena, const struct vram_report_demand *demand) {
    static void (*const put[])(struct vr_text * out, const struct vram_report_demand *demand) = {
        [VRAM_DEMAND_REQUEST] = put_request,       [VRAM_DEMAND_RETAINED] = put_retained,
        [VRAM_DEMAND_GROWTH] = put_growth,         [VRAM_DEMAND_NOT_TRAINED] = put_not_trained,
        [VRAM_DEMAND_FIRST_STEP] = put_first_step, [VRAM_DEMAND_HELD_GRADIENTS] = put_held_gradients,
        [VRAM_DEMAND_ROUNDING] = put_rounding,     [VRAM_DEMAND_ROLE] = put_role,
        [VRAM_DEMAND_CALLER] = put_caller,
    };
    struct vram_report_demand *made = (struct vram_report_demand *)(uintptr_t)demand; // owned by the arena and not yet shared
    struct vram_report_remedy *remedies = (struct vram_report_remedy *)(uintptr_t)demand->remedies;
    struct vr_text text = {0};
    put[demand->demand](&text, demand);
    VR_TRY(keep_demand_text(arena, &text, &made->text));
    for (size_t i = 0; i < demand->remedy_count; i++) VR_TRY(put_remedy(arena, demand, &remedies[i]));
    return VRAM_OK;
}

// Prints "parameters 6.4 GiB (31.0 %), ...", largest first.
static void put_roles(struct vr_text *text, const struct vram_report_demand *demand) {
    bool listed[VRAM_ROLE_COUNT] = {false};
    for (size_t n = 0; n < VRAM_ROLE_COUNT; n++) {
        size_t most = VRAM_ROLE_COUNT;
        for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) {
            if (listed[role] || demand->of_role[role].bytes == 0) continue;
            if (most == VRAM_ROLE_COUNT || demand->of_role[role].bytes > demand->of_role[most].bytes) most = role;
        }
        if (most == VRAM_ROLE_COUNT) return;
        listed[most] = true;
        vr_text_printf(text, "%s%s %s (%s)", n == 0 ? "" : ", ", vram_role_title(most), vr_bytes(demand->of_role[most].bytes).text,
                       vr_percent(demand->of_role[most].bytes, demand->in_use_bytes).text);
    }
}

static const char *name_phase(const char *phase) {
    static const struct {
        const char *phase, *name;
    } names[] = {{"forward", "the forward pass"},
                 {"backward", "the backward pass"},
                 {"optimizer", "the optimizer's step"},
                 {"input", "input preparation"},
                 {"load", "loading the model"}};
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) {
        if (strcmp(names[i].phase, phase) == 0) return names[i].name;
    }
    return "";
}

void vr_demand_at_peak(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand) {
    struct vr_text roles = {0}, rest = {0};
    if (demand->of_role[VRAM_ROLE_UNKNOWN].bytes == demand->in_use_bytes) return;
    vr_text_printf(&rest, demand->phase[0] == '\0' ? "%s" : "  in %s", name_phase(demand->phase));
    vr_text_heading(text, style, "The peak", vr_text_string(&rest));
    put_roles(&roles, demand);
    vr_text_item(text, style, VR_CYAN, "holds", MARK_COLUMNS + 1, vr_text_string(&roles));
    for (size_t i = 0; i < demand->remedy_count && i < MOST_AT_PEAK; i++)
        vr_text_item(text, style, VR_GREEN, i == 0 ? "less" : "or", MARK_COLUMNS + 1, demand->remedies[i].text);
    text->failed = text->failed || roles.failed || rest.failed;
    vr_text_release(&roles);
    vr_text_release(&rest);
}

void vr_demand_list(struct vr_text *text, const struct vram_style *style, const struct vram_report_demand *demand) {
    for (size_t i = 0; i < demand->remedy_count; i++) {
        const struct vram_report_remedy *remedy = &demand->remedies[i];
        vr_text_item(text, style, remedy->fits ? VR_GREEN : VR_YELLOW, i == 0 ? "help" : "or", MARK_COLUMNS, remedy->text);
        vr_text_item(text, style, VR_DIM, "", MARK_COLUMNS, remedy->basis);
    }
}

// --- JSON --------------------------------------------------------------------------------------------------------------------------------

#define REMEDY_FACTS(X)                                                                                                                    \
    X(TEXT, "remedy", vram_remedy_name(it->remedy), ALWAYS, "kind of remedy; see the table of remedies below")                             \
    X(TEXT, "text", it->text, ALWAYS, "the remedy and its effect, as a sentence")                                                          \
    X(TEXT, "basis", it->basis, ALWAYS, "how the effect was computed, and its assumptions")                                                \
    X(TEXT, "site", it->site, NULL_IF_EMPTY, "place of the change; null: no single place")                                                 \
    X(U64, "saved_bytes", it->saved_bytes, ALWAYS, "reduction of the highest demand")                                                      \
    X(U64, "left_bytes", it->left_bytes, ALWAYS, "highest demand afterwards")                                                              \
    X(BOOL, "fits", it->fits, ALWAYS, "the highest demand then fits in the available memory")                                              \
    X(DOUBLE, "factor", it->factor, ALWAYS, "remaining fraction of the batch or tokens; else 1")                                           \
    X(U64, "divisor", it->divisor, ALWAYS, "number of parts or devices; else 1")                                                           \
    X(BOOL, "function", it->function, ALWAYS, "includes every call of the function at `site`, not only calls at that line")                \
    X(U64, "calls", it->calls, ALWAYS, "with `recompute`: calls of `site` in a forward pass")                                              \
    X(I64, "next_peak_event", it->next_event, NULL_UNLESS(it->next_event != VR_SAME_MOMENT),                                               \
      "event after which the new peak is reached; null: the peak stays at the same moment")                                                \
    X(U64, "blocks", it->blocks, ALWAYS, "number of blocks in the sum")                                                                    \
    X(U64, "bytes", it->bytes, ALWAYS, "their bytes")

static void put_remedies(struct vr_json *json, const char *key, const struct vram_report_demand *demand) {
    vr_json_array(json, key);
    for (size_t i = 0; i < demand->remedy_count; i++) {
        const struct vram_report_remedy *it = &demand->remedies[i];
        vr_json_object(json, NULL);
        REMEDY_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_role_bytes(struct vr_json *json, const char *key, const struct vram_report_demand *demand) {
    vr_json_object(json, key);
    for (size_t role = 0; role < VRAM_ROLE_COUNT; role++) {
        if (demand->of_role[role].count != 0) vr_json_u64(json, vram_role_word(role), demand->of_role[role].bytes);
    }
    vr_json_object_end(json);
}

#define DEMAND_FACTS(X)                                                                                                                    \
    X(TEXT, "demand", vram_demand_name(it->demand), ALWAYS, "dominant demand; see the table of demands below")                             \
    X(TEXT, "role", vram_role_word(it->role), NULL_UNLESS(it->demand == VRAM_DEMAND_ROLE), "with the demand `role`: the role")             \
    X(TEXT, "text", it->text, ALWAYS, "the dominant demand and its largest call sites, as a sentence")                                     \
    X(I64, "event", it->event, ALWAYS, "the moment")                                                                                       \
    X(U64, "bytes", it->bytes, ALWAYS, "bytes of the dominant demand")                                                                     \
    X(U64, "in_use_bytes", it->in_use_bytes, ALWAYS, "requested bytes that are live at that moment")                                       \
    X(U64, "request_bytes", it->request_bytes, ALWAYS, "bytes of the failed request; 0: no request failed")                                \
    X(U64, "wanted_bytes", it->wanted_bytes, ALWAYS, "blocks in use plus the failed request")                                              \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "memory available, or given by `--memory`")                                               \
    X(BOOL, "room_is_named", it->room_is_named, ALWAYS,                                                                                    \
      "true if `room_bytes` comes from a failure, or from `--memory` below the peak; else `room_bytes` is 90 % of the peak and no remedy " \
      "`fits`")                                                                                                                            \
    X(TEXT, "phase", it->phase, NULL_IF_EMPTY,                                                                                             \
      "phase of the program: `forward`, `backward`, `optimizer`, `input` or `load`; null: not known")                                      \
    X(BOOL, "unfinished", it->unfinished, ALWAYS, "the request failed in a forward pass, so the recording lacks the rest of the step")     \
    X(BOOL, "earlier_step", it->earlier_step, ALWAYS, "an earlier, similar step shows the rest of the step")                               \
    X(ARRAY, "sites", vr_report_json_groups(json, key, it->sites, it->site_count), ALWAYS,                                                 \
      "largest call sites of the dominant demand, at most 3: `site`, `bytes`, `count`")                                                    \
    X(MAP, "roles", put_role_bytes(json, key, it), ALWAYS, "bytes by role")                                                                \
    X(ARRAY, "remedies", put_remedies(json, key, it), ALWAYS, "remedies, those that fit first, then by savings (see below)")

void vr_demand_json(struct vr_json *json, const struct vram_report_demand *it) {
    if (it == NULL) {
        vr_json_null(json, "demand");
        return;
    }
    vr_json_object(json, "demand");
    DEMAND_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}
