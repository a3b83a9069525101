// Segments by the functions of a private pool's user.
#include "core/source/source_ops.h"

static vr_cu_result take_from_user(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    const struct vram_pool_options *own = &shard->owner->options;
    *address = own->allocate(size, shard->device->ordinal, shard->stream, own->user);
    return *address == 0 ? VR_CU_OUT_OF_MEMORY : VR_CU_SUCCESS;
}

static enum vram_status give_to_user(struct vr_shard *shard, uint64_t address, uint64_t size) {
    const struct vram_pool_options *own = &shard->owner->options;
    own->deallocate(address, size, shard->device->ordinal, shard->stream, own->user);
    return VRAM_OK;
}

const struct vr_source_ops vr_source_user_functions = {
    .name = "functions of the user",
    .sharing = VR_SHARING_NONE,
    VR_WHOLE_SEGMENTS,
    .take = take_from_user,
    .give = give_to_user,
};
