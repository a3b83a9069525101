// Expressions of `vram fit --where` and `--work` (cli/fit_expression.c).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../cli/fit_expression.h"

static const struct fit_name names[] = {
    {"tp", {.number = 2}}, {"dp", {.number = 0}}, {"lr", {.number = 0.5}}, {"ckpt", {.text = "on", .length = 2}}};
#define NAMES (sizeof names / sizeof *names)

static void has_value(const char *text, double expected) {
    char wrong[FIT_EXPRESSION_WRONG] = "";
    struct fit_value value = {.text = "none"};
    if (!fit_expression(text, strlen(text), names, NAMES, &value, wrong)) fail_msg("%s: %s", text, wrong);
    assert_null(value.text);
    if (value.number != expected) fail_msg("%s is %g, not %g", text, value.number, expected);
    assert_true(fit_expression_check(text, strlen(text), names, NAMES, wrong));
}

static void is_wrong(const char *text, const char *why) {
    char wrong[FIT_EXPRESSION_WRONG] = "";
    struct fit_value value = {.number = 7};
    if (fit_expression(text, strlen(text), names, NAMES, &value, wrong)) fail_msg("%s has a value", text);
    assert_string_equal(wrong, why);
    assert_true(value.number == 7 && value.text == NULL);
}

static void test_values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"1+2*3", 7},
                {"(1+2)*3", 9},
                {"-tp", -2},
                {"--tp", 2},
                {"2-1-1", 0},
                {"8/tp/2", 2},
                {"7//2", 3},
                {"-7//2", -4},
                {"-7 % 3", 2},
                {"7%-3", -2},
                {"1/2", 0.5},
                {"lr*4", 2},
                {".5+5.", 5.5},
                {"min(3,tp,5)", 2},
                {"max(3, tp)", 3},
                {"min(tp)", 2},
                {"tp==2", 1},
                {"tp=2", 1},
                {"tp!=2", 0},
                {"tp<2", 0},
                {"tp<=2", 1},
                {"tp>1", 1},
                {"tp>=3", 0},
                {"1<tp<3", 1},
                {"1<tp<2", 0},
                {"1 == 1 == 1", 1},
                {"not tp", 0},
                {"not not tp", 1},
                {"not tp==3", 1},
                {"tp and lr", 1},
                {"tp and dp", 0},
                {"dp or lr", 1},
                {"dp or dp", 0},
                {"1 or 0 and 0", 1},
                {" tp\t* 2 ", 4},
                {"ckpt=='on'", 1},
                {"ckpt == \"off\"", 0},
                {"ckpt!='on'", 0},
                {"ckpt==1", 0},
                {"not ckpt", 0},
                {"'' or 0", 0},
                {"dp and 8/dp", 0},
                {"dp == 0 or 8/dp > 1", 1},
                {"tp*2 == 4 and tp+2 == 4", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) has_value(rows[i].text, rows[i].value);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {{"", "it ends where a value is expected"},
                {"tp*", "it ends where a value is expected"},
                {"(tp", "it ends where a value is expected"},
                {"tp)", "')' is not expected there"},
                {"tp dp", "'dp' is not expected there"},
                {"1e5", "'e5' is not expected there"},
                {"tp $ 2", "'$ 2' is not expected there"},
                {"min 3", "min and max need parentheses"},
                {"pp", "there is no 'pp': --vary gives the names"},
                {"notp", "there is no 'notp': --vary gives the names"},
                {"dp and pp", "there is no 'pp': --vary gives the names"},
                {"'on", "a quote is not closed"},
                {"8/dp", "it divides by 0"},
                {"8%dp", "it divides by 0"},
                {"tp and 8//dp", "it divides by 0"},
                {"ckpt*2", "'on' is not a number"},
                {"ckpt<2", "'on' is not a number"},
                {"tp and ckpt + 1", "'on' is not a number"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) is_wrong(rows[i].text, rows[i].why);
}

static void test_sizes(void **state) {
    (void)state;
    char deep[4000], wrong[FIT_EXPRESSION_WRONG];
    struct fit_value value;
    for (size_t i = 0; i < 2; i++) { // parentheses, then signs
        memset(deep, i == 0 ? '(' : '-', sizeof deep);
        assert_false(fit_expression(deep, sizeof deep, names, NAMES, &value, wrong));
        assert_string_equal(wrong, "it is nested too deeply");
    }
    memset(deep, '9', sizeof deep);
    assert_false(fit_expression(deep, sizeof deep, names, NAMES, &value, wrong));
    assert_string_equal(wrong, "a number is too large");
    memset(deep, 'a', sizeof deep);
    assert_false(fit_expression(deep, sizeof deep, names, NAMES, &value, wrong));
    assert_true(strlen(wrong) < 120);
}

static void test_a_check_needs_no_values(void **state) {
    (void)state;
    char wrong[FIT_EXPRESSION_WRONG];
    assert_true(fit_expression_check("8/dp", 4, names, NAMES, wrong));
    assert_true(fit_expression_check("ckpt*2", 6, names, NAMES, wrong));
    assert_false(fit_expression_check("8/pp", 4, names, NAMES, wrong));
    assert_false(fit_expression_check("8/", 2, names, NAMES, wrong));
}

static void test_texts_that_are_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        double number;
    } rows[] = {{"8", true, 8},   {"-8", true, -8},  {"0.25", true, 0.25}, {"", false, 0}, {"-", false, 0},
                {"8x", false, 0}, {"1e5", false, 0}, {"on", false, 0},     {".", false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct fit_value value = fit_value_of(rows[i].text, strlen(rows[i].text));
        assert_int_equal(value.text == NULL, rows[i].is_number);
        if (rows[i].is_number) assert_true(value.number == rows[i].number);
    }
}

static void test_names_in_an_expression(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool has;
    } rows[] = {{"tp", true},    {"2*tp", true},      {"tp2", false}, {"(tp)", true}, {"dtp", false},
                {"'tp'", false}, {"'x' == tp", true}, {"'tp", false}, {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (fit_expression_names(rows[i].text, strlen(rows[i].text), "tp") != rows[i].has) fail_msg("%s", rows[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_a_check_needs_no_values),
        cmocka_unit_test(test_texts_that_are_numbers),
        cmocka_unit_test(test_names_in_an_expression),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
