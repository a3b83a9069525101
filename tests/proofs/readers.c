// Proves by Eva that readers of foreign bytes, for any bytes up to a bound, read nothing beyond them, and that a cursor stays inside.
#include "model.h"

#include "history/logbytes.h"

enum { VARINT_MOST = 12, MOST = 72 };

static unsigned char bytes[MOST], first;

static void read_one(unsigned length) {
    struct vr_cursor cursor = {.next = bytes + MOST - length, .end = bytes + MOST};
    const uint64_t value = vr_cursor_varint(&cursor);
    //@ assert within: \base_addr(cursor.next) == \base_addr(&bytes[0]) && cursor.next <= cursor.end;
    first = (unsigned char)value;
}

static void take_some(unsigned length) {
    struct vr_cursor cursor = {.next = bytes + MOST - length, .end = bytes + MOST};
    const unsigned char *taken = vr_cursor_take(&cursor, model_any_u64());
    //@ assert within: cursor.next <= cursor.end;
    if (taken != NULL && cursor.next != taken) first = taken[0];
}

int main_varints(void) {
    model_any_bytes(bytes, MOST);
    for (unsigned length = 0; length <= VARINT_MOST; length++) {
        read_one(length);
        take_some(length);
    }
    return 0;
}

int main_checksums(void) {
    model_any_bytes(bytes, MOST);
    uint32_t sum = 0;
    for (unsigned length = 0; length <= MOST; length++) sum ^= vr_log_checksum(bytes + MOST - length, length);
    return sum != 0;
}
