// calls.h: what the rows of a library's table of calls become. tools/standin_calls.py writes the tables.
//
// A row carries the parameters up to the last one that is needed: by the calling conventions of the systems that CUDA runs on (x86-64 and
// Arm, Linux) a function may ignore the arguments that follow. A file that includes a table defines `codes` first.
#ifndef VR_STANDINS_COMMON_CALLS_H
#define VR_STANDINS_COMMON_CALLS_H

#include <string.h>

#include "common.h"

// A library's handle. Its pointer mode says where results are written: 0 to the host, 1 to the device.
struct standin_handle {
    struct standin_object object;
    uint64_t stream;
    int pointer_mode;
    int device_count;      // of handles for several devices; 0 elsewhere
    void *own_workspace;   // the library's, of the device; NULL: none
    void *users_workspace; // given by the program
    size_t users_workspace_bytes;
};

// A library's statuses for what goes wrong everywhere.
struct standin_codes {
    uint64_t kind; // of its handles
    int not_initialized, invalid_value, no_memory, failed, not_supported;
};

struct standin_complex {
    float real, imaginary;
};
struct standin_double_complex {
    double real, imaginary;
};

// The kind of the objects without state of their own.
#define STANDIN_PLAIN_OBJECT UINT64_C(0x6f626a6563740001)

// The handle is one, a launch of work on its stream. Gives a status of the library.
int standin_call(const struct standin_codes *codes, const struct standin_handle *handle);
// Whether the handle is one: 0 or a status.
int standin_query(const struct standin_codes *codes, const struct standin_handle *handle);
// Results of zeros by the handle's pointer mode. result may be NULL.
int standin_clear(const struct standin_codes *codes, const struct standin_handle *handle, void *result, size_t bytes);
// Zeros in memory of the device, in the order of the handle's stream.
int standin_zero_on(const struct standin_codes *codes, const struct standin_handle *handle, void *address, size_t bytes);
// A new handle of the library with a workspace of its own from the table of sizes; no_size: none.
int standin_new_handle(const struct standin_codes *codes, struct standin_handle **handle, size_t own_workspace_bytes);
int standin_free_handle(const struct standin_codes *codes, struct standin_handle *handle);
// Bytes of an element of a cudaDataType; 1 for one that is not known.
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
    int name(struct standin_handle *handle) { return standin_call(&codes, handle); }
#define CALL(name, parameters, actions)                                                                                                    \
    int name parameters {                                                                                                                  \
        int status = standin_call(&codes, handle);                                                                                         \
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
