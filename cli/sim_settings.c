#include "sim_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim_cards.h"
#include "vram/driver.h"
#include "vram/sim.h"

#define USUAL_MODEL "h100"

// `h100,t4` as `h100+t4`. `text` has room for as much.
static bool join_models(const char *models, bool hip, char *text, char *wrong, size_t wrong_capacity) {
    for (const char *at = models;; text++) {
        const size_t length = strcspn(at, ",");
        const enum sim_card_maker maker = sim_card_maker_of(at, length);
        if (maker == SIM_CARD_UNKNOWN) sim_card_say_unknown(at, length, wrong, wrong_capacity);
        if (maker == SIM_CARD_AMD && !hip) snprintf(wrong, wrong_capacity, "'%.*s' is AMD's: it takes --hip", (int)length, at);
        if (maker == SIM_CARD_UNKNOWN || (maker == SIM_CARD_AMD && !hip)) return false;
        memcpy(text, at, length);
        text += length;
        at += length;
        if (*at++ == '\0') break;
        *text = '+';
    }
    *text = '\0';
    return true;
}

static bool check_ranges(const struct sim_settings *settings, char *wrong, size_t capacity) {
    const uint64_t devices = settings->devices, bytes = settings->memory_bytes;
    if (devices != SIM_UNSET && (devices < 1 || devices > VRAM_SIM_MOST_DEVICES)) {
        snprintf(wrong, capacity, "--devices takes 1 to %d", VRAM_SIM_MOST_DEVICES);
        return false;
    }
    if (bytes != SIM_UNSET && (bytes < (uint64_t)1 << 20 || bytes > (uint64_t)1 << 50)) {
        snprintf(wrong, capacity, "--memory takes 1MiB to 1024TiB");
        return false;
    }
    return true;
}

// Would the simulator take that? What it does not take is in `more`: all else was looked at before.
static bool check_text(const char *more, const char *text, char *wrong, size_t capacity) {
    struct vram_sim_options options;
    struct vram_error error;
    struct vram_driver *driver;
    if (vram_sim_parse(more, &options, &error) != VRAM_OK) {
        snprintf(wrong, capacity, "--set: %s", error.message);
        return false;
    }
    enum vram_status status = vram_sim_parse(text, &options, &error);
    if (status == VRAM_OK) status = vram_sim_create(&options, &driver);
    if (status == VRAM_OK) vram_driver_destroy(driver);
    if (status == VRAM_INVALID_ARGUMENT) snprintf(wrong, capacity, "--set %s: a value is out of range", more);
    return status != VRAM_INVALID_ARGUMENT;
}

bool sim_settings_text(const struct sim_settings *settings, char *text, size_t capacity, char *wrong, size_t wrong_capacity) {
    char models[1024], devices[40] = "", memory[40] = "", profile[40] = "";
    const char *named = settings->models == NULL ? USUAL_MODEL : settings->models;
    if (!check_ranges(settings, wrong, wrong_capacity)) return false;
    if (strlen(named) >= sizeof models) {
        snprintf(wrong, wrong_capacity, "--card takes at most %d cards", VRAM_SIM_MOST_DEVICES);
        return false;
    }
    if (!join_models(named, settings->hip, models, wrong, wrong_capacity)) return false;
    if (settings->devices != SIM_UNSET) snprintf(devices, sizeof devices, ",devices=%" PRIu64, settings->devices);
    if (settings->memory_bytes != SIM_UNSET) snprintf(memory, sizeof memory, ",memory=%" PRIu64, settings->memory_bytes);
    if (settings->profile != NULL) snprintf(profile, sizeof profile, ",profile=%s", settings->profile);
    const int length = snprintf(text, capacity, "device=%s,addresses=driver,context=device,kernel=10us,bytes=sparse%s%s%s%s%s", models,
                                devices, memory, profile, settings->more == NULL ? "" : ",", settings->more == NULL ? "" : settings->more);
    if (length > 0 && (size_t)length < capacity)
        return check_text(settings->more == NULL ? "" : settings->more, text, wrong, wrong_capacity);
    snprintf(wrong, wrong_capacity, "--set is too long");
    return false;
}
