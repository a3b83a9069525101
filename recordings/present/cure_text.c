// Prints a cure, and the saving by paged memory, as sentences and as members of a JSON object.
#include "base/base.h"
#include "base/json_rows.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"

// ---- cures ----

// The remaining room is called little if it is less than 1/LITTLE_PART of the total.
#define LITTLE_PART 50u

static void put_cure_setting(const struct vram_cure *cure, struct vr_text *out) {
    const uint64_t left = cure->needed_bytes != 0 && cure->room_bytes > cure->needed_bytes ? cure->room_bytes - cure->needed_bytes : 0;
    vr_text_printf(out, "With this setting, the history%s fits in the %s available: it holds at most %s",
                   cure->from_recorded_start ? ", replayed from the memory state at the start of the recording," : "",
                   vr_bytes(cure->room_bytes).text, vr_bytes(cure->held_bytes).text);
    if (cure->needed_bytes != 0) vr_text_printf(out, " and needs %s (%s to spare)", vr_bytes(cure->needed_bytes).text, vr_bytes(left).text);
    vr_text_puts(out, ".");
    if (cure->needed_bytes != 0 && left < cure->room_bytes / LITTLE_PART)
        vr_text_puts(out, " The device is still nearly full: a slightly larger request would fail again.");
}

static void put_demand(const struct vram_cure *cure, struct vr_text *out) {
    const uint64_t over = cure->demand_bytes > cure->room_bytes ? cure->demand_bytes - cure->room_bytes : 0;
    vr_text_printf(out, "No setting can help: with the request, %s is in use at once, %s more than the %s available.",
                   vr_bytes(cure->demand_bytes).text, vr_bytes(over).text, vr_bytes(cure->room_bytes).text);
}

static void put_none(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out, "No setting helps: none of the %u tried fits the history in the %s available, though only %s is in use at once.",
                   cure->tried, vr_bytes(cure->room_bytes).text, vr_bytes(cure->demand_bytes).text);
}

static void put_usual(const struct vram_cure *cure, struct vr_text *out) {
    if (cure->usual != NULL) vr_text_printf(out, " %s usually helps after such a failure; here that is not proven.", cure->usual);
}

static void put_not_reproduced(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out,
                   "A replay cannot tell which setting would have helped: in the %s available, the history fits with the recorded setting. "
                   "Earlier events or the timing of streams caused the failure.",
                   vr_bytes(cure->room_bytes).text);
    put_usual(cure, out);
}

static void put_no_replay(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_puts(out, cure->room_bytes == 0 ? "No setting was tried: the recording does not say how much memory was available."
                                            : "No setting was tried: the history is inconsistent, or its allocator has no settings.");
    put_usual(cure, out);
}

static void put_limit(const struct vram_cure *cure, struct vr_text *out) {
    if (cure->limit_bytes != 0)
        vr_text_printf(out, "Raise the limit: it is %s, and the process needs %s to serve the request.", vr_bytes(cure->limit_bytes).text,
                       vr_bytes(cure->limit_to_bytes).text);
    else
        vr_text_printf(out, "Raise the limit to at least %s. The recording does not name it; the process held %s.",
                       vr_bytes(cure->limit_to_bytes).text, vr_bytes(cure->limit_from_bytes).text);
    if (cure->driver_free_bytes >= cure->limit_to_bytes - cure->limit_from_bytes)
        vr_text_printf(out, " The driver had %s free.", vr_bytes(cure->driver_free_bytes).text);
}

static void put_growth(const struct vram_cure *cure, struct vr_text *out) {
    (void)cure;
    vr_text_puts(out, "No setting was tried: it could only delay the failure. Memory that grows with every step fills any device.");
}

static void put_unfinished(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(
        out, "No setting found in the time allowed (%u tried). Keep the recording (VRAM_ON_OOM=dump): `vram report` tries all settings.",
        cure->tried);
}

