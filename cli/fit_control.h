// fit_control.h: the file in shared memory by which the processes of a program that `vram fit` runs say how far they are, and wait for each
// other at the end of a step. The other side is adapters/fit/vram_fit.py.
#ifndef CLI_FIT_CONTROL_H
#define CLI_FIT_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#define FIT_CONTROL_MAGIC UINT64_C(0x316c72746e6f6366) // "fcontrl1"
#define FIT_CONTROL_ROWS  1024

// One rank; it alone writes to it.
struct fit_control_row {
    _Atomic uint64_t steps; // ended
    _Atomic uint64_t process;
    _Atomic uint64_t reserved_bytes; // the most so far, of a device
    _Atomic uint64_t ready;          // the step after which its steps are known to repeat; 0: not yet
    uint64_t unused[4];
};

struct fit_control {
    _Atomic uint64_t magic;
    _Atomic uint64_t alone;    // not 0: ranks wait no more for each other
    _Atomic uint64_t finished; // not 0: a process has seen enough; the command ends all
    _Atomic uint64_t ending;   // not 0: the command ends them; each writes its recording
    uint64_t unused[4];
    struct fit_control_row rows[FIT_CONTROL_ROWS];
};

#endif
