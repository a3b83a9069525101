// fit_vary.h: the variants of a program that --vary describes: every combination of the values of several arguments for which --where
// holds.
#ifndef CLI_FIT_VARY_H
#define CLI_FIT_VARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "args.h"
#include "fit_expression.h"

#define FIT_VARY_MOST     16        // arguments
#define FIT_VALUES_MOST   64        // of an argument
#define FIT_COMBINED_MOST 1000000   // combinations, before --where
#define FIT_VARIANTS_MOST 10000     // after it
#define FIT_NAME_CAPACITY 64        // of a name in an expression
#define FIT_VARY_WRONG    500       // capacity for what is wrong
#define FIT_RANKS_NAME    "ranks"   // in an expression: the number of ranks that a launcher starts
#define FIT_PRINTED_NAME  "printed" // in --work: the number that the program printed

// An argument and its values. Without values it is a flag, which the command line has or has not: 1 or 0.
struct fit_varied {
    const char *argument; // "--batch-size", borrowed
    size_t length;
    char name[FIT_NAME_CAPACITY];       // in an expression: "batch_size"
    const char *texts[FIT_VALUES_MOST]; // borrowed
    size_t lengths[FIT_VALUES_MOST];
    size_t value_count;
    bool is_flag;
};

struct fit_vary {
    struct fit_varied arguments[FIT_VARY_MOST];
    size_t count;
    const struct args_list *where; // expressions, all of which hold
};

struct fit_variant {
    unsigned char places[FIT_VARY_MOST]; // of each argument's value
    uint64_t ranks;                      // that the launcher starts, or devices of the program
    char **words;                        // its command line, ends with NULL
};

struct fit_variants {
    struct fit_variant *rows; // in the order of the values; those of the last argument change first
    size_t count;
};

// Reads --vary and --where. Borrows from both. Returns false, with the reason in `wrong`.
bool fit_vary_read(struct fit_vary *vary, const struct args_list *varied, const struct args_list *where, char wrong[FIT_VARY_WRONG]);
// Makes the variants of a program. Returns false, with the reason in `wrong`, if an expression is invalid or no variant remains. Release
// with fit_variants_release().
bool fit_variants_make(const struct fit_vary *vary, char **program, struct fit_variants *variants, char wrong[FIT_VARY_WRONG]);
void fit_variants_release(struct fit_variants *variants);

// Stores the names and values of a variant for an expression; `names` has room for FIT_VARY_MOST + 2. Returns their number.
size_t fit_variant_names(const struct fit_vary *vary, const struct fit_variant *variant, struct fit_name *names);
// Writes the variant as "--tp=2 --ckpt=on". Returns text.
const char *fit_variant_text(const struct fit_vary *vary, const struct fit_variant *variant, char *text, size_t capacity);
// Returns whether both are the same command line.
bool fit_variant_is_same(const struct fit_variant *one, const struct fit_variant *other);

#endif
