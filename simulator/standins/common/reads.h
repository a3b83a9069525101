// reads.h: counts reads of device memory that does not contain what a GPU would have written, for `vram sim --reads`.
//
// The counts of a program and its children are rows of one shared-memory file named by VRAM_SIM_READS, one row per place in the program.
// Rows are only added. Two processes may add the same row, so readers must add up equal rows.
#ifndef VR_STANDINS_COMMON_READS_H
#define VR_STANDINS_COMMON_READS_H

#include <stdatomic.h>
#include <stdint.h>

#define VR_READS_MAGIC UINT64_C(0x3230307364616572) // "reads002"
#define VR_READS_ROWS  1024                         // further places share one count

enum vr_reads_state { VR_READS_EMPTY, VR_READS_READY };

struct vr_reads_count {
    _Atomic uint64_t calls;
    _Atomic uint64_t unwritten_bytes; // not written by any copy or fill
    _Atomic uint64_t passed_bytes;    // written, then passed to a kernel as an output
    _Atomic uint64_t not_kept_bytes;  // from a large copy from the host, with bytes=none
};

// One place: its innermost frames, one line each. NUL-terminated; written before the state becomes READY and never changed again.
struct vr_reads_row {
    _Atomic uint32_t state;
    uint32_t unused;
    struct vr_reads_count count;
    char operation[48]; // of PyTorch, such as `nonzero`; "": unknown
    char place[1952];
};

struct vr_reads_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t used; // rows taken; may exceed VR_READS_ROWS
    struct vr_reads_count elsewhere;
    struct vr_reads_row rows[VR_READS_ROWS];
};

#endif
