// sim_signature.c: parser of mangled names, limited to the types that sim_outputs.h needs. Every step is checked against the end of the
// name; nesting and substitutions are bounded.
#include "sim/modules/sim_outputs.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 96, SUBSTITUTIONS_MOST = 1024, ARGUMENTS_MOST = 64 };

struct mangled {
    const char *at, *end;
    int depth;
    bool inside; // inside template arguments or another function's name, so not part of the kernel's own name
    struct vr_sim_mangled_type substitutions[SUBSTITUTIONS_MOST], arguments[ARGUMENTS_MOST];
    size_t substitution_count, argument_count;
    struct vr_sim_mangled_type nested; // substitution that is the template of the last nested name; empty text: not a substitution
};

static bool read_type(struct mangled *name, struct vr_sim_mangled_type *type);
static bool read_name(struct mangled *name, bool *is_template);
static bool read_encoding(struct mangled *name);

static char next_char(const struct mangled *name) { return name->at < name->end ? *name->at : '\0'; }

static char second_char(const struct mangled *name) { return name->end - name->at > 1 ? name->at[1] : '\0'; }

static bool skip_char(struct mangled *name, char what) {
    if (next_char(name) != what) return false;
    name->at++;
    return true;
}

static bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_small(char c) { return c >= 'a' && c <= 'z'; }

static bool push_type(struct mangled *name, struct vr_sim_mangled_type type) {
    if (name->substitution_count == SUBSTITUTIONS_MOST) return false;
    name->substitutions[name->substitution_count++] = type;
    return true;
}

static bool push_from(struct mangled *name, const char *from) {
    return push_type(name, (struct vr_sim_mangled_type){.text = from, .length = (size_t)(name->at - from)});
}

// --- parts ----------------------------------------------------------------------------------------------------------

static bool read_source_name(struct mangled *name) {
    size_t length = 0;
    if (!is_decimal_digit(next_char(name))) return false;
    while (is_decimal_digit(next_char(name)) && length < (size_t)1 << 20) length = length * 10 + (size_t)(*name->at++ - '0');
    if (length > (size_t)(name->end - name->at)) return false;
    name->at += length;
    return true;
}

// Reads a sequence number in a base: "_" is 0, "0_" is 1 and so on.
static bool read_sequence(struct mangled *name, unsigned base, size_t *number) {
    size_t value = 0;
    if (skip_char(name, '_')) {
        *number = 0;
        return true;
    }
    for (; next_char(name) != '_' && value < 100000; name->at++) {
        const char c = next_char(name);
        if (!is_decimal_digit(c) && !(base == 36 && c >= 'A' && c <= 'Z')) return false;
        value = value * base + (size_t)(is_decimal_digit(c) ? c - '0' : c - 'A' + 10);
    }
    *number = value + 1;
    return skip_char(name, '_');
}

static bool read_types_to_end(struct mangled *name) {
    struct vr_sim_mangled_type type;
    while (next_char(name) != 'E')
        if (!read_type(name, &type)) return false;
    return skip_char(name, 'E');
}

// Reads a lambda or another unnamed type.
static bool read_unnamed(struct mangled *name) {
    size_t number;
    name->at++;
    if (skip_char(name, 't')) return read_sequence(name, 10, &number);
    return skip_char(name, 'l') && read_types_to_end(name) && read_sequence(name, 10, &number);
}

static bool read_unqualified(struct mangled *name) {
    (void)skip_char(name, 'L'); // internal linkage
    const char first = next_char(name);
    bool read;
    if (is_decimal_digit(first)) {
        read = read_source_name(name);
    } else if (first == 'U') {
        read = read_unnamed(name);
    } else if (first == 'C' || first == 'D') {
        name->at++;
        read = is_decimal_digit(next_char(name));
        name->at += read;
    } else if (first == 'c' && second_char(name) == 'v') {
        struct vr_sim_mangled_type type;
        name->at += 2;
        read = read_type(name, &type);
    } else {
        read = is_small(first) && (is_small(second_char(name)) || (second_char(name) >= 'A' && second_char(name) <= 'Z')); // an operator
        name->at += read ? 2 : 0;
    }
    while (read && skip_char(name, 'B')) read = read_source_name(name);
    return read;
}

