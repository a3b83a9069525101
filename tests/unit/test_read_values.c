// Tests rules for read values: which are accepted, what they match, what they write.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../simulator/standins/common/read_values.h"

static void expect_wrong(const char *text, size_t line, const char *why) {
    struct vr_read_values values = {.rule_count = 77};
    struct vr_read_wrong wrong;
    assert_false(vr_read_values_parse(text, &values, &wrong));
    assert_int_equal(wrong.line, line);
    assert_string_equal(wrong.why, why);
    assert_int_equal(values.rule_count, 77); // unchanged
}

static void what_is_no_rule(void **state) {
    expect_wrong("a.py:3", 1, "'a.py:3' is not a rule; expected PLACE=VALUE");
    expect_wrong("*=1\n# fine\n=1", 3, "'' is not a place; expected FILE:LINE, FILE, FUNCTION(), aten::NAME or *");
    expect_wrong("f(=1", 1, "'f(' is not a place; expected FILE:LINE, FILE, FUNCTION(), aten::NAME or *");
    expect_wrong("()=1", 1, "'()' is not a place; expected FILE:LINE, FILE, FUNCTION(), aten::NAME or *");
    expect_wrong("a.py:=1", 1, "'a.py:' is not a place; expected FILE:LINE, FILE, FUNCTION(), aten::NAME or *");
    expect_wrong("a.py:0=1", 1, "'a.py:0' has an invalid line number");
    expect_wrong("*=", 1, "'' is not an integer; write other values with a type, such as f32:0.5");
    expect_wrong("*=0.5", 1, "'0.5' is not an integer; write other values with a type, such as f32:0.5");
    expect_wrong("*=1,,2", 1, "'' is not an integer; write other values with a type, such as f32:0.5");
    expect_wrong("*=18446744073709551616", 1, "'18446744073709551616' is not an integer; write other values with a type, such as f32:0.5");
    expect_wrong("*=i9:1", 1, "'i9:1' has an unknown type; expected i8, i16, i32, i64, f16, bf16, f32 or f64");
    expect_wrong("*=i8:256", 1, "'i8:256' is out of range for its type");
    expect_wrong("*=i16:-32769", 1, "'i16:-32769' is out of range for its type");
    expect_wrong("*=f32:", 1, "'f32:' is not a number");
    expect_wrong("*=f32:1e", 1, "'f32:1e' is not a number");
    expect_wrong("*=f64:1e999", 1, "'f64:1e999' is not a number");
    (void)state;
}

static void places(void **state) {
    struct vr_read_values values;
    struct vr_read_wrong wrong;
    assert_true(vr_read_values_parse("a=b/utils.py:395=1 # one\n utils.py = 2\nstep()=3\n\n*=4", &values, &wrong));
    assert_int_equal(values.rule_count, 4);
    const struct vr_read_rule *rule = values.rules;
    assert_true(vr_read_rule_matches(&rule[0], "", "/x/a=b/utils.py", 395));
    assert_false(vr_read_rule_matches(&rule[0], "", "/x/a=b/utils.py", 396));
    assert_false(vr_read_rule_matches(&rule[0], "", "/xa=b/utils.py", 395));
    assert_true(vr_read_rule_matches(&rule[1], "", "utils.py", 0));
    assert_false(vr_read_rule_matches(&rule[1], "", "/x/myutils.py", 0));
    assert_true(vr_read_rule_matches(&rule[2], "step", "", 0));
    assert_true(vr_read_rule_matches(&rule[2], "Loop.step", "", 0));
    assert_false(vr_read_rule_matches(&rule[2], "misstep", "", 0));
    assert_true(vr_read_rule_matches(&rule[3], "", "", 0));
    vr_read_values_release(&values);
    (void)state;
}

// Returns what the next read of the only rule gives, in this many bytes of 0xee.
static uint64_t next(struct vr_read_values *values, size_t size_bytes) {
    uint64_t bytes = UINT64_C(0xeeeeeeeeeeeeeeee);
    vr_read_value_fill(vr_read_rule_next(values, values->rules), 1000, &bytes, size_bytes);
    return bytes;
}

static void values_one_after_the_other(void **state) {
    struct vr_read_values values;
    struct vr_read_wrong wrong;
    assert_true(vr_read_values_parse("*=1,i8:-1,-2,7", &values, &wrong));
    assert_int_equal(next(&values, 1), 0xeeeeeeeeeeeeee01);
    assert_int_equal(next(&values, 2), 0xeeeeeeeeeeeeffff);
    assert_int_equal(next(&values, 8), -2);
    assert_int_equal(next(&values, 4), 0xeeeeeeee00000007);
    assert_int_equal(next(&values, 8), 7); // the last value stays in force
    vr_read_values_release(&values);
    // A value fills every element: of the named type, or of eight or four bytes.
    uint32_t many[6] = {0};
    assert_true(vr_read_values_parse("*=3", &values, &wrong));
    vr_read_value_fill(vr_read_rule_next(&values, values.rules), 1000, many, 12);
    assert_memory_equal(many, ((const uint32_t[]){3, 3, 3, 0, 0, 0}), sizeof many);
    vr_read_value_fill(vr_read_rule_next(&values, values.rules), 1000, many, 24);
    assert_memory_equal(many, ((const uint32_t[]){3, 0, 3, 0, 3, 0}), sizeof many);
    vr_read_values_release(&values);
    (void)state;
}

