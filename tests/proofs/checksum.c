// The checksum of a recording's blocks, over any bytes of any length up to 72: nothing beyond them is read, whatever the length is.
#include "model.h"

#include "history/logbytes.h"

enum { MOST = 72 };

static unsigned char bytes[MOST];

int main(void) {
    model_any_bytes(bytes, MOST);
    uint32_t sum = 0;
    for (unsigned length = 0; length <= MOST; length++) sum ^= vr_log_checksum(bytes + MOST - length, length);
    return sum != 0;
}