// Reads the rest of a substitution after its S.
static bool read_substitution(struct mangled *name, struct vr_sim_mangled_type *type) {
    size_t number;
    const char first = next_char(name);
    *type = (struct vr_sim_mangled_type){.text = name->at - 1, .length = 2};
    if (is_small(first)) { // std::allocator, basic_string, string, istream, ostream, iostream
        name->at++;
        return strchr("absiod", first) != NULL;
    }
    if (!read_sequence(name, 36, &number) || number >= name->substitution_count) return false;
    *type = name->substitutions[number];
    return true;
}

static bool read_template_parameter(struct mangled *name, struct vr_sim_mangled_type *type) {
    size_t number;
    const char *from = name->at++; // after the T
    if (!read_sequence(name, 10, &number)) return false;
    *type = (struct vr_sim_mangled_type){.text = from, .length = (size_t)(name->at - from)};
    if (!name->inside && number < name->argument_count) *type = name->arguments[number];
    return true;
}

// --- arguments of templates -----------------------------------------------------------------------------------------

// Reads a literal, L ... E: a value, or the name of an entity.
static bool read_literal(struct mangled *name) {
    struct vr_sim_mangled_type type;
    name->at++;
    if (skip_char(name, '_')) return skip_char(name, 'Z') && read_encoding(name) && skip_char(name, 'E');
    if (!read_type(name, &type)) return false;
    while (is_decimal_digit(next_char(name)) || is_small(next_char(name))) name->at++;
    return skip_char(name, 'E');
}

// Reads an expression; only a template parameter and the address of an entity are supported.
static bool read_expression(struct mangled *name) {
    struct vr_sim_mangled_type type;
    name->at++;
    if (next_char(name) == 'T') return read_template_parameter(name, &type) && skip_char(name, 'E');
    if (next_char(name) == 'a' && second_char(name) == 'd') name->at += 2;
    return next_char(name) == 'L' && read_literal(name) && skip_char(name, 'E');
}

static bool read_argument(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    bool read = true;
    *type = (struct vr_sim_mangled_type){.text = from};
    if (next_char(name) == 'L') {
        read = read_literal(name);
    } else if (next_char(name) == 'X') {
        read = read_expression(name);
    } else if (skip_char(name, 'J')) {
        struct vr_sim_mangled_type one;
        while (read && next_char(name) != 'E') read = read_argument(name, &one);
        read = read && skip_char(name, 'E');
    } else {
        return read_type(name, type);
    }
    type->length = (size_t)(name->at - from);
    return read;
}

// Reads template arguments, I ... E. T_, T0_ and so on refer to those of the kernel's last template.
static bool read_arguments(struct mangled *name) {
    struct vr_sim_mangled_type type;
    const bool inside = name->inside;
    name->at++;
    name->inside = true;
    if (!inside) name->argument_count = 0;
    while (next_char(name) != 'E') {
        if (!read_argument(name, &type)) return false;
        if (!inside && name->argument_count < ARGUMENTS_MOST) name->arguments[name->argument_count++] = type;
    }
    name->inside = inside;
    return skip_char(name, 'E');
}

// --- names ----------------------------------------------------------------------------------------------------------

// Reads one component of a nested name. *type is set if it is a substitution.
static bool read_component(struct mangled *name, bool *substituted, struct vr_sim_mangled_type *type) {
    *substituted = false;
    if (next_char(name) == 'T') return read_template_parameter(name, type);
    if (next_char(name) != 'S') return next_char(name) == 'I' ? read_arguments(name) : read_unqualified(name);
    *substituted = true;
    name->at++;
    return skip_char(name, 't') || read_substitution(name, type);
}

