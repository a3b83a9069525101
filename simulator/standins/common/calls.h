// calls.h: macros that turn the rows of a library's call table into functions. tools/standin_calls.py writes the tables.
//
// A row lists the parameters up to the last one that is used: on the systems that CUDA supports (Linux on x86-64 and Arm), the calling
// conventions let a function ignore further arguments. A file that includes a table must define `codes` first.
#ifndef VR_STANDINS_COMMON_CALLS_H
#define VR_STANDINS_COMMON_CALLS_H

#include <string.h>

#include "common.h"

// A library's handle. Its pointer mode says where results are written: 0 host, 1 device.
struct standin_handle {
    struct standin_object object;
    uint64_t stream;
    int pointer_mode;
    int device_count;      // of multi-device handles; 0 for others
    void *own_workspace;   // device memory that the library allocated; NULL: none
    void *users_workspace; // set by the program
    size_t users_workspace_bytes;
};

// A library's status codes for common errors.
struct standin_codes {
    uint64_t kind; // kind of its handles
    int not_initialized, invalid_value, no_memory, failed, not_supported;
};

struct standin_complex {
    float real, imaginary;
};
struct standin_double_complex {
    double real, imaginary;
};

// Kind of objects without further state.
#define STANDIN_PLAIN_OBJECT UINT64_C(0x6f626a6563740001)

// Checks the handle and launches work on its stream. Returns a status of the library.
int standin_call(const struct standin_codes *codes, const struct standin_handle *handle);
// The same with the memory that the work uses. `name` is the function's, with or without the suffix of its version.
int standin_call_on(const struct standin_codes *codes, const struct standin_handle *handle, const char *name,
                    const struct standin_operand *operands, size_t count);
// Checks the handle. Returns 0 or a status of the library.
int standin_query(const struct standin_codes *codes, const struct standin_handle *handle);
// Writes zeros as a result, as the handle's pointer mode says. result may be NULL.
int standin_clear(const struct standin_codes *codes, const struct standin_handle *handle, void *result, size_t bytes);
// Zeroes device memory in the order of the handle's stream.
int standin_zero_on(const struct standin_codes *codes, const struct standin_handle *handle, void *address, size_t bytes);
// Creates a handle of the library. own_workspace_bytes is the size of its own workspace, from the table of sizes; 0: none.
int standin_new_handle(const struct standin_codes *codes, struct standin_handle **handle, size_t own_workspace_bytes);
int standin_free_handle(const struct standin_codes *codes, struct standin_handle *handle);
// Returns the bytes of an element of a cudaDataType, 1 for an unknown type.
size_t standin_width(int data_type);

#define TYPE_OF(pointer) __typeof__(*(pointer))
#define WIDTH(data_type) standin_width(data_type)
#define PUT(pointer, value)                                                                                                                \
    if ((pointer) != NULL) *(pointer) = (value)
#define FILL(pointer, bytes)                                                                                                               \
    if ((pointer) != NULL) memset((pointer), 0, (bytes))
#define CLEAR(pointer, bytes)                                                                                                              \
    if (status == 0) status = standin_clear(&codes, handle, (pointer), (bytes))
#define ZERO(pointer, count)                                                                                                               \
    if (status == 0) status = standin_zero_on(&codes, handle, (pointer), (size_t)((count) < 0 ? 0 : (count)) * sizeof(int))

#define WORK(name)                                                                                                                         \
    int name(struct standin_handle *handle) { return standin_call_on(&codes, handle, #name, NULL, 0); }
// Operands of which only the beginning is certain: how much a call uses depends on its other parameters.
#define READS(pointer)                                                                                                                     \
    { (pointer), 1, STANDIN_READS | STANDIN_OPEN }
#define WRITES(pointer)                                                                                                                    \
    { (pointer), 1, STANDIN_WRITES | STANDIN_OPEN }
#define LIST(...)                                                                                                                          \
    { __VA_ARGS__ }
#define WORK_ON(name, parameters, ...)                                                                                                     \
    int name parameters {                                                                                                                  \
        const struct standin_operand operands[] = {__VA_ARGS__};                                                                           \
        return standin_call_on(&codes, handle, #name, operands, sizeof operands / sizeof *operands);                                       \
    }
#define CALL_ON(name, parameters, used, actions)                                                                                           \
    int name parameters {                                                                                                                  \
        const struct standin_operand operands[] = LIST used;                                                                               \
        int status = standin_call_on(&codes, handle, #name, operands, sizeof operands / sizeof *operands);                                 \
        if (status != 0) return status;                                                                                                    \
        actions;                                                                                                                           \
        return status;                                                                                                                     \
    }
#define CALL(name, parameters, actions)                                                                                                    \
    int name parameters {                                                                                                                  \
        int status = standin_call_on(&codes, handle, #name, NULL, 0);                                                                      \
        if (status != 0) return status;                                                                                                    \
        actions;                                                                                                                           \
        return status;                                                                                                                     \
    }
#define QUERY(name, parameters, actions)                                                                                                   \
    int name parameters {                                                                                                                  \
        actions;                                                                                                                           \
        return 0;                                                                                                                          \
    }
#define SET(name, number, type)                                                                                                            \
    int name(void *object, type value) {                                                                                                   \
        if (object == NULL) return codes.not_initialized;                                                                                  \
        return standin_keep(object, (number), &value, sizeof value) ? 0 : codes.no_memory;                                                 \
    }
#define GET(name, number, type)                                                                                                            \
    int name(const void *object, type *value) {                                                                                            \
        if (object == NULL) return codes.not_initialized;                                                                                  \
        if (value == NULL) return codes.invalid_value;                                                                                     \
        type const *kept = standin_kept(object, (number), NULL);                                                                           \
        if (kept != NULL) *value = *kept;                                                                                                  \
        if (kept == NULL) memset((void *)value, 0, sizeof *value);                                                                         \
        return 0;                                                                                                                          \
    }
#define NEW(name)                                                                                                                          \
    int name(void **object) {                                                                                                              \
        void *made = object == NULL ? NULL : standin_new(STANDIN_PLAIN_OBJECT, sizeof(struct standin_object));                             \
        if (made == NULL) return object == NULL ? codes.invalid_value : codes.no_memory;                                                   \
        *object = made;                                                                                                                    \
        return 0;                                                                                                                          \
    }
#define FREE(name)                                                                                                                         \
    int name(void *object) { return object == NULL || standin_destroy(object, STANDIN_PLAIN_OBJECT) ? 0 : codes.invalid_value; }
#define ABSENT(name)                                                                                                                       \
    int name(void) {                                                                                                                       \
        STANDIN_MISSING(#name);                                                                                                            \
        return codes.not_supported;                                                                                                        \
    }
#define DONE(name)                                                                                                                         \
    int name(void) { return 0; }

#endif
