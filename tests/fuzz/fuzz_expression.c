// Computes any bytes as an expression: gives a finite number, a text in it, or a sentence. A text that has a value also passes the check
// without values.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/fit_expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct fit_name names[] = {{"tp", {.number = 2}}, {"dp", {.number = 0}}, {"ckpt", {.text = "on", .length = 2}}};
    char wrong[FIT_EXPRESSION_WRONG] = "", *text = malloc(size + 1);
    struct fit_value value = {.text = NULL};
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    const bool good = fit_expression(text, size, names, 3, &value, wrong);
    if (!good && (wrong[0] == '\0' || memchr(wrong, '\0', sizeof wrong) == NULL)) __builtin_trap();
    if (good && value.text == NULL && !isfinite(value.number)) __builtin_trap();
    const bool in_text = value.text >= text && value.text + value.length <= text + size;
    if (good && value.text != NULL && value.text != names[2].value.text && !in_text) __builtin_trap();
    if (good && !fit_expression_check(text, size, names, 3, wrong)) __builtin_trap();
    (void)fit_expression_names(text, size, "tp");
    free(text);
    return 0;
}