void vr_cure_sentence(const struct vram_cure *cure, struct vr_text *out) {
    static void (*const put[])(const struct vram_cure *cure, struct vr_text *out) = {
        [VRAM_CURE_SETTING] = put_cure_setting,
        [VRAM_CURE_DEMAND] = put_demand,
        [VRAM_CURE_NONE] = put_none,
        [VRAM_CURE_NOT_REPRODUCED] = put_not_reproduced,
        [VRAM_CURE_NO_REPLAY] = put_no_replay,
        [VRAM_CURE_UNFINISHED] = put_unfinished,
        [VRAM_CURE_LIMIT] = put_limit,
        [VRAM_CURE_GROWTH] = put_growth,
    };
    put[cure->verdict](cure, out);
    if (cure->windows && (cure->verdict == VRAM_CURE_SETTING || cure->verdict == VRAM_CURE_NONE))
        vr_text_puts(out, " expandable_segments:True was not tried: PyTorch ignores it on Windows (as of 2.9).");
}

static const char *verdict_word(enum vram_cure_verdict verdict) {
    static const char *const words[] = {
#define VERDICT_WORD(constant, name) #name,
        VRAM_CURE_VERDICTS(VERDICT_WORD)
#undef VERDICT_WORD
    };
    return words[verdict];
}

#define CURE_FACTS(X)                                                                                                                      \
    X(U64, "device", it->device, ALWAYS, "the device")                                                                                     \
    X(U64, "index", it->event, ALWAYS, "event of the device's last out-of-memory error")                                                   \
    X(TEXT, "verdict", verdict_word(it->verdict), ALWAYS, "one word; see the table below")                                                 \
    X(TEXT, "conf", it->conf, NULL_UNLESS(it->verdict == VRAM_CURE_SETTING), "with `setting`: the value for `variable`")                   \
    X(TEXT, "variable", it->variable, ALWAYS,                                                                                              \
      "`PYTORCH_CUDA_ALLOC_CONF`, or `PYTORCH_HIP_ALLOC_CONF` for ROCm, or `PYTORCH_NPU_ALLOC_CONF` for Ascend")                           \
    X(TEXT, "text", vr_text_string(&text), ALWAYS, "the report's sentences")                                                               \
    X(TEXT, "usual", it->usual, ALWAYS, "with `not_seen` and `no_replay`: the option that usually helps for this cause, or null")          \
    X(TEXT, "start", it->from_recorded_start ? "recorded" : "cold", ALWAYS,                                                                \
      "`recorded`: replayed from the memory state at the start of the recording; `cold`: from an empty cache")                             \
    X(U64, "limit_at_least_bytes", it->limit_to_bytes, NULL_UNLESS(it->verdict == VRAM_CURE_LIMIT),                                        \
      "with `limit`: the lowest sufficient limit")                                                                                         \
    X(U64, "room_bytes", it->room_bytes, ALWAYS, "memory of the device in the replays")                                                    \
    X(U64, "demand_bytes", it->demand_bytes, ALWAYS, "highest live bytes, including the failed request; 0: not known")                     \
    X(U64, "held_bytes", it->held_bytes, ALWAYS, "highest reserved bytes with `conf`")                                                     \
    X(U64, "needed_bytes", it->needed_bytes, ALWAYS, "smallest memory in which it fits with `conf`; 0: not measured")                      \
    X(U64, "tried", it->tried, ALWAYS, "number of settings replayed")

void vr_cure_json(const struct vram_cure *it, struct vr_json *json) {
    struct vr_text text = {0};
    vr_cure_sentence(it, &text);
    CURE_FACTS(VR_FACT_JSON)
    vr_text_release(&text);
}

static uint64_t paged_side_bytes(const struct vram_paged_side *side) {
    return side->needed_bytes == 0 ? side->held_bytes : side->needed_bytes;
}

