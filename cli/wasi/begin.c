// Runs before main(): sets up the folder and the random seed that other systems give to a process.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/hash.h"

// Relative paths start at the host program's folder; the host has opened `/`. Memory layout is not random here, so the secret of our hash
// tables comes from the system's random bits.
__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("PWD");
    uint64_t seed;
    if (folder != NULL) (void)chdir(folder);
    if (getentropy(&seed, sizeof seed) == 0) vr_hash_seed(seed);
}
