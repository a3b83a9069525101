// doctor.h: what `vram doctor` finds, as rows.
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/vram.h"

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_OFF, DOCTOR_WRONG };
const char *doctor_state_name(enum doctor_state state);

struct doctor_row {
    const char *area; // "driver", "device 0", "settings", ...: rows of an area follow each other
    char name[64];
    enum doctor_state state;
    char value[160]; // what was found
    char text[320];  // what it means or what to do; "" where the value says it all
};

enum { DOCTOR_ROWS = 512 };

struct doctor {
    struct doctor_row rows[DOCTOR_ROWS];
    size_t count;
    bool no_driver;
    bool wrong; // a row is WRONG
    // What the devices can do together; false without devices.
    bool virtual_memory, memory_pools, host_register, file_handles;
    unsigned device_count;
};

// Adds a row; further ones than fit are dropped. The strings are copied and cut to fit; area must be a literal.
struct doctor_row *doctor_add(struct doctor *doctor, const char *area, const char *name, enum doctor_state state, const char *format, ...)
    VRAM_PRINTF(5, 6);
// Explains the row that doctor_add() gave; NULL is ignored.
void doctor_explain(struct doctor_row *row, const char *format, ...) VRAM_PRINTF(2, 3);

// The driver and its devices; driver may be NULL with the error that says why.
void doctor_look_at_driver(struct doctor *doctor, struct vram_driver *driver, const struct vram_error *error);
// Option strings and other environment variables. After the driver.
void doctor_look_at_settings(struct doctor *doctor);
// Limits of the system and the container, and what of this project is at hand.
void doctor_look_at_system(struct doctor *doctor);

#endif