// Returns whether expandable_segments, PyTorch's own option, does as well as paged memory to within 1 %.
static bool own_option_does(const struct vram_paged_saving *saving) {
    const struct vram_paged_side *own = &saving->expandable, *paged = &saving->paged;
    if (!own->known || (own->needed_bytes == 0) != (paged->needed_bytes == 0)) return false;
    if (saving->room_bytes != 0 && own->fits != paged->fits) return false;
    return paged_side_bytes(own) <= paged_side_bytes(paged) + paged_side_bytes(paged) / 100;
}

#define OWN_ONLY "vram's allocator only"

// Prints the sentence for a recording whose requests failed and that completes with paged memory.
static void put_cure(const struct vram_paged_saving *saving, struct vr_text *out) {
    const struct vram_paged_side *own = &saving->expandable, *paged = &saving->paged;
    vr_text_printf(out, "paged:True (" OWN_ONLY ") also fits in the %s available", vr_bytes(saving->room_bytes).text);
    const uint64_t other_bytes = own->known && own->needed_bytes != 0 ? own->needed_bytes : paged->needed_bytes;
    if (paged->needed_bytes != 0) vr_text_printf(out, " and needs %s", vr_bytes_unlike(paged->needed_bytes, other_bytes).text);
    if (own->known && own->fits && own->needed_bytes != 0)
        vr_text_printf(out, "; PyTorch's expandable_segments:True needs %s", vr_bytes_unlike(own->needed_bytes, paged->needed_bytes).text);
    else if (own->known && !own->fits)
        vr_text_puts(out, "; PyTorch's expandable_segments:True does not fit");
    vr_text_puts(out, ".");
}

static void put_instead(const struct vram_paged_side *side, const struct vram_paged_side *today, struct vr_text *out) {
    vr_text_printf(out, "%s ", vr_bytes_unlike(paged_side_bytes(side), paged_side_bytes(today)).text);
    vr_text_printf(out, "instead of %s", vr_bytes_unlike(paged_side_bytes(today), paged_side_bytes(side)).text);
}

static void put_headline(const struct vram_paged_saving *saving, struct vr_text *out) {
    const bool own = own_option_does(saving);
    vr_text_puts(out, own ? "expandable_segments:True: " : "paged:True (" OWN_ONLY "): ");
    put_instead(own ? &saving->expandable : &saving->paged, &saving->today, out);
}

static void put_less(const struct vram_paged_saving *saving, struct vr_text *out) {
    const struct vram_paged_side *own = &saving->expandable, *paged = &saving->paged;
    const char *verb = paged->needed_bytes == 0 ? "holds" : "needs";
    put_headline(saving, out);
    if (own_option_does(saving))
        vr_text_printf(out, ", with PyTorch's own allocator; paged:True (" OWN_ONLY ") %s %s", verb,
                       vr_bytes(paged_side_bytes(paged)).text);
    else if (own->known)
        vr_text_printf(out, "; PyTorch's expandable_segments:True %s %s", verb,
                       vr_bytes_unlike(paged_side_bytes(own), paged_side_bytes(paged)).text);
    vr_text_puts(out, ".");
}

static void put_price(const struct vram_paged_side *today, const struct vram_paged_side *now, struct vr_text *out) {
    vr_text_printf(out, " With memory to spare it makes %s driver calls ", vr_count(now->driver_calls).text);
    vr_text_printf(out, "in %s, today's setting ", vr_duration_ns(now->driver_time_ns).text);
    vr_text_printf(out, "%s in ", vr_count(today->driver_calls).text);
    vr_text_printf(out, "%s.", vr_duration_ns(today->driver_time_ns).text);
}

static bool says_something(const struct vram_paged_saving *saving) {
    if (saving->verdict != VRAM_PAGED_LESS) return false;
    return saving->room_bytes == 0 || (!saving->today.fits && saving->paged.fits);
}

