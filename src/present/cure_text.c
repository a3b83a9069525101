// cure_text.c: a cure as a sentence, and as members of a JSON object.
#include "present/cure_text.h"

static void put_setting(const struct vram_cure *cure, struct vr_text *out) {
    const uint64_t left = cure->room_bytes > cure->needed_bytes ? cure->room_bytes - cure->needed_bytes : 0;
    vr_text_printf(out, "Replayed with it, the history fits in the %s there was room for: it holds at most %s",
                   vr_bytes(cure->room_bytes).text, vr_bytes(cure->held_bytes).text);
    vr_text_printf(out, ", and would do with %s (%s of room left).", vr_bytes(cure->needed_bytes).text, vr_bytes(left).text);
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

static void put_not_reproduced(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out,
                   "Replayed in the %s there was room for, the history fits with the setting that was in force: what happened before it "
                   "began, or when streams finished, decided. A replay cannot tell which setting would have helped.",
                   vr_bytes(cure->room_bytes).text);
}

static void put_no_replay(const struct vram_cure *cure, struct vr_text *out) {
    (void)cure;
    vr_text_puts(out, "No setting was tried: the history is not one of an allocator with settings, or contradicts itself.");
}

static void put_unfinished(const struct vram_cure *cure, struct vr_text *out) {
    vr_text_printf(out,
                   "Not found in the time there was (%u settings tried). Kept as a recording (VRAM_ON_OOM=dump), `vram report` looks "
                   "through all of them.",
                   cure->tried);
}

void vr_cure_sentence(const struct vram_cure *cure, struct vr_text *out) {
    static void (*const put[])(const struct vram_cure *cure, struct vr_text *out) = {
        [VRAM_CURE_SETTING] = put_setting,     [VRAM_CURE_DEMAND] = put_demand,
        [VRAM_CURE_NONE] = put_none,           [VRAM_CURE_NOT_REPRODUCED] = put_not_reproduced,
        [VRAM_CURE_NO_REPLAY] = put_no_replay, [VRAM_CURE_UNFINISHED] = put_unfinished,
    };
    put[cure->verdict](cure, out);
}

void vr_cure_json(const struct vram_cure *cure, struct vr_json *json) {
    static const char *const verdicts[] = {
#define VERDICT_NAME(constant, name) #name,
        VRAM_CURE_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    vr_json_u64(json, "device", cure->device);
    vr_json_u64(json, "index", cure->event);
    vr_json_string(json, "verdict", verdicts[cure->verdict]);
    vr_json_string(json, "conf", cure->verdict == VRAM_CURE_SETTING ? cure->conf : NULL);
    vr_json_string(json, "variable", cure->variable);
    vr_json_u64(json, "room_bytes", cure->room_bytes);
    vr_json_u64(json, "demand_bytes", cure->demand_bytes);
    vr_json_u64(json, "held_bytes", cure->held_bytes);
    vr_json_u64(json, "needed_bytes", cure->needed_bytes);
    vr_json_u64(json, "tried", cure->tried);
}
