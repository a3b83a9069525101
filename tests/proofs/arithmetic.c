// Arithmetic for all 64-bit values. Proved by WP: checked sums and products, and rounding; each function below is one of
// allocator/base/base.h under a contract. Proved by Eva: the bin of a free block of any size is within the tables.
#include "model.h"

#include "base/base.h"
#define __int128 long // not analysed
#include "core/index.c"

/*@ requires \valid(result);
    assigns *result;
    ensures fits: \result == 1 <==> a + b <= UINT64_MAX;
    ensures sum: \result == 1 ==> *result == a + b;
    ensures untouched: \result == 0 ==> *result == \old(*result); */
bool proved_add(uint64_t a, uint64_t b, uint64_t *result) { return vr_add_u64(a, b, result); }

/*@ requires \valid(result);
    assigns *result;
    ensures fits: \result == 1 <==> a * b <= UINT64_MAX;
    ensures product: \result == 1 ==> *result == a * b;
    ensures untouched: \result == 0 ==> *result == \old(*result); */
bool proved_mul(uint64_t a, uint64_t b, uint64_t *result) { return vr_mul_u64(a, b, result); }

/*@ requires unit != 0 && value + unit <= UINT64_MAX;
    assigns \nothing;
    ensures not_less: \result >= value;
    ensures nearest: \result < value + unit;
    ensures multiple: \result % unit == 0; */
uint64_t proved_round_up(uint64_t value, uint64_t unit) { return vr_round_up(value, unit); }

/*@ requires unit != 0;
    assigns \nothing;
    ensures not_more: \result <= value;
    ensures nearest: value - \result < unit;
    ensures multiple: \result % unit == 0; */
uint64_t proved_round_down(uint64_t value, uint64_t unit) { return vr_round_down(value, unit); }

// --- bins -------------------------------------------------------------------------------------------------------------------------------

static void between(uint64_t low, uint64_t high) {
    const unsigned bin = bin_of(Frama_C_unsigned_long_interval(low, high));
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