// Prints nothing if paged memory saves nothing. Sets out->failed if memory runs out.
static void paged_sentences(const struct vram_paged_saving *saving, struct vr_text *out) {
    if (saving->verdict == VRAM_PAGED_LONG && saving->events > VRAM_PAGED_MOST_EVENTS)
        vr_text_printf(out,
                       "Not compared with paged:True: the history has %s events, and a report replays at most %s. `vram tune` compares.",
                       vr_count(saving->events).text, vr_count(VRAM_PAGED_MOST_EVENTS).text);
    if (!says_something(saving)) return;
    const bool failed = saving->room_bytes != 0;
    if (failed)
        put_cure(saving, out);
    else
        put_less(saving, out);
    const bool own = !failed && own_option_does(saving);
    put_price(&saving->today, own ? &saving->expandable : &saving->paged, out);
    vr_text_puts(out, " Replayed from an empty cache with estimated driver times. A replay cannot see cross-stream waits or memory outside "
                      "the allocator.");
}

void vr_paged_of_report(const struct vram_report_source *source, uint32_t device, struct vr_text *out) {
    for (size_t i = 0; source != NULL && i < source->saving_count; i++) {
        if (source->savings[i].device == device) paged_sentences(&source->savings[i], out);
    }
}

#define PAGED_SIDE_FACTS(X)                                                                                                                \
    X(BOOL, "fits", it->fits, ALWAYS, "it completes in `room_bytes`; true if nothing failed")                                              \
    X(U64, "needed_bytes", it->needed_bytes, NULL_IF_EMPTY,                                                                                \
      "smallest memory in which it completes, including the failed requests; null: not searched (more than 25,000 events)")                \
    X(U64, "held_bytes", it->held_bytes, ALWAYS, "highest reserved bytes with memory to spare")                                            \
    X(U64, "driver_calls", it->driver_calls, ALWAYS, "with memory to spare: driver calls that allocate or free memory")                    \
    X(MS, "driver_time_ms", it->driver_time_ns, ALWAYS, "their time")

static void put_side(struct vr_json *json, const char *name, const struct vram_paged_side *it) {
    vr_json_object(json, name);
    PAGED_SIDE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

#define PAGED_FACTS(X)                                                                                                                     \
    X(U64, "device", it->device, ALWAYS, "the device")                                                                                     \
    X(TEXT, "verdict", vram_paged_verdict_name(it->verdict), ALWAYS, "one word; see the table below")                                      \
    X(U64, "room_bytes", it->room_bytes, NULL_IF_EMPTY, "memory available at the last out-of-memory error; null: nothing failed")          \
    X(U64, "live_bytes", it->live_bytes, ALWAYS, "highest bytes of live blocks; 0: not replayed")                                          \
    X(OBJECT, "today", put_side(json, key, &it->today), NULL_UNLESS(it->today.known), "replayed with the recorded setting (see below)")    \
    X(OBJECT, "expandable", put_side(json, key, &it->expandable), NULL_UNLESS(it->expandable.known),                                       \
      "with `expandable_segments:True` added (PyTorch has this option)")                                                                   \
    X(OBJECT, "paged", put_side(json, key, &it->paged), NULL_UNLESS(it->paged.known), "with `paged:True` added (vram's allocator only)")   \
    X(TEXT, "text", vr_text_string(&text), NULL_UNLESS(text.length != 0), "the report's sentences; null: no setting saves memory")         \
    X(TEXT, "headline", vr_text_string(&headline), NULL_UNLESS(headline.length != 0),                                                      \
      "if nothing failed, the beginning of `text`: the setting and what it saves")

void vr_paged_json(const struct vram_paged_saving *it, struct vr_json *json) {
    struct vr_text text = {0}, headline = {0};
    paged_sentences(it, &text);
    if (says_something(it) && it->room_bytes == 0) put_headline(it, &headline);
    PAGED_FACTS(VR_FACT_JSON)
    vr_text_release(&headline);
    vr_text_release(&text);
}

enum vram_status vram_paged_saving_text(const struct vram_paged_saving *saving, vram_write write, void *user) {
    VR_REQUIRE(saving && write);
    struct vr_text text = {0};
    paged_sentences(saving, &text);
    return vr_text_finish(&text, write, user);
}
