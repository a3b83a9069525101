#include "explore/query/parameters.h"

#include <math.h>
#include <stdio.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Decodes in place; what is no valid escape stays as it is.
static void decode_percent(char *text) {
    char *out = text;
    for (const char *in = text; *in != '\0'; in++) {
        if (*in == '+') {
            *out++ = ' ';
        } else if (*in == '%' && hex_digit(in[1]) >= 0 && hex_digit(in[2]) >= 0 && (hex_digit(in[1]) | hex_digit(in[2])) != 0) {
            *out++ = (char)(hex_digit(in[1]) * 16 + hex_digit(in[2]));
            in += 2;
        } else {
            *out++ = *in;
        }
    }
    *out = '\0';
}

enum vram_status vr_parameters_parse(struct vr_parameters *parameters, const char *text, struct vram_error *error) {
    memset(parameters, 0, sizeof *parameters);
    parameters->error = error;
    const size_t length = strlen(text);
    parameters->text = malloc(length + 1);
    if (parameters->text == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(parameters->text, text, length + 1);
    parameters->name = parameters->text;
    char *rest = strchr(parameters->text, '?');
    if (rest == NULL) return VRAM_OK;
    *rest++ = '\0';
    while (*rest != '\0') {
        char *end = rest + strcspn(rest, "&"), *next = *end == '\0' ? end : end + 1;
        *end = '\0';
        char *equals = strchr(rest, '=');
        if (equals == NULL || parameters->count == VR_MOST_PARAMETERS) {
            vr_parameters_release(parameters);
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                           equals == NULL ? "a query's parameter has no value" : "a query has too many parameters");
        }
        *equals = '\0';
        decode_percent(equals + 1);
        parameters->pair[parameters->count].key = rest;
        parameters->pair[parameters->count++].value = equals + 1;
        rest = next;
    }
    return VRAM_OK;
}

void vr_parameters_release(struct vr_parameters *parameters) {
    free(parameters->text);
    parameters->text = NULL;
    parameters->count = 0;
}

const char *vr_parameter_text(const struct vr_parameters *parameters, const char *key) {
    for (size_t i = 0; i < parameters->count; i++) {
        if (strcmp(parameters->pair[i].key, key) == 0) return parameters->pair[i].value;
    }
    return NULL;
}

static enum vram_status refuse_parameter(const struct vr_parameters *parameters, const char *key, const char *expected) {
    return vr_fail(parameters->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "%.40s: '%.40s' should be %s", parameters->name, key,
                   expected);
}

enum vram_status vr_parameter_number(const struct vr_parameters *parameters, const char *key, double fallback, double *value) {
    const char *text = vr_parameter_text(parameters, key);
    double number = fallback;
    if (text != NULL) {
        char *end;
        number = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(number)) return refuse_parameter(parameters, key, "a number");
    }
    *value = number;
    return VRAM_OK;
}

enum vram_status vr_parameter_whole(const struct vr_parameters *parameters, const char *key, int64_t low, int64_t high, int64_t fallback,
                                    int64_t *value) {
    const char *text = vr_parameter_text(parameters, key);
    if (text == NULL) {
        *value = fallback;
        return VRAM_OK;
    }
    char *end, range[80];
    const long long number = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && number >= low && number <= high) {
        *value = number;
        return VRAM_OK;
    }
    snprintf(range, sizeof range, "a whole number from %lld to %lld", (long long)low, (long long)high);
    return refuse_parameter(parameters, key, range);
}

enum vram_status vr_parameter_word(const struct vr_parameters *parameters, const char *key, const char *const *words, size_t fallback,
                                   size_t *value) {
    const char *text = vr_parameter_text(parameters, key);
    if (text == NULL) {
        *value = fallback;
        return VRAM_OK;
    }
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *value = i;
            return VRAM_OK;
        }
    }
    char known[160] = "one of";
    for (size_t i = 0; words[i] != NULL; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s %s", i == 0 ? "" : ",", words[i]);
    }
    return refuse_parameter(parameters, key, known);
}
