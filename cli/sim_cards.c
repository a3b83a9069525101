#include "sim_cards.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
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
        (void)snprintf(wrong, capacity, "no card is called '%s'; 'vram sim --cards' lists those that are known", asked);
    else
        (void)snprintf(wrong, capacity, "no card is called '%s'; did you mean '%s'? 'vram sim --cards' lists all", asked, nearest);
}

// --- what is estimated ----------------------------------------------------------------------------------------------------------------

static const struct {
    char letter;
    const char *words;
} figures[] = {{'M', "memory"}, {'P', "multiprocessors"}, {'L', "L2 cache"}, {'C', "clocks"}, {'B', "bus"}, {'E', "copy engines"}};

void sim_card_estimates(const char *key, char *text, size_t capacity) {
    const char *letters = vram_sim_model_estimated(key);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (strchr(letters, figures[i].letter) == NULL || used + 1 >= capacity) continue;
        const int length = snprintf(text + used, capacity - used, "%s%s", used == 0 ? "" : ", ", figures[i].words);
        used += length > 0 ? (size_t)length : 0;
    }
}

void sim_cards_say_known(void) {
    char text[2048] = "The cards are";
    size_t used = strlen(text);
    struct vram_sim_model model;
    for (uint32_t i = 0; vram_sim_model_at(i, &model) && used + sizeof model.key + 3 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", i == 0 ? "" : ",", model.key);
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
    printf("\nOf AMD, for programs of HIP (--hip):\n");
    print_makers(vram_sim_amd_model_at);
    printf("\nGiB is the total that a program sees, CC the compute capability. ESTIM. says\n"
           "what is estimated, because no log of a real card is known:\n ");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        printf(" %c %s%s", figures[i].letter, figures[i].words, i + 1 == sizeof figures / sizeof figures[0] ? ".\n" : ",");
}
