// answer.h: an answer in the making: a JSON object, and columns of numbers that it describes.
//
// Bytes of an answer, all little-endian: u32 length of the JSON text, u32 offset of the first column (a multiple of 8), the JSON text,
// zeros, the columns. The object's last member "columns" names each column with its type, its offset in bytes from the first column
// (a multiple of 8) and its count of numbers.
#ifndef VR_EXPLORE_QUERY_ANSWER_H
#define VR_EXPLORE_QUERY_ANSWER_H

#include "base/json.h"
#include "vram/status.h"

enum vr_answer_type { VR_U8, VR_I32, VR_U32, VR_F64, VR_ANSWER_TYPE_COUNT };
enum { VR_ANSWER_COLUMNS = 32 };

struct vr_answer {
    struct vr_json json; // open: the answer's own object; members are added to it
    struct vr_text text;
    struct {
        const char *name;
        enum vr_answer_type type;
        void *numbers;
        size_t count;
        size_t capacity; // in bytes
    } column[VR_ANSWER_COLUMNS];
    size_t column_count;
    bool failed; // host memory ran out
};

void vr_answer_init(struct vr_answer *answer);
void vr_answer_release(struct vr_answer *answer);
// A new column, empty; names are literals. Columns are numbered from 0 in the order of the calls.
size_t vr_answer_column(struct vr_answer *answer, const char *name, enum vr_answer_type type);
// Appends a number to a column of that type. A failure is remembered.
void vr_answer_u8(struct vr_answer *answer, size_t column, uint8_t number);
void vr_answer_i32(struct vr_answer *answer, size_t column, int32_t number);
void vr_answer_u32(struct vr_answer *answer, size_t column, uint32_t number);
void vr_answer_f64(struct vr_answer *answer, size_t column, double number);
// A whole number of 64 bits as two columns of halves, `low` and the one behind it: doubles would lose its last digits.
size_t vr_answer_halves(struct vr_answer *answer, const char *low, const char *high);
void vr_answer_u64(struct vr_answer *answer, size_t low, uint64_t number);
// An address as the text "0x...": JSON numbers are doubles to those who read them.
void vr_answer_address(struct vr_answer *answer, const char *key, uint64_t address);
// Ends the object and hands the bytes to `write`. NO_HOST_MEMORY, IO.
enum vram_status vr_answer_send(struct vr_answer *answer, vram_write write, void *user);

#endif
