// Parses the parameters of queries, and builds their answers.
#include <math.h>
#include <stdio.h>

#include "analyze/lifetimes.h"
#include "explore/query/query.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Decodes in place; leaves invalid escapes as they are.
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
    return vr_fail(parameters->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "%.40s: '%.40s' must be %s", parameters->name, key, expected);
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

static const struct {
    const char *name;
    size_t bytes;
} numbers[VR_ANSWER_TYPE_COUNT] = {[VR_U8] = {"u8", 1}, [VR_I32] = {"i32", 4}, [VR_U32] = {"u32", 4}, [VR_F64] = {"f64", 8}};

void vr_answer_init(struct vr_answer *answer) {
    memset(answer, 0, sizeof *answer);
    vr_json_init(&answer->json, &answer->text, false);
    vr_json_object(&answer->json, NULL);
}

void vr_answer_release(struct vr_answer *answer) {
    vr_text_release(&answer->text);
    for (size_t i = 0; i < answer->column_count; i++) free(answer->column[i].numbers);
    memset(answer, 0, sizeof *answer);
}

size_t vr_answer_column(struct vr_answer *answer, const char *name, enum vr_answer_type type) {
    assert(answer->column_count < VR_ANSWER_COLUMNS);
    answer->column[answer->column_count].name = name;
    answer->column[answer->column_count].type = type;
    return answer->column_count++;
}

static void append_cell(struct vr_answer *answer, size_t column, enum vr_answer_type type, const void *number) {
    assert(column < answer->column_count && answer->column[column].type == type);
    const size_t bytes = numbers[type].bytes, used = answer->column[column].count * bytes;
    if (used + bytes > answer->column[column].capacity) {
        const size_t capacity = used == 0 ? 4096 : 2 * used;
        void *grown = realloc(answer->column[column].numbers, capacity);
        if (grown == NULL) {
            answer->failed = true;
            return;
        }
        answer->column[column].numbers = grown;
        answer->column[column].capacity = capacity;
    }
    memcpy((char *)answer->column[column].numbers + used, number, bytes);
    answer->column[column].count++;
}

void vr_answer_u8(struct vr_answer *answer, size_t column, uint8_t number) { append_cell(answer, column, VR_U8, &number); }
void vr_answer_i32(struct vr_answer *answer, size_t column, int32_t number) { append_cell(answer, column, VR_I32, &number); }
void vr_answer_u32(struct vr_answer *answer, size_t column, uint32_t number) { append_cell(answer, column, VR_U32, &number); }
void vr_answer_f64(struct vr_answer *answer, size_t column, double number) { append_cell(answer, column, VR_F64, &number); }

size_t vr_answer_halves(struct vr_answer *answer, const char *low, const char *high) {
    const size_t column = vr_answer_column(answer, low, VR_U32);
    (void)vr_answer_column(answer, high, VR_U32);
    return column;
}

void vr_answer_u64(struct vr_answer *answer, size_t low, uint64_t number) {
    vr_answer_u32(answer, low, (uint32_t)number);
    vr_answer_u32(answer, low + 1, (uint32_t)(number >> 32));
}

void vr_answer_address(struct vr_answer *answer, const char *key, uint64_t address) {
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)address);
    vr_json_string(&answer->json, key, text);
}

static size_t column_bytes(const struct vr_answer *answer, size_t i) {
    return (size_t)vr_round_up(answer->column[i].count * numbers[answer->column[i].type].bytes, 8);
}

static size_t describe_columns(struct vr_answer *answer) {
    size_t offset = 0;
    vr_json_object(&answer->json, "columns");
    for (size_t i = 0; i < answer->column_count; i++) {
        vr_json_object(&answer->json, answer->column[i].name);
        vr_json_string(&answer->json, "type", numbers[answer->column[i].type].name);
        vr_json_u64(&answer->json, "offset", offset);
        vr_json_u64(&answer->json, "count", answer->column[i].count);
        vr_json_object_end(&answer->json);
        offset += column_bytes(answer, i);
    }
    vr_json_object_end(&answer->json);
    vr_json_object_end(&answer->json);
    return offset;
}

