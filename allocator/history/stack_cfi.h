// stack_cfi.h: finds the rule that leads from a frame to its caller's, for one return address, in the module's unwind tables (.eh_frame).
//
// Supports x86-64 and aarch64; elsewhere no rule is found and frame pointers are followed. A rule gives the canonical frame address (CFA:
// the caller's stack pointer after the return) and the place where the caller's frame pointer was saved. On x86-64 the return address is 8
// bytes below the CFA. On aarch64 a call leaves it in the link register, and the function saves it, usually next to the frame pointer.
#ifndef VR_HISTORY_STACK_CFI_H
#define VR_HISTORY_STACK_CFI_H

#include "base/base.h"

enum vr_cfi_kind {
    VR_CFI_NONE,
    VR_CFI_END,      // the outermost frame
    VR_CFI_CHAIN,    // no rule: the frame pointer points to the caller's, with the return address above it
    VR_CFI_SP,       // CFA = stack pointer + offset
    VR_CFI_BP,       // CFA = frame pointer + offset
    VR_CFI_DEREF_SP, // CFA = *(stack pointer + offset)
    VR_CFI_DEREF_BP, // CFA = *(frame pointer + offset): functions that align their stack
    VR_CFI_SIGNAL,   // the frame that the kernel makes for a signal handler
};
enum vr_cfi_saved {
    VR_CFI_SAME,   // the frame pointer still is the caller's
    VR_CFI_AT_CFA, // saved at CFA + saved
    VR_CFI_AT_BP,  // saved at the frame pointer + saved
};

struct vr_cfi_rule {
    enum vr_cfi_kind kind;
    enum vr_cfi_saved bp;
    int32_t offset;
    int32_t saved;
    // aarch64: the return address is at CFA + saved + 8 * `ra_words` (at `saved` itself if the frame pointer still is the caller's), or
    // still in the link register, as in leaf functions.
    int32_t ra_words;
    bool in_link;
};

// The memory that is read: .eh_frame_hdr, and up to the module's end. It must stay mapped during the call.
struct vr_cfi_tables {
    const unsigned char *header;
    size_t header_bytes;
    uint64_t start;
    uint64_t end;
};

// Returns the rule in force at `pc` (an instruction of the module). VR_CFI_CHAIN if the tables have no rule or an unsupported one.
struct vr_cfi_rule vr_cfi_find(const struct vr_cfi_tables *tables, uint64_t pc);

#endif
