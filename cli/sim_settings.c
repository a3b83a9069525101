#include "sim_settings.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/text.h"
#include "ui.h"
#include "vram/driver.h"
#include "vram/sim.h"

#define MOST_CARDS 256

enum sim_card_maker sim_card_maker_of(const char *key, size_t length) {
    struct vram_sim_model model;
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++)
        if (strlen(model.key) == length && memcmp(model.key, key, length) == 0) return SIM_CARD_CUDA;
    for (uint32_t i = 0; vram_sim_amd_model_at(i, &model); i++)
        if (strlen(model.key) == length && memcmp(model.key, key, length) == 0) return SIM_CARD_AMD;
    return SIM_CARD_UNKNOWN;
}

void sim_card_say_unknown(const char *key, size_t length, char *wrong, size_t capacity) {
    const char *keys[MOST_CARDS + 1] = {NULL};
    struct vram_sim_model model;
    char asked[100];
    for (uint32_t i = 0; i < MOST_CARDS && vram_sim_model_at(i, &model); i++) keys[i] = model.key;
    (void)snprintf(asked, sizeof asked, "%.*s", (int)(length < sizeof asked ? length : sizeof asked - 1), key);
    const char *nearest = args_nearest(asked, keys, sizeof keys[0]);
    if (nearest == NULL)
        (void)snprintf(wrong, capacity, "unknown card '%s'; 'vram sim --cards' lists all", asked);
    else
        (void)snprintf(wrong, capacity, "unknown card '%s'; did you mean '%s'? 'vram sim --cards' lists all", asked, nearest);
}

// --- estimated figures ----------------------------------------------------------------------------------------------------------------

static const struct {
    char letter;
    const char *words;
} figures[] = {{'M', "memory"}, {'P', "multiprocessors"}, {'L', "L2 cache"}, {'C', "clocks"}, {'B', "bus"}, {'E', "copy engines"}};

void sim_cards_say_known(void) {
    char text[2048];
    struct vr_sink sink = vr_sink_begin(text, sizeof text);
    struct vram_sim_model model;
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) vr_sink_printf(&sink, "%s %s", i == 0 ? "The cards are" : ",", model.key);
    ui_wrap(stderr, text, 0, 100);
    fprintf(stderr, ".\n");
}

// --- the list -------------------------------------------------------------------------------------------------------------------------

static void print_card(const struct vram_sim_model *model) {
    const char *letters = vram_sim_model_estimated(model->key);
    printf("%-12s %5.1f %2d.%d %-6s %s\n", model->key, (double)model->memory_bytes / (1 << 30), model->compute_major, model->compute_minor,
           letters[0] == '\0' ? "-" : letters, model->name);
}

static void print_makers(bool (*at)(uint32_t, struct vram_sim_model *)) {
    struct vram_sim_model model;
    for (uint32_t i = 0; at(i, &model); i++) print_card(&model);
}

void sim_cards_print(void) {
    printf("%-12s %5s %4s %-6s %s\n", "--card", "GiB", "CC", "ESTIM.", "NAME");
    print_makers(vram_sim_model_at);
    printf("\nAMD cards, for HIP programs (--hip):\n");
    print_makers(vram_sim_amd_model_at);
    printf("\nGiB is the total that a program sees, CC the compute capability. ESTIM. names\nthe figures that are estimated, because no "
           "log of a real card is known:\n ");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        printf(" %c %s%s", figures[i].letter, figures[i].words, i + 1 == sizeof figures / sizeof figures[0] ? ".\n" : ",");
}

#define USUAL_MODEL "h100"

// Turns `h100,t4` into `h100+t4`. `text` has room for it.
static bool join_models(const char *models, bool hip, char *text, char *wrong, size_t wrong_capacity) {
    for (const char *at = models;; text++) {
        const size_t length = strcspn(at, ",");
        const enum sim_card_maker maker = sim_card_maker_of(at, length);
        if (maker == SIM_CARD_UNKNOWN) sim_card_say_unknown(at, length, wrong, wrong_capacity);
        if (maker == SIM_CARD_AMD && !hip) snprintf(wrong, wrong_capacity, "'%.*s' is an AMD card and needs --hip", (int)length, at);
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

// Checks whether the simulator takes the text. Only the part from `more` can be wrong; the rest has been checked.
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
