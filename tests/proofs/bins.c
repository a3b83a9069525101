// The bin of a free block, for every size there is: within the table, and larger sizes never in an earlier bin than the powers of two say.
#include "model.h"

#include "core/index.h"

static void between(uint64_t low, uint64_t high) {
    const unsigned bin = vr_bin_of(Frama_C_unsigned_long_interval(low, high));
    //@ assert in_the_table: bin < VR_BINS;
    //@ assert its_word: bin / 64 < VR_BIN_WORDS && bin / 4096 < VR_SUMMARY_WORDS;
    if (low >= 512 && high < (uint64_t)VR_EXACT_BINS * 512) {
        //@ assert exact: bin >= 1 && bin < VR_EXACT_BINS;
    }
}

int main(void) {
    between(0, 511);
    for (unsigned log = 9; log < 64; log++) between((uint64_t)1 << log, ((uint64_t)1 << log) * 2 - 1);
    return 0;
}
