// sim_settings.h: what `vram sim` lets a program's simulator be, as the text of the variable VRAM_SIM.
#ifndef CLI_SIM_SETTINGS_H
#define CLI_SIM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
