// See paged_text.h.
#include "present/paged_text.h"

#include "base/base.h"
#include "present/text_parts.h"

static uint64_t paged_side_bytes(const struct vram_paged_side *side) {
    return side->needed_bytes == 0 ? side->held_bytes : side->needed_bytes;
}

// PyTorch's own option does nearly as well, to 1 %.
static bool own_option_does(const struct vram_paged_saving *saving) {
    const struct vram_paged_side *own = &saving->expandable, *paged = &saving->paged;
    if (!own->known || (own->needed_bytes == 0) != (paged->needed_bytes == 0)) return false;
    if (saving->room_bytes != 0 && own->fits != paged->fits) return false;
    return paged_side_bytes(own) <= paged_side_bytes(paged) + paged_side_bytes(paged) / 100;
}

#define OWN_ONLY "vram's allocator only"

// Requests failed, and with it they do not.
static void put_cure(const struct vram_paged_saving *saving, struct vr_text *out) {
    const struct vram_paged_side *own = &saving->expandable, *paged = &saving->paged;
    vr_text_printf(out, "paged:True (" OWN_ONLY ") completes in the same %s", vr_bytes(saving->room_bytes).text);
    const uint64_t beside = own->known && own->needed_bytes != 0 ? own->needed_bytes : paged->needed_bytes;
    if (paged->needed_bytes != 0) vr_text_printf(out, " and needs %s", vr_bytes_beside(paged->needed_bytes, beside).text);
    if (own->known && own->fits && own->needed_bytes != 0)
        vr_text_printf(out, "; PyTorch's expandable_segments:True needs %s", vr_bytes_beside(own->needed_bytes, paged->needed_bytes).text);
    else if (own->known && !own->fits)
        vr_text_puts(out, "; PyTorch's expandable_segments:True does not complete in it");
    vr_text_puts(out, ".");
}

static void put_instead(const struct vram_paged_side *side, const struct vram_paged_side *today, struct vr_text *out) {
    vr_text_printf(out, "%s ", vr_bytes_beside(paged_side_bytes(side), paged_side_bytes(today)).text);
    vr_text_printf(out, "instead of %s", vr_bytes_beside(paged_side_bytes(today), paged_side_bytes(side)).text);
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
                       vr_bytes_beside(paged_side_bytes(own), paged_side_bytes(paged)).text);
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

void vr_paged_sentences(const struct vram_paged_saving *saving, struct vr_text *out) {
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
    vr_text_puts(out,
                 " Replayed from an empty cache, by the simulated driver's prices; a replay cannot see waits of one stream for another, "
                 "or memory outside the allocator.");
}

void vr_paged_of_report(const struct vram_report_source *source, uint32_t device, struct vr_text *out) {
    for (size_t i = 0; source != NULL && i < source->saving_count; i++) {
        if (source->savings[i].device == device) vr_paged_sentences(&source->savings[i], out);
    }
}

static void put_side(struct vr_json *json, const char *key, const struct vram_paged_side *side) {
    if (!side->known) {
        vr_json_null(json, key);
        return;
    }
    vr_json_object(json, key);
    vr_json_bool(json, "fits", side->fits);
    if (side->needed_bytes == 0)
        vr_json_null(json, "needed_bytes");
    else
        vr_json_u64(json, "needed_bytes", side->needed_bytes);
    vr_json_u64(json, "held_bytes", side->held_bytes);
    vr_json_u64(json, "driver_calls", side->driver_calls);
    vr_json_double(json, "driver_time_ms", (double)side->driver_time_ns / 1e6);
    vr_json_object_end(json);
}

void vr_paged_json(const struct vram_paged_saving *saving, struct vr_json *json) {
    struct vr_text text = {0}, headline = {0};
    vr_paged_sentences(saving, &text);
    if (says_something(saving) && saving->room_bytes == 0) put_headline(saving, &headline);
    vr_json_u64(json, "device", saving->device);
    vr_json_string(json, "verdict", vram_paged_verdict_name(saving->verdict));
    if (saving->room_bytes == 0)
        vr_json_null(json, "room_bytes");
    else
        vr_json_u64(json, "room_bytes", saving->room_bytes);
    vr_json_u64(json, "live_bytes", saving->live_bytes);
    put_side(json, "today", &saving->today);
    put_side(json, "expandable", &saving->expandable);
    put_side(json, "paged", &saving->paged);
    vr_json_string(json, "text", text.length == 0 ? NULL : vr_text_string(&text));
    vr_json_string(json, "headline", headline.length == 0 ? NULL : vr_text_string(&headline));
    vr_text_release(&headline);
    vr_text_release(&text);
}

enum vram_status vram_paged_saving_text(const struct vram_paged_saving *saving, vram_write write, void *user) {
    VR_REQUIRE(saving && write);
    struct vr_text text = {0};
    vr_paged_sentences(saving, &text);
    return vr_text_finish(&text, write, user);
}
