#include "explore/query/answer.h"

#include <stdio.h>

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