// Rules for PyTorch's operations, and shares of what these count.
static void operations_and_parts(void **state) {
    (void)state;
    char text[200] = "";
    static const char *const frames[] = {"at::native::nonzero_out_cuda(at::Tensor const&, at::Tensor&)",
                                         "at::_ops::nonzero::redispatch(c10::DispatchKeySet, at::Tensor const&)",
                                         "at::_ops::nonzero::call(at::Tensor const&)",
                                         "at::_ops::index_Tensor::call(at::Tensor const&)",
                                         "at::_ops::",
                                         "torch::autograd::THPVariable_getitem(_object*, _object*)"};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) vr_read_operations_add(frames[i], text, sizeof text);
    assert_string_equal(text, "nonzero index_Tensor");
    assert_true(vr_read_operations_have(text, "index", 5) && vr_read_operations_have("item _unique2", "unique", 6));
    assert_false(vr_read_operations_have(text, "non", 3) || vr_read_operations_have("item", "unique", 6));
    assert_true(vr_read_operations_count(text) && !vr_read_operations_count("_local_scalar_dense item"));
    size_t length;
    assert_memory_equal(vr_read_operations_main("_local_scalar_dense item bincount", &length), "bincount", 8);
    assert_int_equal(length, 8);
    assert_memory_equal(vr_read_operations_main("_local_scalar_dense item", &length), "item", 4);

    struct vr_read_values values;
    struct vr_read_wrong wrong;
    assert_true(vr_read_values_parse("aten::index=12.5%,7", &values, &wrong));
    assert_true(values.by_operation && vr_read_rule_is_of(&values.rules[0], text) && !vr_read_rule_is_of(&values.rules[0], "item"));
    assert_false(vr_read_rule_matches(&values.rules[0], "index", "index", 0));
    assert_true(next(&values, 4) == (UINT64_C(0xeeeeeeee00000000) | 125) && next(&values, 8) == 7);
    vr_read_values_release(&values);
    assert_true(vr_read_values_parse("Loop.step()=100%", &values, &wrong) && values.by_operation);
    assert_true(vr_read_rule_matches(&values.rules[0], "Loop.step", "", 0) && vr_read_rule_matches(&values.rules[0], "step", "", 0));
    assert_false(vr_read_rule_matches(&values.rules[0], "Other.step", "", 0));
    uint64_t all = 0;
    vr_read_value_fill(values.values, UINT64_MAX, &all, 8);
    assert_true(all == UINT64_MAX);
    vr_read_values_release(&values);
    expect_wrong("aten::nonzero=101%", 1, "'101%' is not a percentage from 0% to 100%");
    expect_wrong("*=x%", 1, "'x%' is not a percentage from 0% to 100%");
}

static void numbers_with_a_point(void **state) {
    static const struct {
        const char *text;
        uint64_t bits;
        size_t size_bytes;
    } cases[] = {
        {"*=f32:1", 0x3f800000, 4},   {"*=f32:-0.5", 0xbf000000, 4},
        {"*=f32:.1", 0x3dcccccd, 4},  {"*=f32:inf", 0x7f800000, 4},
        {"*=f16:1", 0x3c00, 2},       {"*=f16:-65504", 0xfbff, 2},
        {"*=f16:65520", 0x7c00, 2},   {"*=f16:nan", 0x7e00, 2},
        {"*=f16:0.1", 0x2e66, 2},     {"*=f16:6e-8", 1, 2},
        {"*=bf16:1", 0x3f80, 2},      {"*=bf16:0.1", 0x3dcd, 2},
        {"*=bf16:-2.5e1", 0xc1c8, 2}, {"*=f64:1e3", 0x408f400000000000, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vr_read_values values;
        struct vr_read_wrong wrong;
        uint64_t bits = 0;
        assert_true(vr_read_values_parse(cases[i].text, &values, &wrong));
        vr_read_value_fill(vr_read_rule_next(&values, values.rules), 1000, &bits, cases[i].size_bytes);
        assert_int_equal(bits, cases[i].bits);
        vr_read_values_release(&values);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_rule),
        cmocka_unit_test(places),
        cmocka_unit_test(values_one_after_the_other),
        cmocka_unit_test(numbers_with_a_point),
        cmocka_unit_test(operations_and_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