static void put_u32(unsigned char *bytes, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

enum vram_status vr_answer_send(struct vr_answer *answer, vram_write write, void *user) {
    const size_t numbers_bytes = describe_columns(answer);
    if (answer->failed || vr_text_status(&answer->text) != VRAM_OK) return VRAM_NO_HOST_MEMORY;
    const size_t first = (size_t)vr_round_up(8 + answer->text.length, 8), total = first + numbers_bytes;
    if (total > UINT32_MAX) return VRAM_NO_HOST_MEMORY;
    unsigned char *bytes = calloc(1, total);
    if (bytes == NULL) return VRAM_NO_HOST_MEMORY;
    put_u32(bytes, (uint32_t)answer->text.length);
    put_u32(bytes + 4, (uint32_t)first);
    memcpy(bytes + 8, answer->text.bytes, answer->text.length);
    size_t offset = first;
    for (size_t i = 0; i < answer->column_count; i++) {
        if (answer->column[i].count != 0)
            memcpy(bytes + offset, answer->column[i].numbers, answer->column[i].count * numbers[answer->column[i].type].bytes);
        offset += column_bytes(answer, i);
    }
    const bool sent = write(user, (const char *)bytes, total);
    free(bytes);
    return sent ? VRAM_OK : VRAM_IO;
}

void vr_put_frame(struct vr_json *json, const struct vr_model *model, uint32_t frame, const char *fold) {
    vr_json_array(json, NULL);
    vr_json_string(json, NULL, vr_model_string(model, model->frames.name[frame]));
    vr_json_string(json, NULL, vr_model_string(model, model->frames.filename[frame]));
    vr_json_i64(json, NULL, model->frames.line[frame]);
    vr_json_string(json, NULL, fold);
    vr_json_array_end(json);
}

void vr_put_stack(struct vr_json *json, struct vr_sites *sites, uint32_t stack) {
    const struct vr_model *model = sites->model;
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    const uint32_t named = vr_sites_frame(sites, stack);
    uint64_t site = end;
    vr_json_u64(json, "stack", stack);
    vr_json_array(json, "frames");
    for (uint64_t i = first; i < end; i++) {
        const uint32_t frame = model->stacks.frame[i];
        vr_put_frame(json, model, frame, vr_frame_kind_word(vr_sites_kind(sites, frame)));
        if (site == end && frame == named) site = i;
    }
    vr_json_array_end(json);
    if (site != end) vr_json_u64(json, "site", site - first);
}

void vr_put_moment(struct vr_json *json, const struct vr_history *history, const char *event_key, const char *time_key, uint32_t event) {
    if (event == VR_NEVER) {
        vr_json_null(json, event_key);
        return;
    }
    vr_json_u64(json, event_key, event);
    if ((vr_entry_has(history, event) & VR_HAS_TIME) != 0) vr_json_i64(json, time_key, history->time_us[event]);
}

void vr_put_pool(struct vr_json *json, uint64_t first, uint64_t second) {
    vr_json_array(json, "pool");
    vr_json_u64(json, NULL, first);
    vr_json_u64(json, NULL, second);
    vr_json_array_end(json);
}

static void put_string_member(struct vr_json *json, const struct vr_model *model, const char *key, uint32_t id) {
    if (id != 0) vr_json_string(json, key, vr_model_string(model, id));
}

void vr_put_words(struct vr_json *json, const struct vr_model *model, const struct vr_history *history, size_t event) {
    if ((vr_entry_has(history, event) & VR_HAS_POOL_ID) != 0) vr_put_pool(json, history->pool_first[event], history->pool_second[event]);
    put_string_member(json, model, "category", history->tag[event]);
    put_string_member(json, model, "metadata", history->metadata[event]);
    put_string_member(json, model, "context", history->context[event]);
#define LATER_FIRST(column)
#define LATER_LATER(column) put_string_member(json, model, #column, history->column[event]);
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, type, density, number, LOG, since, KEY) LATER_##since(column)
#include "model/entry_fields.def"
}
