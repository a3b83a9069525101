// answers.h: the answers of a command on standard output, for people or as JSON: where there can be several, one array of them.
#ifndef CLI_ANSWERS_H
#define CLI_ANSWERS_H

#include "base/json.h"

// An answer that ends before its first byte leaves no trace: what separates it from the one before is printed with that byte.
struct answers {
    bool json, is_array;
    const char *between; // of answers for people
    uint64_t begun;      // answers of which something was printed
    bool due;            // the next byte is the first of an answer
};

// `between` is printed between two answers for people. An array is opened; answers_close() closes it, also where it is empty.
void answers_open(struct answers *answers, bool json, bool is_array, const char *between);
void answers_close(struct answers *answers);

// Another answer follows. Its bytes go through answers_write(), or through stdout after answers_begin().
void answers_expect(struct answers *answers);
// A vram_write whose user is the answers.
bool answers_write(void *answers, const char *bytes, size_t length);
// Prints what separates the expected answer from the one before.
void answers_begin(struct answers *answers);

// One value of JSON in the making. answer_json_end() prints it, as the expected answer or (answers NULL) as a line of its own, and returns
// the exit code: CLI_BAD_INPUT, with a line on standard error, without host memory for it.
struct answer_json {
    struct vr_text text;
    struct vr_json json;
};
struct vr_json *answer_json_begin(struct answer_json *answer);
// A number with so many digits behind the point at most.
void answer_json_decimal(struct vr_json *json, const char *key, double value, int digits);
int answer_json_end(struct answer_json *answer, struct answers *answers);

#endif
