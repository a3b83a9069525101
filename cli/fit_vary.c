// Each argument of --vary goes into the program's words: where "{name}" is, else as the value of "name=..." or "name ...", else at the end.
// Braces may contain an expression, "{mbs*dp}", which does not replace --mbs.
#define _POSIX_C_SOURCE 200809L // strdup
#include "fit_vary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_launcher.h"
#include "base/text.h"

enum { WORD_MOST = 8192, SHOWN_MOST = 100 };

static bool wrong_with(char wrong[FIT_VARY_WRONG], const char *format, ...) VRAM_PRINTF(2, 3);
static bool wrong_with(char wrong[FIT_VARY_WRONG], const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)vsnprintf(wrong, FIT_VARY_WRONG, format, values);
    va_end(values);
    return false;
}

static bool no_memory(char wrong[FIT_VARY_WRONG]) { return wrong_with(wrong, "not enough host memory"); }

// --- the arguments ------------------------------------------------------------------------------------------------------------------

static bool is_of_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '_';
}

// Makes the name of an argument in expressions: "--batch-size" and "batch_size" are batch_size.
static bool make_name(struct fit_varied *one) {
    const size_t dashes = strspn(one->argument, "-");
    if (one->length <= dashes || one->length - dashes >= sizeof one->name) return false;
    for (size_t i = dashes; i < one->length; i++) one->name[i - dashes] = is_of_name(one->argument[i]) ? one->argument[i] : '_';
    one->name[one->length - dashes] = '\0';
    return !(one->name[0] >= '0' && one->name[0] <= '9');
}

static bool read_values(struct fit_varied *one, const char *at, char wrong[FIT_VARY_WRONG]) {
    for (;; at++) {
        const size_t length = strcspn(at, ",");
        if (length == 0) return wrong_with(wrong, "--vary has a value without a character: '%s'", one->argument);
        if (one->value_count == FIT_VALUES_MOST) return wrong_with(wrong, "--vary takes at most %d values of an argument", FIT_VALUES_MOST);
        one->texts[one->value_count] = at;
        one->lengths[one->value_count++] = length;
        at += length;
        if (*at == '\0') return true;
    }
}

static bool read_varied(struct fit_vary *vary, const char *text, char wrong[FIT_VARY_WRONG]) {
    struct fit_varied *one = &vary->arguments[vary->count];
    if (vary->count == FIT_VARY_MOST) return wrong_with(wrong, "--vary can be given at most %d times", FIT_VARY_MOST);
    *one = (struct fit_varied){.argument = text, .length = strcspn(text, "="), .is_flag = strchr(text, '=') == NULL};
    if (!make_name(one) || (one->is_flag && text[0] != '-'))
        return wrong_with(wrong, "--vary takes an argument of the program and values, '--batch-size=16,8,4', or a flag, '--checkpoint'");
    for (size_t i = 0; i < vary->count; i++)
        if (strcmp(vary->arguments[i].name, one->name) == 0) return wrong_with(wrong, "--vary has '%s' twice", one->name);
    vary->count++;
    return read_values(one, one->is_flag ? "0,1" : text + one->length + 1, wrong);
}

bool fit_vary_read(struct fit_vary *vary, const struct args_list *varied, const struct args_list *where, char wrong[FIT_VARY_WRONG]) {
    uint64_t combined = 1;
    *vary = (struct fit_vary){.where = where};
    for (size_t i = 0; i < varied->count; i++) {
        if (!read_varied(vary, varied->values[i], wrong)) return false;
        combined *= vary->arguments[i].value_count;
        if (combined > FIT_COMBINED_MOST) return wrong_with(wrong, "--vary makes more than %d combinations", FIT_COMBINED_MOST);
    }
    return true;
}

// --- one variant --------------------------------------------------------------------------------------------------------------------

static struct fit_value value_in(const struct fit_varied *one, size_t place) {
    return fit_value_of(one->texts[place], one->lengths[place]);
}

size_t fit_variant_names(const struct fit_vary *vary, const struct fit_variant *variant, struct fit_name *names) {
    size_t count = 0;
    for (; count < vary->count; count++)
        names[count] = (struct fit_name){vary->arguments[count].name, value_in(&vary->arguments[count], variant->places[count])};
    if (variant->ranks != 0) names[count++] = (struct fit_name){FIT_RANKS_NAME, {.number = (double)variant->ranks}};
    return count;
}

