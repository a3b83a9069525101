// verifiers.c: creates and destroys a verifier.
#include "verify/verify.h"

enum vram_status vr_verify_open(struct vram_allocator *allocator) {
    const struct vr_options *options = &allocator->options;
    if (!options->verify) return VRAM_OK;
    struct vr_verify *verify = calloc(1, sizeof *verify);
    if (verify == NULL) return VRAM_NO_HOST_MEMORY;
    vr_mutex_init(&verify->mutex);
    const enum vram_status status = vr_verifier_enter(verify);
    if (status != VRAM_OK) {
        vr_mutex_destroy(&verify->mutex);
        free(verify);
        return status;
    }
    verify->seam = (struct vr_verifier){vr_verify_handed_out, vr_verify_free, vr_verify_refused, vr_verify_poison, vr_quarantine_release};
    verify->allocator = allocator;
    verify->halts = options->verify_halt;
    verify->reports_leaks = options->verify_leaks;
    verify->quarantine_limit = options->verify_quarantine_bytes;
    allocator->verifier = &verify->seam;
    allocator->front_redzone = VR_REDZONE_BYTES;
    return VRAM_OK;
}

static int by_stack(const void *a, const void *b) {
    const struct vr_verified_block *x = a, *y = b;
    return x->allocated != y->allocated ? VR_ORDER(x->allocated, y->allocated) : VR_ORDER(x->address, y->address);
}

// Reports leaks, one report for each stack that allocated leaked blocks.
static void report_leaks(struct vr_verify *verify) {
    struct vr_verified_block *blocks = NULL;
    size_t count = 0;
    if (vr_verified_live(verify, &blocks, &count) != VRAM_OK) return;
    qsort(blocks, count, sizeof *blocks, by_stack);
    for (size_t from = 0, end; from < count; from = end) {
        struct vram_fault fault = {.kind = VRAM_FAULT_LEAK, .address = blocks[from].address};
        for (end = from; end < count && blocks[end].allocated == blocks[from].allocated; end++) {
            fault.block_bytes += blocks[end].requested;
            fault.blocks++;
        }
        vr_fault_report(verify, &fault, &blocks[from]);
    }
    free(blocks);
}

void vr_verify_end(struct vr_verify *verify) {
    if (verify == NULL) return;
    vr_verify_all(verify);
    if (verify->reports_leaks) report_leaks(verify);
}

void vr_verify_release(struct vr_verify *verify) {
    if (verify == NULL) return;
    vr_verifier_leave(verify);
    for (size_t i = 0; i < VRAM_MAX_DEVICES; i++) free(verify->devices[i].bounce);
    vr_verified_release(verify);
    vr_mutex_destroy(&verify->mutex);
    free(verify);
}
