// Changes one option in an option string, determines the PyTorch version of its rules, and chooses among tried settings.
#include "replay/option_strings.h"

#include <stdio.h>
#include <string.h>

// Returns the end of the option that begins at `at`: a comma outside brackets, or the string's end.
static const char *option_end(const char *at) {
    int depth = 0;
    for (; *at != '\0' && (*at != ',' || depth > 0); at++) depth += (*at == '[') - (*at == ']');
    return at;
}

bool vr_option_string_with(const char *conf, const char *option, char *changed, size_t capacity) {
    const size_t key = strcspn(option, ":") + 1;
    size_t length = 0;
    for (const char *at = conf, *end; *at != '\0'; at = *end == ',' ? end + 1 : end) {
        end = option_end(at);
        if (strncmp(at, option, key) == 0) continue;
        const int added = snprintf(changed + length, capacity - length, "%.*s,", (int)(end - at), at);
        if (added < 0 || (size_t)added >= capacity - length) return false;
        length += (size_t)added;
    }
    const int added = snprintf(changed + length, capacity - length, "%s", option);
    return added >= 0 && (size_t)added < capacity - length && strcmp(changed, conf) != 0;
}

// Returns whether the recording is of a newer PyTorch. Pool ids of events came around 2.12, registration counters of segments earlier; the
// rule that usually goes with them came in 2.13, and 2.12 had its own.
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

static const char *const options[] = {
    VR_EXPANDABLE,
    "max_split_size_mb:128",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "max_split_size_mb:32",
    "max_split_size_mb:512",
    "max_split_size_mb:1024",
    "garbage_collection_threshold:0.8",
    "garbage_collection_threshold:0.6",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:4",
    "expandable_segments:False",
};
enum { FIRST_OF_TWO = 6 }; // number of options, from the first on, that get a partner

static bool is_ignored(const char *conf, bool windows) { return windows && strstr(conf, VR_EXPANDABLE) != NULL; }

enum vram_status vr_each_single_change(const char *today, bool windows, vr_take_conf *take, void *context) {
    static const char *const alone[] = {"", VR_EXPANDABLE, "max_split_size_mb:128"};
    char conf[VR_CONF_CAPACITY];
    for (size_t i = 0; i < VR_COUNT_OF(options); i++) {
        if (strcmp(options[i], "expandable_segments:False") == 0 && strstr(today, "expandable_segments") == NULL) continue;
        if (!vr_option_string_with(today, options[i], conf, sizeof conf) || is_ignored(conf, windows)) continue;
        VR_TRY(take(context, conf));
    }
    for (size_t i = 0; i < VR_COUNT_OF(alone) && today[0] != '\0'; i++) {
        if (!is_ignored(alone[i], windows) && strcmp(alone[i], today) != 0) VR_TRY(take(context, alone[i]));
    }
    return VRAM_OK;
}

enum vram_status vr_each_double_change(const char *today, bool windows, vr_take_conf *take, void *context) {
    static const char *const partners[] = {"garbage_collection_threshold:0.8", "roundup_power2_divisions:8", "max_split_size_mb:128"};
    char first[VR_CONF_CAPACITY], second[VR_CONF_CAPACITY];
    for (size_t i = 0; i < FIRST_OF_TWO; i++) {
        if (!vr_option_string_with(today, options[i], first, sizeof first)) continue;
        for (size_t p = 0; p < VR_COUNT_OF(partners); p++) {
            if (strncmp(options[i], partners[p], strcspn(options[i], ":")) == 0) continue;
            if (!vr_option_string_with(first, partners[p], second, sizeof second) || is_ignored(second, windows)) continue;
            VR_TRY(take(context, second));
        }
    }
    return VRAM_OK;
}

static bool is_close(uint64_t bytes, uint64_t least_bytes) { return bytes <= least_bytes + least_bytes / 100; }

size_t vr_choose_setting(const struct vram_tune_setting *settings, const size_t *rows, size_t count, uint64_t most_held_bytes) {
    uint64_t least_needed = UINT64_MAX, least_held = UINT64_MAX;
    bool any = false;
    for (size_t i = 0; i < count; i++) any = any || settings[rows[i]].peak_reserved_bytes <= most_held_bytes;
    if (!any) most_held_bytes = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct vram_tune_setting *setting = &settings[rows[i]];
        if (setting->peak_reserved_bytes <= most_held_bytes && setting->needed_bytes < least_needed) least_needed = setting->needed_bytes;
    }
    for (size_t i = 0; i < count; i++) {
        const struct vram_tune_setting *setting = &settings[rows[i]];
        const bool counts = setting->peak_reserved_bytes <= most_held_bytes && is_close(setting->needed_bytes, least_needed);
        if (counts && setting->peak_reserved_bytes < least_held) least_held = setting->peak_reserved_bytes;
    }
    for (size_t i = 0; i < count; i++) {
        const struct vram_tune_setting *setting = &settings[rows[i]];
        if (is_close(setting->needed_bytes, least_needed) && setting->peak_reserved_bytes <= most_held_bytes &&
            is_close(setting->peak_reserved_bytes, least_held))
            return i;
    }
    return 0;
}
