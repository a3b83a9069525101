// reads.h: where a program read device memory that does not hold what a GPU would have written, for `vram sim --reads`.
//
// The counts of a program and its children are rows of one file in shared memory that the variable VRAM_SIM_READS names, a row per place
// in the program. Rows are only ever added; two processes may add the same one, so whoever reads adds up equal ones.
#ifndef VR_STANDINS_COMMON_READS_H
#define VR_STANDINS_COMMON_READS_H

#include <stdatomic.h>
#include <stdint.h>

#define VR_READS_MAGIC UINT64_C(0x3230307364616572) // "reads002"
#define VR_READS_ROWS  1024                         // places beyond are counted together

enum vr_reads_state { VR_READS_EMPTY, VR_READS_READY };

struct vr_reads_count {
    _Atomic uint64_t calls;
    _Atomic uint64_t unwritten_bytes; // that no copy and no fill wrote
    _Atomic uint64_t passed_bytes;    // written, and then given to a kernel to write
    _Atomic uint64_t not_kept_bytes;  // of a large copy from the host, with bytes=none
};

// A place: its innermost frames, a line each. The text ends with a NUL; it is written before the state is READY, then never again.
struct vr_reads_row {
    _Atomic uint32_t state;
    uint32_t unused;
    struct vr_reads_count count;
    char operation[48]; // of PyTorch, as `nonzero`; "": none is known
    char place[1952];
};

struct vr_reads_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t used; // rows begun, may exceed VR_READS_ROWS
    struct vr_reads_count elsewhere;
    struct vr_reads_row rows[VR_READS_ROWS];
};

#endif
