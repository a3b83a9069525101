// The rows that the parts of vram doctor fill, one after the other.
#include <stdarg.h>
#include <stdio.h>

#include "doctor.h"

const char *doctor_state_name(enum doctor_state state) {
    static const char *const names[] = {"ok", "note", "off", "wrong"};
    return names[state];
}

struct doctor_row *doctor_add(struct doctor *doctor, const char *area, const char *name, enum doctor_state state, const char *format, ...) {
    if (doctor->count == DOCTOR_ROWS) return NULL;
    struct doctor_row *row = &doctor->rows[doctor->count++];
    *row = (struct doctor_row){.area = area, .state = state};
    snprintf(row->name, sizeof row->name, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->value, sizeof row->value, format, arguments);
    va_end(arguments);
    return row;
}

void doctor_explain(struct doctor_row *row, const char *format, ...) {
    if (row == NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}
