// cure_text.c: a cure as a sentence, and as members of a JSON object.
#include "present/cure_text.h"

// Room that is left is little where it is less than this part of all.
#define LITTLE_PART 50u

static void put_cure_setting(const struct vram_cure *cure, struct vr_text *out) {
    const uint64_t left = cure->needed_bytes != 0 && cure->room_bytes > cure->needed_bytes ? cure->room_bytes - cure->needed_bytes : 0;
    vr_text_printf(out, "Replayed with it%s, the history fits in the %s there was room for: it holds at most %s",
                   cure->from_recorded_start ? " from the memory as it lay when the recording began" : "", vr_bytes(cure->room_bytes).text,
                   vr_bytes(cure->held_bytes).text);
    if (cure->needed_bytes != 0)
        vr_text_printf(out, ", and needs %s (%s of room left)", vr_bytes(cure->needed_bytes).text, vr_bytes(left).text);
    vr_text_puts(out, ".");
    if (cure->needed_bytes != 0 && left < cure->room_bytes / LITTLE_PART)
        vr_text_puts(out, " The device is nearly full even so: what asks for a little more fails again.");
}

static void put_demand(const struct vram_cure *cure, struct vr_text *out) {
    const uint64_t over = cure->demand_bytes > cure->room_bytes ? cure->demand_bytes - cure->room_bytes : 0;
    vr_text_printf(out, "No setting can help: with the request %s are in use at once, %s more than the %s there was room for.",
                   vr_bytes(cure->demand_bytes).text, vr_bytes(over).text, vr_bytes(cure->room_bytes).text);
}

static void put_none(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out, "None of %u settings lets the history fit in the %s there was room for, though only %s are in use at once.",
                   cure->tried, vr_bytes(cure->room_bytes).text, vr_bytes(cure->demand_bytes).text);
}

static void put_usual(const struct vram_cure *cure, struct vr_text *out) {
    if (cure->usual != NULL) vr_text_printf(out, " %s is what usually helps after such a failure; here it is not proven.", cure->usual);
}

static void put_not_reproduced(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out,
                   "Replayed in the %s there was room for, the history fits with the setting that was in force: what happened before it "
                   "began, or when streams finished, decided. A replay cannot tell which setting would have helped.",
                   vr_bytes(cure->room_bytes).text);
    put_usual(cure, out);
}

static void put_no_replay(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_puts(out, cure->room_bytes == 0
                          ? "No setting was tried: the recording does not say how much room there was."
                          : "No setting was tried: the history is not one of an allocator with settings, or contradicts itself.");
    put_usual(cure, out);
}

static void put_limit(const struct vram_cure *cure, struct vr_text *out) {
    if (cure->limit_bytes != 0)
        vr_text_printf(out, "Raise the limit: it is %s, and the process needs %s to serve the request.", vr_bytes(cure->limit_bytes).text,
                       vr_bytes(cure->limit_to_bytes).text);
    else
        vr_text_printf(out, "Raise the limit to at least %s. The recording does not name it; %s were held.",
                       vr_bytes(cure->limit_to_bytes).text, vr_bytes(cure->limit_from_bytes).text);
    if (cure->driver_free_bytes >= cure->limit_to_bytes - cure->limit_from_bytes)
        vr_text_printf(out, " The driver had %s free.", vr_bytes(cure->driver_free_bytes).text);
}

static void put_growth(const struct vram_cure *cure, struct vr_text *out) {
    (void)cure;
    vr_text_puts(out, "No setting was tried: it could only delay the failure. Memory that grows with every step fills any room.");
}

static void put_unfinished(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out,
                   "Not found in the time there was (%u settings tried). Kept as a recording (VRAM_ON_OOM=dump), `vram report` looks "
                   "through all of them.",
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

void vr_cure_json(const struct vram_cure *cure, struct vr_json *json) {
    static const char *const verdicts[] = {
#define VERDICT_NAME(constant, name) #name,
        VRAM_CURE_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    struct vr_text text = {0};
    vr_cure_sentence(cure, &text);
    vr_json_u64(json, "device", cure->device);
    vr_json_u64(json, "index", cure->event);
    vr_json_string(json, "verdict", verdicts[cure->verdict]);
    vr_json_string(json, "conf", cure->verdict == VRAM_CURE_SETTING ? cure->conf : NULL);
    vr_json_string(json, "variable", cure->variable);
    vr_json_string(json, "text", vr_text_string(&text));
    vr_json_string(json, "usual", cure->usual);
    vr_json_string(json, "start", cure->from_recorded_start ? "recorded" : "cold");
    if (cure->verdict == VRAM_CURE_LIMIT)
        vr_json_u64(json, "limit_at_least_bytes", cure->limit_to_bytes);
    else
        vr_json_null(json, "limit_at_least_bytes");
    vr_json_u64(json, "room_bytes", cure->room_bytes);
    vr_json_u64(json, "demand_bytes", cure->demand_bytes);
    vr_json_u64(json, "held_bytes", cure->held_bytes);
    vr_json_u64(json, "needed_bytes", cure->needed_bytes);
    vr_json_u64(json, "tried", cure->tried);
    vr_text_release(&text);
}
