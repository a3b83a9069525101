// decimal_comma.h: switches to a locale with a decimal comma, if the machine has one.
#ifndef VR_TEST_DECIMAL_COMMA_H
#define VR_TEST_DECIMAL_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

// Returns false if no such locale is installed. End with setlocale(LC_NUMERIC, "C").
static inline bool begin_decimal_comma(void) {
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (setlocale(LC_NUMERIC, locales[i]) != NULL) return true;
    }
    return false;
}

#endif