static bool read_nested(struct mangled *name, bool *is_template) {
    const char *from = name->at++;
    struct vr_sim_mangled_type nested = {0};
    bool substituted;
    while (next_char(name) == 'r' || next_char(name) == 'V' || next_char(name) == 'K') name->at++;
    if (next_char(name) == 'R' || next_char(name) == 'O') name->at++;
    while (next_char(name) != 'E') {
        *is_template = next_char(name) == 'I';
        struct vr_sim_mangled_type type = {0};
        if (!read_component(name, &substituted, &type)) return false;
        if (!*is_template) nested = type;
        if (next_char(name) != 'E' && !substituted && !push_from(name, from)) return false;
    }
    name->nested = nested;
    return skip_char(name, 'E');
}

// Reads an entity inside of a function: Z encoding E name.
static bool read_local(struct mangled *name, bool *is_template) {
    size_t number;
    const bool inside = name->inside;
    name->at++;
    name->inside = true;
    if (!read_encoding(name) || !skip_char(name, 'E')) return false;
    name->inside = inside;
    if (skip_char(name, 's')) {
        *is_template = false; // a string literal
    } else {
        if (skip_char(name, 'd') && !read_sequence(name, 10, &number)) return false;
        if (!read_name(name, is_template)) return false;
    }
    if (!skip_char(name, '_')) return true;
    if (!skip_char(name, '_')) { // discriminator: one digit, or several between underscores
        const bool digit = is_decimal_digit(next_char(name));
        name->at += digit;
        return digit;
    }
    return read_sequence(name, 10, &number);
}

static bool read_unscoped(struct mangled *name, bool *is_template) {
    const char *from = name->at;
    struct vr_sim_mangled_type type;
    bool substituted = false;
    if (next_char(name) == 'S' && second_char(name) != 't') {
        name->at++;
        substituted = true;
        if (!read_substitution(name, &type)) return false;
    } else {
        if (next_char(name) == 'S') name->at += 2;
        if (!read_unqualified(name)) return false;
    }
    *is_template = next_char(name) == 'I';
    if (!*is_template) return true;
    return (substituted || push_from(name, from)) && read_arguments(name);
}

static bool read_name(struct mangled *name, bool *is_template) {
    if (name->depth == DEPTH_MOST) return false;
    name->depth++;
    *is_template = false;
    const char first = next_char(name);
    const bool read = first == 'N'   ? read_nested(name, is_template)
                      : first == 'Z' ? read_local(name, is_template)
                                     : read_unscoped(name, is_template);
    name->depth--;
    return read;
}

// Reads a function's name and parameters up to its E. After a template's name comes its return type, which is read as a type.
static bool read_encoding(struct mangled *name) {
    struct vr_sim_mangled_type type;
    bool is_template;
    if (!read_name(name, &is_template)) return false;
    while (name->at < name->end && next_char(name) != 'E')
        if (!read_type(name, &type)) return false;
    return true;
}

// --- types ----------------------------------------------------------------------------------------------------------

static bool read_class(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    bool is_template;
    if (!read_name(name, &is_template)) return false;
    *type = (struct vr_sim_mangled_type){.text = from, .length = (size_t)(name->at - from)};
    if (*from == 'N' && is_template) {
        type->template_text = name->nested.text;
        type->template_length = name->nested.length;
    }
    return push_type(name, *type);
}

// Reads a type that begins with S: a name in std, a substitution, or a template that is a substitution.
static bool read_known(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    if (second_char(name) == 't') return read_class(name, type);
    name->at++;
    if (!read_substitution(name, type)) return false;
    if (next_char(name) != 'I') return true;
    const struct vr_sim_mangled_type known = *type;
    if (!read_arguments(name)) return false;
    *type = (struct vr_sim_mangled_type){.template_text = known.text, .template_length = known.length, .text = from};
    type->length = (size_t)(name->at - from);
    return push_type(name, *type);
}

static bool read_parameter_type(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    if (!read_template_parameter(name, type) || !push_type(name, *type)) return false;
    return next_char(name) != 'I' || (read_arguments(name) && push_from(name, from));
}

