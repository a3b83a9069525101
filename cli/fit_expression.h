// fit_expression.h: computes an expression over named values, as in --where 'tp*pp*dp == ranks' of `vram fit`. Nothing in it is executed.
//
// It has numbers, names, texts in quotes, + - * / // % and parentheses, min() and max(), comparisons (`=` is `==`), `and`, `or`, `not`. A
// comparison gives 1 or 0. As in Python, `//` and `%` round down, comparisons can be chained, and `and` and `or` compute only what they
// need.
#ifndef CLI_FIT_EXPRESSION_H
#define CLI_FIT_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/status.h"

#define FIT_EXPRESSION_WRONG 300 // capacity for what is wrong

// A value is a number or a text, which is borrowed and does not end with NUL.
struct fit_value {
    const char *text; // NULL: a number
    size_t length;
    double number;
};

struct fit_name {
    const char *name;
    struct fit_value value;
};

// Returns the value of a text that may be a number ("8", "0.5").
struct fit_value fit_value_of(const char *text, size_t length);

// Computes the expression. Returns false, with the reason in `wrong`, if it is invalid or has no value.
bool fit_expression(const char *text, size_t length, const struct fit_name *names, size_t count, struct fit_value *value,
                    char wrong[FIT_EXPRESSION_WRONG]);
// Checks the grammar and the names of an expression whose values are not known yet. Returns false, with the reason in `wrong`.
bool fit_expression_check(const char *text, size_t length, const struct fit_name *names, size_t count, char wrong[FIT_EXPRESSION_WRONG]);
// Returns whether the name occurs in the expression.
bool fit_expression_names(const char *text, size_t length, const char *name);
// Returns whether a value counts as true: a number other than 0.
bool fit_value_is_true(const struct fit_value *value);

#endif
