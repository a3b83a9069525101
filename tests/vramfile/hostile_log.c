// Writes the file of a killed program whose addresses collide in an unseeded hash table, or (`plain`) of one with as many ordinary random
// addresses: hostile_log OUT COUNT [plain].
#include <stdio.h>
#include <stdlib.h>

#include "support/random.h"
#include "vram/log.h"

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const uint64_t count = strtoull(argv[2], NULL, 10);
    struct vram_log *log;
    const struct vram_log_options options = {.replace = true};
    if (vram_log_create(argv[1], &options, &log, NULL) != VRAM_OK) return 1;
    for (uint64_t i = 0; i < 2 * count; i++) {
        const uint64_t number = i % count, address = argc > 3 ? vr_mix64(number + 1) : vr_unmix64((number + 1) << 32);
        const struct vram_log_event event = {.address = address,
                                             .size_bytes = 512,
                                             .stream = 7,
                                             .time_ns = UINT64_C(1700000000000000000) + i * 1000,
                                             .action = i < count ? VRAM_LOG_ALLOC : VRAM_LOG_FREE};
        // Half of them stay live.
        if ((i < count || number % 2 == 0) && vram_log_append(log, &event, 1) != VRAM_OK) return 1;
    }
    vram_log_abandon(log);
    return 0;
}
