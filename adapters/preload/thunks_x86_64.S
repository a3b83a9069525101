// thunks_x86_64.S: the program's dlsym(), dlvsym(), dlopen() and dlmopen(). Each calls a filter in C and then jumps to the C library's own
// function as if the program had called it, so that RTLD_NEXT and namespaces refer to the program as the caller.

        .text

// Saves the arguments across the filter; the stack is aligned for a call.
#define KEEP                                                                                                                               \
        pushq %rdi; .cfi_adjust_cfa_offset 8; pushq %rsi; .cfi_adjust_cfa_offset 8; pushq %rdx; .cfi_adjust_cfa_offset 8
#define GIVE_BACK                                                                                                                          \
        popq %rdx; .cfi_adjust_cfa_offset -8; popq %rsi; .cfi_adjust_cfa_offset -8; popq %rdi; .cfi_adjust_cfa_offset -8

// struct { void *value; pl_function *jump; } filter(the same arguments): if jump is NULL, value is the result.
#define THUNK(name, filter)                                                                                                                \
        .globl name; .type name, @function; .balign 16;                                                                                    \
name:   .cfi_startproc;                                                                                                                    \
        endbr64;                                                                                                                           \
        KEEP;                                                                                                                              \
        call filter;                                                                                                                       \
        testq %rdx, %rdx;                                                                                                                  \
        je 1f;                                                                                                                             \
        movq %rdx, %r11;                                                                                                                   \
        .cfi_remember_state;                                                                                                               \
        GIVE_BACK;                                                                                                                         \
        jmp *%r11;                                                                                                                         \
1:      .cfi_restore_state;                                                                                                                \
        addq $24, %rsp;                                                                                                                    \
        .cfi_adjust_cfa_offset -24;                                                                                                        \
        ret;                                                                                                                               \
        .cfi_endproc;                                                                                                                      \
        .size name, .-name

        THUNK(dlsym, pl_filter_dlsym)
        THUNK(dlvsym, pl_filter_dlvsym)

// dlopen(file, flags): the filter returns the function in %rax and the flags in %rdx.
        .globl dlopen
        .type dlopen, @function
        .balign 16
dlopen: .cfi_startproc
        endbr64
        KEEP
        call pl_filter_dlopen
        movq %rax, %r11
        movq %rdx, %r10
        GIVE_BACK
        movl %r10d, %esi
        testq %r11, %r11
        je 2f
        jmp *%r11
2:      xorl %eax, %eax
        ret
        .cfi_endproc
        .size dlopen, .-dlopen

// dlmopen(namespace, file, flags): the filter returns only the function.
        .globl dlmopen
        .type dlmopen, @function
        .balign 16
dlmopen: .cfi_startproc
        endbr64
        KEEP
        call pl_filter_dlmopen
        movq %rax, %r11
        GIVE_BACK
        testq %r11, %r11
        je 3f
        jmp *%r11
3:      xorl %eax, %eax
        ret
        .cfi_endproc
        .size dlmopen, .-dlmopen

        .section .note.GNU-stack, "", @progbits
