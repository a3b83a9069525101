// every.h: bounded exhaustive enumeration: every case up to a bound is run, and a rule that does not hold ends the program.
#ifndef VR_PROOFS_EVERY_H
#define VR_PROOFS_EVERY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program where a rule does not hold. `number` says which case it was.
static inline void every_require(bool holds, const char *rule, unsigned long long number) {
    if (holds) return;
    fprintf(stderr, "%s: case %llu\n", rule, number);
    abort();
}

// The bound that the first argument gives, or the usual one.
static inline unsigned every_bound(int argc, char **argv, unsigned usual) { return argc > 1 ? (unsigned)atoi(argv[1]) : usual; }

// The number of words of `length` letters.
static inline unsigned long long every_words(unsigned letters, unsigned length) {
    unsigned long long count = 1;
    for (unsigned i = 0; i < length; i++) count *= letters;
    return count;
}

#endif
