// Checked arithmetic and rounding, for all 64-bit values: by WP. The functions below are those of src/base/base.h under contracts; nothing
// else is known of them than what the contract says.
#include "model.h"

#include "base/base.h"

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
