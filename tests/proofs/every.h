// every.h: bounded exhaustive enumeration: runs every case up to a bound, and ends the program if a rule is violated.
#ifndef VR_PROOFS_EVERY_H
#define VR_PROOFS_EVERY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program if a rule is violated. `number` identifies the case.
static inline void every_require(bool holds, const char *rule, unsigned long long number) {
    if (holds) return;
    fprintf(stderr, "%s: case %llu\n", rule, number);
    abort();
}

// Returns the bound in the first argument, or the default.
static inline unsigned every_bound(int argc, char **argv, unsigned usual) { return argc > 1 ? (unsigned)atoi(argv[1]) : usual; }

// Returns the number of words of `length` letters.
static inline unsigned long long every_words(unsigned letters, unsigned length) {
    unsigned long long count = 1;
    for (unsigned i = 0; i < length; i++) count *= letters;
    return count;
}

#endif