// Reads types that begin with D: half, char8_t, nullptr, _FloatN, and pack expansions.
static bool read_d(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at++;
    const char first = next_char(name);
    *type = (struct vr_sim_mangled_type){.text = from, .length = 2};
    name->at++;
    if (first == 'p') {
        const bool read = read_type(name, type) && push_type(name, *type);
        type->pack = true;
        return read;
    }
    if (first != 'F') return first != '\0' && strchr("hfdeisucan", first) != NULL;
    while (is_decimal_digit(next_char(name))) name->at++;
    return skip_char(name, '_') || skip_char(name, 'b') || skip_char(name, 'x');
}

static bool read_array(struct mangled *name) {
    struct vr_sim_mangled_type element;
    name->at++;
    while (is_decimal_digit(next_char(name))) name->at++;
    return skip_char(name, '_') && read_type(name, &element);
}

static bool read_function(struct mangled *name) {
    name->at++;
    (void)skip_char(name, 'Y');
    return read_types_to_end(name);
}

// Reads a type that wraps another one: qualified types, pointers, references, complex numbers, pointers to members.
static bool read_around(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    const char first = next_char(name);
    struct vr_sim_mangled_type inner;
    if (first == 'r' || first == 'V' || first == 'K') {
        bool constant = false;
        for (; next_char(name) == 'r' || next_char(name) == 'V' || next_char(name) == 'K'; name->at++)
            constant = constant || next_char(name) == 'K';
        if (!read_type(name, type)) return false;
        type->constant = type->constant || constant;
        return push_type(name, *type);
    }
    name->at++;
    if (!read_type(name, &inner) || (first == 'M' && !read_type(name, &inner))) return false;
    *type = (struct vr_sim_mangled_type){.text = from, .length = (size_t)(name->at - from)};
    type->pointer = first == 'P';
    type->to_constant = inner.constant;
    return push_type(name, *type);
}

static bool read_one(struct mangled *name, struct vr_sim_mangled_type *type) {
    const char *from = name->at;
    const char first = next_char(name);
    *type = (struct vr_sim_mangled_type){.text = from, .length = 1};
    if (first == 'N' || first == 'Z' || is_decimal_digit(first)) return read_class(name, type);
    if (first == 'S') return read_known(name, type);
    if (first == 'T') return read_parameter_type(name, type);
    if (first == 'D') return read_d(name, type);
    if (first == 'A' || first == 'F') return (first == 'A' ? read_array(name) : read_function(name)) && push_from(name, from);
    if (first != '\0' && strchr("rVKPROCGM", first) != NULL) return read_around(name, type);
    if (first != '\0' && strchr("vwbcahstijlmxynofdegz", first) != NULL) return skip_char(name, first);
    return false;
}

static bool read_type(struct mangled *name, struct vr_sim_mangled_type *type) {
    if (name->depth == DEPTH_MOST) return false;
    name->depth++;
    const bool read = read_one(name, type);
    name->depth--;
    return read;
}

// --- the kernel -----------------------------------------------------------------------------------------------------

static size_t read_kernel(struct mangled *name, struct vr_sim_mangled_type *types) {
    struct vr_sim_mangled_type type;
    bool is_template;
    size_t count = 0;
    if (!skip_char(name, '_') || !skip_char(name, 'Z') || !read_name(name, &is_template)) return SIZE_MAX;
    if (is_template && !read_type(name, &type)) return SIZE_MAX; // return type
    while (name->at < name->end) {
        if (!read_type(name, &type) || count == VR_SIM_PARAMETERS_MOST) return SIZE_MAX;
        types[count++] = type;
    }
    return count == 1 && types[0].length == 1 && types[0].text[0] == 'v' ? 0 : count;
}

size_t vr_sim_signature(const char *text, struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST]) {
    if (text[0] != '_' || text[1] != 'Z') return SIZE_MAX;
    struct mangled *name = malloc(sizeof *name); // about 60 KiB: too large for the stack
    if (name == NULL) return SIZE_MAX;
    name->at = text;
    name->end = text + strlen(text);
    name->depth = 0;
    name->inside = false;
    name->substitution_count = name->argument_count = 0;
    name->nested = (struct vr_sim_mangled_type){0};
    const size_t count = read_kernel(name, types);
    free(name);
    return count;
}
