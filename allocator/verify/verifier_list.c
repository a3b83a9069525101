// verifier_list.c: the verifiers of the process, and the table of stacks that they share.
#include "os/once.h"
#include "verify/verify.h"

static struct vr_once list_once;
static struct vr_mutex list_mutex;
static struct vr_verify *all_verifiers;
static struct vram_stacks *all_stacks; // exists while there are verifiers; shared, because a block of one may be freed through another

static void make_list(void) { vr_mutex_init(&list_mutex); }

enum vram_status vr_verifier_enter(struct vr_verify *verify) {
    vr_once(&list_once, make_list);
    vr_mutex_lock(&list_mutex);
    const enum vram_status status = all_stacks == NULL ? vram_stacks_create(NULL, &all_stacks) : VRAM_OK;
    if (status == VRAM_OK) {
        verify->stacks = all_stacks;
        verify->next = all_verifiers;
        all_verifiers = verify;
    }
    vr_mutex_unlock(&list_mutex);
    return status;
}

void vr_verifier_leave(struct vr_verify *verify) {
    vr_mutex_lock(&list_mutex);
    struct vr_verify **link = &all_verifiers;
    while (*link != verify) link = &(*link)->next;
    *link = verify->next;
    if (all_verifiers == NULL) {
        vram_stacks_destroy(all_stacks);
        all_stacks = NULL;
    }
    vr_mutex_unlock(&list_mutex);
}

bool vr_verify_find_foreign(const struct vr_verify *verify, uint64_t address, struct vr_verified_block *found) {
    bool any = false;
    vr_mutex_lock(&list_mutex);
    for (struct vr_verify *other = all_verifiers; other != NULL && !any; other = other->next)
        any = other != verify && vr_verified_at(other, address, found) && found->state == VR_VERIFIED_LIVE;
    vr_mutex_unlock(&list_mutex);
    return any;
}
