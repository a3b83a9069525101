// sim_settings.h: the devices that the simulator knows, and the text of the variable VRAM_SIM that asks for them.
#ifndef CLI_SIM_SETTINGS_H
#define CLI_SIM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What `vram sim` lets a program's simulator be, as the text of the variable VRAM_SIM.

#define SIM_UNSET UINT64_MAX

struct sim_settings {
    const char *models;             // keys of known devices with commas between them; NULL: the usual one
    uint64_t devices, memory_bytes; // SIM_UNSET: as the models say
    const char *profile;            // NULL: the usual one
    bool hip;                       // AMD's devices are known, too
    const char *more;               // further keys and values, which come last; may be NULL
};

// False with the reason in `wrong` (one line) when a value is out of range, a device is not known, or it is all too long.
bool sim_settings_text(const struct sim_settings *settings, char *text, size_t capacity, char *wrong, size_t wrong_capacity);

// The devices that the simulator knows, as the commands name and list them.

enum sim_card_maker { SIM_CARD_UNKNOWN, SIM_CARD_CUDA, SIM_CARD_AMD };

// Whose device the key of `length` bytes names.
enum sim_card_maker sim_card_maker_of(const char *key, size_t length);
// "no card is called 'h10'; did you mean 'h100'? ...": one line.
void sim_card_say_unknown(const char *key, size_t length, char *wrong, size_t capacity);
// The keys of the CUDA cards in one paragraph on standard error.
void sim_cards_say_known(void);
// All of them on standard output, at most 80 columns wide.
void sim_cards_print(void);

#endif
