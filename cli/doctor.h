// doctor.h: collects the findings of `vram doctor` as rows.
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/vram.h"

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_OFF, DOCTOR_WRONG };
const char *doctor_state_name(enum doctor_state state);

struct doctor_row {
    const char *area; // "driver", "device 0", "settings", ...; an area's rows are adjacent
    char name[64];
    enum doctor_state state;
    char value[160]; // the finding
    char text[320];  // what it means or what to do; "" if the value is enough
};

enum { DOCTOR_ROWS = 512 };

struct doctor {
    struct doctor_row rows[DOCTOR_ROWS];
    size_t count;
    bool no_driver;
    bool wrong; // a row is DOCTOR_WRONG
    // Capabilities that all devices have; false without devices.
    bool virtual_memory, memory_pools, host_register, file_handles;
    unsigned device_count;
};

// Adds a row. Drops it if the table is full. Copies the strings, cut to fit; `area` must be a literal.
struct doctor_row *doctor_add(struct doctor *doctor, const char *area, const char *name, enum doctor_state state, const char *format, ...)
    VRAM_PRINTF(5, 6);
// Sets the explanation of a row from doctor_add(). Ignores NULL.
void doctor_explain(struct doctor_row *row, const char *format, ...) VRAM_PRINTF(2, 3);

// Adds the driver and its devices. `driver` may be NULL; `error` then says why.
void doctor_look_at_driver(struct doctor *doctor, struct vram_driver *driver, const struct vram_error *error);
// Adds option strings and other environment variables. Call after doctor_look_at_driver().
void doctor_look_at_settings(struct doctor *doctor);
// Adds limits of the system and the container, and which parts of vram are installed.
void doctor_look_at_system(struct doctor *doctor);

#endif
