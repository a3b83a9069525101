// See choice.h.
#include "replay/choice.h"

#include <string.h>

#include "replay/option_string.h"

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
enum { FIRST_OF_TWO = 6 }; // options, from the first on, that get a partner

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
