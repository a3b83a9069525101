// sim_settings.h: names and lists the devices that the simulator knows, and writes the variable VRAM_SIM.
#ifndef CLI_SIM_SETTINGS_H
#define CLI_SIM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Settings of the simulated devices.

#define SIM_UNSET UINT64_MAX

struct sim_settings {
    const char *models;             // keys of known devices, separated by commas; NULL: the usual one
    uint64_t devices, memory_bytes; // SIM_UNSET: as the models have it
    const char *profile;            // NULL: the usual profile
    bool hip;                       // also accepts AMD's devices
    const char *more;               // further keys and values, appended; may be NULL
};

// The options of commands that run a program on simulated devices. `settings` is a struct sim_settings; include args.h.
#define SIM_MACHINE_OPTIONS(settings)                                                                                                      \
    {.name = "card",                                                                                                                       \
     .kind = ARGS_STRING,                                                                                                                  \
     .value = "NAME,...",                                                                                                                  \
     .help = "cards to simulate: t4, a100-80, rtx4090, ... (default h100; `vram sim --cards` lists them)",                                 \
     .target = &(settings).models,                                                                                                         \
     .also = "device gpu model"},                                                                                                          \
        {.name = "devices",                                                                                                                \
         .kind = ARGS_COUNT,                                                                                                               \
         .value = "N",                                                                                                                     \
         .help = "number of devices (default: the number of cards in --card)",                                                             \
         .target = &(settings).devices},                                                                                                   \
        {.name = "memory",                                                                                                                 \
         .letter = 'm',                                                                                                                    \
         .kind = ARGS_SIZE,                                                                                                                \
         .value = "SIZE",                                                                                                                  \
         .help = "memory of each device (default: the device's own)",                                                                      \
         .target = &(settings).memory_bytes},                                                                                              \
    {                                                                                                                                      \
        .name = "set", .kind = ARGS_STRING, .value = "KEY=VALUE,...",                                                                      \
        .help = "further settings of the simulator (docs/guides/simulator.md)", .target = &(settings).more                                 \
    }

// Writes the text of VRAM_SIM. Returns false, with the reason in `wrong` (one line), if a value is out of range, a device is unknown, or
// the text is too long.
bool sim_settings_text(const struct sim_settings *settings, char *text, size_t capacity, char *wrong, size_t wrong_capacity);

enum sim_card_maker { SIM_CARD_UNKNOWN, SIM_CARD_CUDA, SIM_CARD_AMD };

// Returns the maker of the device that the key of `length` bytes names.
enum sim_card_maker sim_card_maker_of(const char *key, size_t length);
// Writes one line: "no card is called 'h10'; did you mean 'h100'? ...".
void sim_card_say_unknown(const char *key, size_t length, char *wrong, size_t capacity);
// Prints the keys of the CUDA cards in one paragraph on standard error.
void sim_cards_say_known(void);
// Prints all devices on standard output, at most 80 columns wide.
void sim_cards_print(void);

#endif
