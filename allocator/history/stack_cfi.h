// stack_cfi.h: how to get from a frame to its caller's, for one return address, read from the module's unwind tables (.eh_frame).
//
// x86-64 and aarch64; elsewhere no rule is found and frame pointers are followed. A rule says where the canonical frame address (CFA: the
// stack pointer of the caller after the return) is and where the caller's frame pointer was saved. The return address lies 8 bytes below
// the CFA on x86-64; on aarch64, where a call leaves it in the link register, where the function saved it, mostly beside the frame pointer.
#ifndef VR_HISTORY_STACK_CFI_H
#define VR_HISTORY_STACK_CFI_H

#include "base/base.h"

enum vr_cfi_kind {
    VR_CFI_NONE,
    VR_CFI_END,      // the outermost frame
    VR_CFI_CHAIN,    // nothing is known: the frame pointer points at the caller's, and the return address lies above it
    VR_CFI_SP,       // CFA = stack pointer + offset
    VR_CFI_BP,       // CFA = frame pointer + offset
    VR_CFI_DEREF_SP, // CFA = *(stack pointer + offset)
    VR_CFI_DEREF_BP, // CFA = *(frame pointer + offset): functions that align their stack
    VR_CFI_SIGNAL,   // the frame that the kernel makes for a signal handler
};
enum vr_cfi_saved {
    VR_CFI_SAME,   // the frame pointer is the caller's still
    VR_CFI_AT_CFA, // it is at CFA + saved
    VR_CFI_AT_BP,  // it is at the frame pointer + saved
};

struct vr_cfi_rule {
    enum vr_cfi_kind kind;
    enum vr_cfi_saved bp;
    int32_t offset;
    int32_t saved;
    // aarch64. The return address: at CFA + saved + 8 * beside (`saved` is its own place where the frame pointer is the caller's still), or
    // still in the link register, as in functions that call nothing.
    int32_t beside;
    bool in_link;
};

// What is read: .eh_frame_hdr and the module's end, which nothing is read beyond. All of it must stay mapped during the call.
struct vr_cfi_tables {
    const unsigned char *header;
    size_t header_bytes;
    uint64_t start;
    uint64_t end;
};

// The rule in force at `pc` (an instruction of the module). VR_CFI_CHAIN where the tables have none or need more than is known here.
struct vr_cfi_rule vr_cfi_find(const struct vr_cfi_tables *tables, uint64_t pc);

#endif
