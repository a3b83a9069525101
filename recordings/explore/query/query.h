// query.h: a query, its parameters and its answer, and one function per row of queries.def.
#ifndef VR_EXPLORE_QUERY_QUERY_H
#define VR_EXPLORE_QUERY_QUERY_H

#include "analyze/sites.h"
#include "base/base.h"
#include "base/json.h"
#include "explore/explored/explored.h"
#include "vram/status.h"

// ---- The parts of "name?key=value&key=value". Values are percent-decoded ('+' is a space); keys are plain words.

enum { VR_MOST_PARAMETERS = 32 };

struct vr_parameters {
    char *text; // name, keys and values, each NUL-terminated
    const char *name;
    struct {
        const char *key;
        const char *value;
    } pair[VR_MOST_PARAMETERS];
    size_t count;
    struct vram_error *error; // filled by getters that fail; may be NULL
};

// Parses a query. INVALID_ARGUMENT if the text is not a query, NO_HOST_MEMORY.
enum vram_status vr_parameters_parse(struct vr_parameters *parameters, const char *text, struct vram_error *error);
void vr_parameters_release(struct vr_parameters *parameters);

// Returns the value of a key, or NULL. The first of repeated keys counts.
const char *vr_parameter_text(const struct vr_parameters *parameters, const char *key);
// Reads an integer; `fallback` if the key is absent. INVALID_ARGUMENT (naming the key) for other text and for numbers outside [low, high].
enum vram_status vr_parameter_whole(const struct vr_parameters *parameters, const char *key, int64_t low, int64_t high, int64_t fallback,
                                    int64_t *value);
// Reads any finite number; otherwise as vr_parameter_whole().
enum vram_status vr_parameter_number(const struct vr_parameters *parameters, const char *key, double fallback, double *value);
// Reads the index of the value among `words`, which end with NULL; `fallback` if the key is absent.
enum vram_status vr_parameter_word(const struct vr_parameters *parameters, const char *key, const char *const *words, size_t fallback,
                                   size_t *value);

// ---- An answer under construction: a JSON object, and the columns of numbers that it describes. The answer's bytes, all little-endian:
// u32 length of the JSON text, u32 offset of the first column (a multiple of 8), the JSON text, zeros, the columns. The object's last
// member "columns" lists each column's name, type, offset in bytes from the first column (a multiple of 8) and number of elements.

enum vr_answer_type { VR_U8, VR_I32, VR_U32, VR_F64, VR_ANSWER_TYPE_COUNT };
enum { VR_ANSWER_COLUMNS = 32 };

struct vr_answer {
    struct vr_json json; // inside the answer's object, to which members are added
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
// Adds an empty column; `name` must be a literal. Columns are numbered from 0 in the order of the calls.
size_t vr_answer_column(struct vr_answer *answer, const char *name, enum vr_answer_type type);
// Append a number to a column of the type. vr_answer_send() returns failures.
void vr_answer_u8(struct vr_answer *answer, size_t column, uint8_t number);
void vr_answer_i32(struct vr_answer *answer, size_t column, int32_t number);
void vr_answer_u32(struct vr_answer *answer, size_t column, uint32_t number);
void vr_answer_f64(struct vr_answer *answer, size_t column, double number);
// Adds two columns, `low` and the following `high`, for the halves of a 64-bit integer, because doubles would lose its last digits.
size_t vr_answer_halves(struct vr_answer *answer, const char *low, const char *high);
void vr_answer_u64(struct vr_answer *answer, size_t low, uint64_t number);
// Adds an address as the text "0x...", because readers of JSON treat numbers as doubles.
void vr_answer_address(struct vr_answer *answer, const char *key, uint64_t address);
// Ends the object and passes the bytes to `write`. NO_HOST_MEMORY, IO.
enum vram_status vr_answer_send(struct vr_answer *answer, vram_write write, void *user);

// ---- Members that several queries add to an answer's open object.

// Adds an element of `frames`, see below.
void vr_put_frame(struct vr_json *json, const struct vr_model *model, uint32_t frame, const char *fold);
// Adds `stack`, `frames` (an array of [name, file, line, name of its frame kind or ""], innermost first) and `site` (the call site's index
// in it, absent without frames).
void vr_put_stack(struct vr_json *json, struct vr_sites *sites, uint32_t stack);
// Adds an event's number (VR_NEVER: null) and its time, if the history has it.
void vr_put_moment(struct vr_json *json, const struct vr_history *history, const char *event_key, const char *time_key, uint32_t event);
// Adds `pool` as a pair.
void vr_put_pool(struct vr_json *json, uint64_t first, uint64_t second);
// Adds `pool`, `category`, `metadata` and `context`, if the event has them.
void vr_put_words(struct vr_json *json, const struct vr_model *model, const struct vr_history *history, size_t event);

// ---- A query: one function per row of queries.def.

// The subject of a query, and its answer.
struct vr_query {
    struct vram_explorer *explorer;
    const struct vr_parameters *parameters;
    struct vr_answer *answer;
    struct vram_error *error; // may be NULL
};

// Answers a query by adding to query->answer. INVALID_ARGUMENT with a message, NO_HOST_MEMORY, LIMIT.
typedef enum vram_status (*vr_query_function)(const struct vr_query *query);
#define QUERY(name) enum vram_status vr_query_##name(const struct vr_query *query);
#include "explore/queries.def"
#undef QUERY

#endif