const char *fit_variant_text(const struct fit_vary *vary, const struct fit_variant *variant, char *text, size_t capacity) {
    struct vr_sink sink = vr_sink_begin(text, capacity);
    for (size_t i = 0; i < vary->count; i++) {
        const struct fit_varied *one = &vary->arguments[i];
        const size_t place = variant->places[i];
        const char *space = i == 0 ? "" : " ";
        if (one->is_flag)
            vr_sink_printf(&sink, "%s%s%.*s", space, place == 0 ? "without " : "", (int)one->length, one->argument);
        else
            vr_sink_printf(&sink, "%s%.*s=%.*s", space, (int)one->length, one->argument, (int)one->lengths[place], one->texts[place]);
    }
    return text;
}

bool fit_variant_is_same(const struct fit_variant *one, const struct fit_variant *other) {
    size_t i = 0;
    while (one->words[i] != NULL && other->words[i] != NULL && strcmp(one->words[i], other->words[i]) == 0) i++;
    return one->words[i] == NULL && other->words[i] == NULL;
}

// --- words --------------------------------------------------------------------------------------------------------------------------

struct writer {
    const struct fit_vary *vary;
    const struct fit_variant *variant;
    bool used[FIT_VARY_MOST]; // whether braces are its place
    char *wrong;
};

// Returns the length of an expression in braces that names a varied argument; 0 if the braces contain something else, such as JSON.
static size_t braced_length(struct writer *writer, const char *open) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-*/%()<>=! ";
    const size_t length = strspn(open + 1, allowed);
    bool any = false;
    if (open[1 + length] != '}') return 0;
    for (size_t i = 0; i < writer->vary->count; i++) {
        const struct fit_varied *one = &writer->vary->arguments[i];
        if (!fit_expression_names(open + 1, length, one->name)) continue;
        any = true;
        // "{mbs*dp}" is not the program's argument --mbs, but all there is of a name without dashes.
        if (one->argument[0] != '-' || strlen(one->name) == length) writer->used[i] = true;
    }
    return any ? length : 0;
}

// Appends the value of an expression in braces. Returns false if it is invalid.
static bool append_braced(struct writer *writer, const char *expression, size_t length, char *word, size_t *used) {
    struct fit_name names[FIT_VARY_MOST + 2];
    char why[FIT_EXPRESSION_WRONG];
    struct fit_value value;
    const size_t count = fit_variant_names(writer->vary, writer->variant, names);
    for (size_t i = 0; i < writer->vary->count; i++) { // its own text: "0.50" stays
        const struct fit_varied *one = &writer->vary->arguments[i];
        const size_t place = writer->variant->places[i];
        if (strlen(one->name) != length || memcmp(one->name, expression, length) != 0) continue;
        *used += (size_t)snprintf(word + *used, WORD_MOST - *used, "%.*s", (int)one->lengths[place], one->texts[place]);
        return true;
    }
    if (!fit_expression(expression, length, names, count, &value, why))
        return wrong_with(writer->wrong, "'{%.*s}' in the program's arguments: %s", (int)(length < SHOWN_MOST ? length : SHOWN_MOST),
                          expression, why);
    if (value.text != NULL)
        *used += (size_t)snprintf(word + *used, WORD_MOST - *used, "%.*s", (int)value.length, value.text);
    else
        *used += (size_t)snprintf(word + *used, WORD_MOST - *used, "%.15g", value.number);
    return true;
}

// Returns a copy of the word with values instead of braces; NULL if one is invalid or there is no host memory.
static char *filled_word(struct writer *writer, const char *text) {
    char word[WORD_MOST];
    size_t used = 0;
    if (strchr(text, '{') == NULL || strchr(text, '\n') != NULL) return strdup(text); // lines are a program: python -c
    while (*text != '\0' && used < sizeof word - 1) {
        const size_t length = *text == '{' ? braced_length(writer, text) : 0;
        if (length == 0) {
            word[used++] = *text++;
            continue;
        }
        if (!append_braced(writer, text + 1, length, word, &used)) return NULL;
        text += length + 2;
    }
    if (used >= sizeof word - 1) {
        (void)wrong_with(writer->wrong, "an argument of the program is longer than %d characters", WORD_MOST - 2);
        return NULL;
    }
    word[used] = '\0';
    return strdup(word);
}

// Finds "name=..." or "name VALUE", or the flag "name". Returns the index of the word that contains the value; 0 if absent.
static size_t find_word(char **words, const struct fit_varied *one, bool *joined) {
    for (size_t i = 1; words[0] != NULL && words[i] != NULL; i++) {
        if (strncmp(words[i], one->argument, one->length) != 0) continue;
        *joined = words[i][one->length] == '=';
        if (*joined) return i;
        if (words[i][one->length] != '\0') continue;
        if (one->is_flag) return i;
        if (words[i + 1] != NULL) return i + 1;
    }
    return 0;
}

