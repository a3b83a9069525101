// recorded_rules.c: see recorded_rules.h.
#include "replay/recorded_rules.h"

// Pool ids of events came about 2.12, registration counters of segments before them; the rule that both go with came in 2.13, and 2.12 had
// one of its own.
static bool is_newer(const struct vr_model *model) {
    for (size_t row = 0; row < model->segments.count; row++) {
        if ((model->segments.has[row] & VR_HAS_COUNTER) != 0) return true;
    }
    for (size_t device = 0; device < model->history_count; device++) {
        const struct vr_history *history = &model->histories[device];
        for (size_t event = 0; event < history->count; event++) {
            if ((vr_entry_has(history, event) & VR_HAS_POOL_ID) != 0) return true;
        }
    }
    return false;
}

struct vr_recorded_rules vr_recorded_rules(const struct vr_model *model) {
    if (is_newer(model)) return (struct vr_recorded_rules){VR_PYTORCH_NEWEST, {VR_PYTORCH_NUMBERED - 1, VR_PYTORCH_NUMBERED}};
    return (struct vr_recorded_rules){VR_PYTORCH(2, 6), {VR_PYTORCH_NEWEST}};
}

static uint32_t rules_of(const char *conf, uint32_t unless_named) {
    struct vr_options options;
    vr_options_init(&options);
    options.pytorch = unless_named;
    return vr_options_parse(&options, conf, NULL) == VRAM_OK ? options.pytorch : 0;
}

uint32_t vr_conf_rules(const char *conf) {
    const uint32_t one = rules_of(conf == NULL ? "" : conf, VR_PYTORCH_NEWEST);
    return rules_of(conf == NULL ? "" : conf, VR_PYTORCH(2, 0)) == one ? one : 0;
}

static bool is_version_alone(const char *asked) { return vr_conf_rules(asked) != 0 && strchr(asked, ',') == NULL; }

bool vr_choose_conf(const char *recorded, const char *asked, struct vr_text *conf) {
    if (asked != NULL && !is_version_alone(asked)) {
        vr_text_puts(conf, asked);
        return false;
    }
    vr_text_puts(conf, recorded);
    if (asked != NULL) vr_text_printf(conf, "%s%s", recorded[0] == '\0' ? "" : ",", asked);
    return true;
}
