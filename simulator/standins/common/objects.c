// Objects that programs hold by handle, and what was set on them by number.
#include <stdlib.h>
#include <string.h>

#include "common.h"

// One kept value. A program sets a handful per object, so that a list serves.
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
    head->kind = 0; // a second destruction is noticed while the memory lies as it was
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
