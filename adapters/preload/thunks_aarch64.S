// thunks_aarch64.S: the program's dlsym(), dlvsym(), dlopen() and dlmopen(), as in thunks_x86_64.S. Each calls a filter in C and then jumps
// to the C library's own function, with the program's return address in the link register.

        .text

// Saves the arguments and the return address across the filter. `hint #34` is `bti c`, because the functions are also called by pointers.
#define BEGIN(name)                                                                                                                        \
        .globl name; .type name, %function; .balign 16;                                                                                    \
name:   .cfi_startproc;                                                                                                                    \
        hint #34;                                                                                                                          \
        stp x29, x30, [sp, #-48]!;                                                                                                         \
        .cfi_def_cfa_offset 48; .cfi_offset 29, -48; .cfi_offset 30, -40;                                                                  \
        mov x29, sp;                                                                                                                       \
        stp x0, x1, [sp, #16];                                                                                                             \
        str x2, [sp, #32]
#define ARGUMENTS                                                                                                                          \
        ldp x0, x1, [sp, #16]; ldr x2, [sp, #32]
#define LEAVE                                                                                                                              \
        ldp x29, x30, [sp], #48;                                                                                                           \
        .cfi_restore 29; .cfi_restore 30; .cfi_def_cfa_offset 0
#define END(name)                                                                                                                          \
        .cfi_endproc;                                                                                                                      \
        .size name, .-name

// struct { void *value; pl_function *jump; } filter(the same arguments), in x0 and x1: if jump is NULL, value is the result.
#define THUNK(name, filter)                                                                                                                \
        BEGIN(name);                                                                                                                       \
        bl filter;                                                                                                                         \
        cbz x1, 1f;                                                                                                                        \
        mov x16, x1;                                                                                                                       \
        ARGUMENTS;                                                                                                                         \
        .cfi_remember_state;                                                                                                               \
        LEAVE;                                                                                                                             \
        br x16;                                                                                                                            \
1:      .cfi_restore_state;                                                                                                                \
        LEAVE;                                                                                                                             \
        ret;                                                                                                                               \
        END(name)

        THUNK(dlsym, pl_filter_dlsym)
        THUNK(dlvsym, pl_filter_dlvsym)

// dlopen(file, flags): the filter returns the function in x0 and the flags in x1.
        BEGIN(dlopen)
        bl pl_filter_dlopen
        mov x16, x0
        mov x17, x1
        ARGUMENTS
        mov w1, w17
        LEAVE
        cbz x16, 2f
        br x16
2:      mov x0, #0
        ret
        END(dlopen)

// dlmopen(namespace, file, flags): the filter returns only the function.
        BEGIN(dlmopen)
        bl pl_filter_dlmopen
        mov x16, x0
        ARGUMENTS
        LEAVE
        cbz x16, 3f
        br x16
3:      mov x0, #0
        ret
        END(dlmopen)

        .section .note.GNU-stack, "", %progbits
