// Tests which memory PTX code reads and writes through a kernel's parameters.
#include "sim/modules/sim_ptx.h"
#include "sim_fixture.h"

enum { READS = VR_SIM_PTX_READS, WRITES = VR_SIM_PTX_WRITES, ESCAPES = VR_SIM_PTX_ESCAPES, KNOWN = VR_SIM_PTX_KNOWN };

static void expect(const char *code, const char *wanted) {
    uint8_t effects[VR_SIM_PTX_PARAMETERS];
    vr_sim_ptx_effects(code, strlen(code), effects);
    for (size_t i = 0; wanted[i] != '\0'; i++) {
        const uint8_t effect = wanted[i] == 'r'   ? READS | KNOWN
                               : wanted[i] == 'w' ? WRITES | KNOWN
                               : wanted[i] == 'b' ? READS | WRITES | KNOWN
                               : wanted[i] == 'e' ? ESCAPES | KNOWN
                               : wanted[i] == '-' ? KNOWN
                                                  : 0;
        assert_int_equal(effects[i], effect);
    }
}

static void loads_and_stores(void **state) {
    (void)state;
    // As nvcc and Triton write it: y[i] = x[i] * a, if i < n.
    expect("(\n .param .u64 .ptr .global .align 1 x,\n .param .u64 y, .param .f32 a, .param .u32 n\n)\n.reqntid 128\n{\n"
           ".reg .pred %p<2>; .reg .b64 %rd<9>;\n .loc 1 9 14 // x.py:9\n ld.param.u64 %rd1, [x]; // the input\n ld.param.u64 %rd2, "
           "[y+0];\n ld.param.f32 %f1, [a];\n"
           "ld.param.u32 %r9, [n];\n mov.u32 %r1, %ctaid.x;\n setp.ge.s32 %p1, %r1, %r9;\n @%p1 bra $L__BB0_2;\n"
           "cvta.to.global.u64 %rd3, %rd1;\n cvta.to.global.u64 %rd4, %rd2;\n mul.wide.s32 %rd5, %r1, 4;\n add.s64 %rd6, %rd3, %rd5;\n"
           "add.s64 %rd7, %rd4, %rd5;\n ld.global.f32 %f2, [%rd6];\n mul.f32 %f3, %f2, %f1;\n @!%p1 st.global.f32 [%rd7+4], %f3;\n"
           "$L__BB0_2: ret;\n}\n",
           "rw--");
    // As Triton writes it for memory that is read once: "::" is a part of the operation's name, not of a label.
    expect("(.param .u64 x, .param .u64 y, .param .u64 z)\n{ ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b64 %rd3, [z];\n"
           "createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0;\n"
           "@%p1 ld.global.L1::evict_first.L2::cache_hint.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ], %rd9;\n"
           "again: ld.shared::cluster.b32 %r5, [%rd2]; @%p1 st.global.L1::no_allocate.b32 [ %rd3 + 0 ], { %r1 }; ret; }",
           "r-w");
    expect("(.param .u64 x)\n{ ld.param.u64 %rd1, [x]; red.global.add.f32 [%rd1], 0f3F800000; ret; }", "w");
    expect(
        "(.param .u64 x, .param .u64 y)\n{ ld.param.u64 %rd1, [x]; ld.global.v2.u32 {%r1, %r2}, [%rd1]; st.global.u32 [%rd1], %r1; ret; }",
        "b-");
    expect("(.param .u64 x)\n{ ld.param.u64 %rd1, [x]; st.shared.u64 [%rd9], %rd1; ret; }", "0");
    expect("(.param .u64 x)\n{ ret; }", "0");
    expect("(.param .u64 x)\n{ ld.param.u64 %rd1, [x]; { .param .b64 p; st.param.b64 [p], %rd1; call f, (p); } ret; }", "e");
    // The register is set further down, in a loop.
    expect("(.param .u64 x)\n{ mov.u64 %rd2, 0; $L1: st.global.u32 [%rd2], 1; ld.param.u64 %rd1, [x]; mov.u64 %rd2, %rd1; bra $L1; }", "w");
    expect("(.param .align 8 .b8 s[24], .param .u64 y)\n{ ld.param.u64 %rd1, [s+8]; ld.param.u64 %rd2, [y]; ld.global.u32 %r1, [%rd1]; "
           "st.global.u32 [%rd2], %r1; }",
           "rw");
}

static void broken_code(void **state) {
    (void)state;
    uint8_t effects[VR_SIM_PTX_PARAMETERS];
    static const char code[] = "(.param .u64 x, .param .u64 y[)\n{ ld.param.u64 %rd1, [x]; st.global.u32 [%rd1, %rd2], { ; @ : ] } \" /* ";
    char text[sizeof code];
    for (size_t length = 0; length < sizeof code; length++) {
        memcpy(text, code, length);
        vr_sim_ptx_effects(text, length, effects);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads_and_stores), cmocka_unit_test(broken_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
