// Reads the lines of any bytes as arguments of --vary (after 'v') and --where (after 'w'), and as the words of a program: gives variants or
// a sentence. Each variant has a command line that is not empty, and the same arguments make the same variants.
#define _POSIX_C_SOURCE 200809L // strtok_r
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/fit_vary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MOST = 20, LINES_MOST = 6, COMBINED_MOST = 200 };

// Returns whether all commas together make few combinations, which take little time.
static bool is_small(const struct args_list *varied) {
    size_t combined = 1;
    for (size_t i = 0; i < varied->count; i++) {
        size_t values = 2;
        for (const char *at = varied->values[i]; *at != '\0'; at++) values += *at == ',';
        combined *= values;
    }
    return combined <= COMBINED_MOST;
}

static void check(const struct fit_vary *vary, const struct fit_variants *variants) {
    char text[100];
    for (size_t i = 0; i < variants->count; i++) {
        struct fit_name names[FIT_VARY_MOST + 2];
        const struct fit_variant *one = &variants->rows[i];
        if (one->words == NULL || one->words[0] == NULL || !fit_variant_is_same(one, one)) __builtin_trap();
        if (fit_variant_names(vary, one, names) > FIT_VARY_MOST + 1) __builtin_trap();
        if (memchr(fit_variant_text(vary, one, text, sizeof text), '\0', sizeof text) == NULL) __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct args_list varied = {.count = 0}, where = {.count = 0};
    char *words[WORDS_MOST + 1] = {NULL}, *text = malloc(size + 1), *rest = NULL, wrong[FIT_VARY_WRONG] = "";
    struct fit_vary *vary = malloc(sizeof *vary);
    struct fit_variants variants;
    size_t count = 0;
    if (text == NULL || vary == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == 'v' && varied.count < LINES_MOST)
            varied.values[varied.count++] = line + 1;
        else if (line[0] == 'w' && where.count < LINES_MOST)
            where.values[where.count++] = line + 1;
        else if (count < WORDS_MOST)
            words[count++] = line;
    }
    if (count > 0 && varied.count > 0 && is_small(&varied)) {
        const bool read = fit_vary_read(vary, &varied, &where, wrong);
        const bool made = read && fit_variants_make(vary, words, &variants, wrong);
        if (!made && (wrong[0] == '\0' || memchr(wrong, '\0', sizeof wrong) == NULL)) __builtin_trap();
        if (made) check(vary, &variants);
        if (made) fit_variants_release(&variants);
    }
    free(vary);
    free(text);
    return 0;
}