// Puts the value of an argument into the words, which have room for one more. Returns false if there is no host memory.
static bool put_value(char **words, const struct fit_varied *one, size_t place) {
    char text[WORD_MOST];
    bool joined = false;
    size_t count = 0, at = find_word(words, one, &joined);
    while (words[count] != NULL) count++;
    if (one->is_flag && place == 0) { // remove it
        if (at != 0) free(words[at]);
        for (; at != 0 && at < count; at++) words[at] = words[at + 1];
        return true;
    }
    if (one->is_flag && at != 0) return true;
    const bool absent = at == 0;
    if (one->is_flag)
        (void)snprintf(text, sizeof text, "%.*s", (int)one->length, one->argument);
    else if (joined || absent)
        (void)snprintf(text, sizeof text, "%.*s=%.*s", (int)one->length, one->argument, (int)one->lengths[place], one->texts[place]);
    else
        (void)snprintf(text, sizeof text, "%.*s", (int)one->lengths[place], one->texts[place]);
    if (absent) at = count;
    if (!absent) free(words[at]);
    words[at] = strdup(text);
    return words[at] != NULL;
}

static void release_words(char **words) {
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) free(words[i]);
    free(words);
}

static bool make_words(const struct fit_vary *vary, char **program, struct fit_variant *variant, char wrong[FIT_VARY_WRONG]) {
    struct writer writer = {.vary = vary, .variant = variant, .wrong = wrong};
    size_t count = 0;
    bool good = true;
    (void)no_memory(wrong);
    while (program[count] != NULL) count++;
    char **words = calloc(count + vary->count + 1, sizeof *words);
    if (words == NULL) return false;
    for (size_t i = 0; i < count && good; i++) good = (words[i] = filled_word(&writer, program[i])) != NULL;
    for (size_t i = 0; i < vary->count && good; i++)
        if (!writer.used[i]) good = put_value(words, &vary->arguments[i], variant->places[i]);
    variant->words = words;
    return good;
}

// --- all --------------------------------------------------------------------------------------------------------------------------

// Stores whether --where holds for a variant. Returns false if an expression is invalid.
static bool holds(const struct fit_vary *vary, const struct fit_variant *variant, bool *all, char wrong[FIT_VARY_WRONG]) {
    struct fit_name names[FIT_VARY_MOST + 2];
    char why[FIT_EXPRESSION_WRONG];
    const size_t count = fit_variant_names(vary, variant, names);
    *all = true;
    for (size_t i = 0; i < vary->where->count; i++) {
        const char *text = vary->where->values[i];
        struct fit_value value;
        if (!fit_expression(text, strlen(text), names, count, &value, why))
            return wrong_with(wrong, "--where '%.*s': %s", SHOWN_MOST, text, why);
        *all = *all && fit_value_is_true(&value);
    }
    return true;
}

// Advances to the next combination. Returns false after the last.
static bool next_combination(const struct fit_vary *vary, unsigned char places[FIT_VARY_MOST]) {
    for (size_t i = vary->count; i-- > 0;) {
        if (++places[i] < vary->arguments[i].value_count) return true;
        places[i] = 0;
    }
    return false;
}

static bool add_variant(struct fit_variants *variants, const struct fit_variant *variant, char wrong[FIT_VARY_WRONG]) {
    if (variants->count == FIT_VARIANTS_MOST) return wrong_with(wrong, "--vary makes more than %d variants", FIT_VARIANTS_MOST);
    if ((variants->count & (variants->count - 1)) == 0) {
        struct fit_variant *rows = realloc(variants->rows, (variants->count == 0 ? 1 : variants->count * 2) * sizeof *rows);
        if (rows == NULL) return no_memory(wrong);
        variants->rows = rows;
    }
    variants->rows[variants->count++] = *variant;
    return true;
}

bool fit_variants_make(const struct fit_vary *vary, char **program, struct fit_variants *variants, char wrong[FIT_VARY_WRONG]) {
    struct fit_variant variant = {.ranks = 0};
    bool good = true, all = false;
    *variants = (struct fit_variants){.count = 0};
    do {
        variant.words = NULL;
        variant.ranks = 0;
        good = make_words(vary, program, &variant, wrong);
        if (good) variant.ranks = fit_count_ranks(variant.words);
        good = good && holds(vary, &variant, &all, wrong) && (!all || add_variant(variants, &variant, wrong));
        if (!good || !all) release_words(variant.words);
    } while (good && next_combination(vary, variant.places));
    if (good && variants->count == 0) good = wrong_with(wrong, "--where holds for none of the combinations");
    if (!good) fit_variants_release(variants);
    return good;
}

void fit_variants_release(struct fit_variants *variants) {
    for (size_t i = 0; i < variants->count; i++) release_words(variants->rows[i].words);
    free(variants->rows);
    *variants = (struct fit_variants){.count = 0};
}
