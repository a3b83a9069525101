// Before main(): what a process has on other systems, and gets from the program around it here.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/hash.h"

// Relative paths are those of the folder that the program around this one is in; that has `/` opened. Nothing is laid out at random here,
// so that the secret of our hash tables is random bits of the system's.
__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("PWD");
    uint64_t seed;
    if (folder != NULL) (void)chdir(folder);
    if (getentropy(&seed, sizeof seed) == 0) vr_hash_seed(seed);
}
