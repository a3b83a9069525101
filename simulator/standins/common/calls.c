// Library handles and the calls that take one, objects that programs hold by handle, and the memory that the real libraries use.
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "common.h"
#include "missing.h"

// ---- Library handles and the calls that take one.

int standin_query(const struct standin_codes *codes, const struct standin_handle *handle) {
    return standin_is(handle, codes->kind) ? 0 : codes->not_initialized;
}

int standin_call(const struct standin_codes *codes, const struct standin_handle *handle) {
    return standin_call_on(codes, handle, "", NULL, 0);
}

// Programs write cublasSgemm where the header says cublasSgemm_v2.
static void put_name_as_written(char written[64], const char *name) {
    const char *version = strstr(name, "_v2");
    const size_t length = version == NULL ? strlen(name) : (size_t)(version - name);
    memcpy(written, name, length < 63 ? length : 63);
    written[length < 63 ? length : 63] = '\0';
}

int standin_call_on(const struct standin_codes *codes, const struct standin_handle *handle, const char *name,
                    const struct standin_operand *operands, size_t count) {
    char written[64];
    const int status = standin_query(codes, handle);
    if (status != 0) return status;
    put_name_as_written(written, name);
    return standin_work_on(handle->stream, written, operands, count) == 0 ? 0 : codes->failed;
}

int standin_clear(const struct standin_codes *codes, const struct standin_handle *handle, void *result, size_t bytes) {
    if (result == NULL) return 0;
    if (handle->pointer_mode != 0) return standin_zero_on(codes, handle, result, bytes);
    if (standin_driver()->stream_synchronize(handle->stream) != 0) return codes->failed;
    memset(result, 0, bytes);
    return 0;
}

int standin_zero_on(const struct standin_codes *codes, const struct standin_handle *handle, void *address, size_t bytes) {
    return standin_zero(address, bytes, handle->stream) == 0 ? 0 : codes->failed;
}

int standin_new_handle(const struct standin_codes *codes, struct standin_handle **handle, size_t own_workspace_bytes) {
    if (handle == NULL) return codes->invalid_value;
    if (standin_begin() == NULL) return codes->not_initialized;
    struct standin_handle *made = standin_new(codes->kind, sizeof *made);
    if (made == NULL) return codes->no_memory;
    made->own_workspace = standin_take(own_workspace_bytes);
    if (own_workspace_bytes != 0 && made->own_workspace == NULL) {
        (void)standin_destroy(made, codes->kind);
        return codes->no_memory;
    }
    *handle = made;
    return 0;
}

int standin_free_handle(const struct standin_codes *codes, struct standin_handle *handle) {
    if (handle == NULL) return codes->not_initialized;
    void *workspace = standin_is(handle, codes->kind) ? handle->own_workspace : NULL;
    if (!standin_destroy(handle, codes->kind)) return codes->not_initialized;
    standin_give(workspace);
    return 0;
}

// Returns the bytes of an element. The table is indexed by cudaDataType: real and complex variants of each base type, in pairs.
size_t standin_width(int data_type) {
    // 32F 64F 16F 8I, C32F C64F C16F C8I, 8U C8U 32I C32I 32U C32U 16BF C16BF, 4I C4I 4U C4U, 16I C16I 16U C16U, 64I C64I 64U C64U, 8-bit
    // floats
    static const unsigned char widths[] = {4, 8, 2, 1, 8, 16, 4, 2, 1,  2, 4,  8, 4, 8, 2, 4, 1,
                                           1, 1, 1, 2, 4, 2,  4, 8, 16, 8, 16, 1, 1, 1, 1, 1, 1};
    return data_type >= 0 && (size_t)data_type < sizeof widths ? widths[data_type] : 1;
}

int standin_version_part(int part) {
    static const int divisors[] = {10000, 100, 1};
    if (part < 0 || part > 2) return -1;
    return part == 0 ? standin_library_version / divisors[0] : standin_library_version / divisors[part] % 100;
}

// ---- Objects that programs hold by handle, and the values set on them.

// A stored value. A program sets only a few per object, so a list is enough.
struct standin_kept {
    struct standin_kept *next;
    int64_t number;
    size_t bytes;
    max_align_t value[];
};

void *standin_new(uint64_t kind, size_t bytes) {
    struct standin_object *object = calloc(1, bytes);
    if (object != NULL) object->kind = kind;
    return object;
}

bool standin_is(const void *object, uint64_t kind) {
    const struct standin_object *head = object;
    return head != NULL && (uintptr_t)head % sizeof(uint64_t) == 0 && head->kind == kind;
}

bool standin_destroy(void *object, uint64_t kind) {
    struct standin_object *head = object;
    if (!standin_is(object, kind)) return false;
    while (head->kept != NULL) {
        struct standin_kept *next = head->kept->next;
        free(head->kept);
        head->kept = next;
    }
    head->kind = 0; // detects a second destruction as long as the memory is not reused
    free(head);
    return true;
}

static struct standin_kept **place_of_object(struct standin_object *object, int64_t number) {
    struct standin_kept **place = &object->kept;
    while (*place != NULL && (*place)->number != number) place = &(*place)->next;
    return place;
}

bool standin_keep(void *object, int64_t number, const void *value, size_t bytes) {
    struct standin_kept **place = place_of_object(object, number);
    struct standin_kept *made = malloc(sizeof *made + bytes);
    if (made == NULL) return false;
    made->next = NULL;
    made->number = number;
    made->bytes = bytes;
    if (bytes != 0) memcpy(made->value, value, bytes);
    if (*place != NULL) {
        made->next = (*place)->next;
        free(*place);
    }
    *place = made;
    return true;
}

const void *standin_kept(const void *object, int64_t number, size_t *bytes) {
    const struct standin_object *head = object;
    const struct standin_kept *kept = head->kept;
    while (kept != NULL && kept->number != number) kept = kept->next;
    if (kept != NULL && bytes != NULL) *bytes = kept->bytes;
    return kept == NULL ? NULL : kept->value;
}

// ---- Memory sizes of the real libraries, by version and device.

static const char *const names[] = {
#define X(name) [STANDIN_##name] = #name,
#include "size_names.def"
#undef X
};

static const struct standin_size_row rows[] = {
#define X(what, from_version, below_version, from_capability, below_capability, bytes, source)                                             \
    {STANDIN_##what, from_version, below_version, from_capability, below_capability, bytes, source},
#include "sizes.def"
#undef X
};

static bool is_between(int value, int from, int below) { return value >= from && (below == 0 || value < below); }

static const struct standin_size_row *find_size_row(enum standin_size what, int version) {
    const int capability = standin_capability();
    const struct standin_size_row *row = rows, *last = rows;
    for (; row < rows + sizeof rows / sizeof *rows; row++) {
        if (row->what != what) continue;
        last = row;
        if (is_between(version, row->from_version, row->below_version) &&
            is_between(capability, row->from_capability, row->below_capability))
            return row;
    }
    return last;
}

void standin_size_stake(enum standin_size what, uint64_t bytes) { vr_missing_stake(names[what], bytes); }

const struct standin_size_row *standin_size(enum standin_size what, int version) {
    const struct standin_size_row *row = find_size_row(what, version);
    if (row->source == NULL) vr_missing_count(VR_MISSING_SIZE, names[what], NULL);
    return row;
}
