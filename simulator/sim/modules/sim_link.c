// sim_link.c: the linker. What it gives is for cuModuleLoadData: the texts of PTX put together, or the one cubin or container that was
// added; several cubins are not made one. Archives and objects add nothing that a simulated device needs.
#include <stdlib.h>

#include "sim/modules/sim_modules.h"

enum { INPUT_CUBIN, INPUT_PTX, INPUT_CONTAINER, INPUT_OBJECT, INPUT_LIBRARY, INPUT_COUNT = 6 };

static struct vr_sim_link *link_of(const struct vr_sim *sim, uint64_t link) { return vr_sim_slots_find(&sim->links, link); }

vr_cu_result vr_sim_link_create(struct vr_sim *sim, unsigned count, const int *options, void **values, uint64_t *link) {
    if (link == NULL || (count != 0 && (options == NULL || values == NULL))) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    uint32_t index;
    if (result != VR_CU_SUCCESS) return result;
    if (vr_sim_slots_take(&sim->links, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    *link = vr_sim_slots_handle(&sim->links, index);
    return VR_CU_SUCCESS;
}

static vr_cu_result append_bytes(struct vr_sim_link *link, const void *bytes, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2 - link->size_bytes) return VR_CU_OUT_OF_MEMORY;
    if (VR_GROW(link, bytes, link->size_bytes + size_bytes + 2) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    memcpy(link->bytes + link->size_bytes, bytes, size_bytes);
    link->size_bytes += size_bytes;
    link->bytes[link->size_bytes] = '\0';
    return VR_CU_SUCCESS;
}

static vr_cu_result add_input(struct vr_sim_link *link, int type, const void *bytes, size_t size_bytes) {
    if (type < 0 || type >= INPUT_COUNT || bytes == NULL || size_bytes == 0) return VR_CU_INVALID_VALUE;
    if (type > INPUT_CONTAINER) return VR_CU_SUCCESS;
    if (link->complete) return VR_CU_INVALID_VALUE;
    if (type != INPUT_PTX) {
        if (link->has_code) return VR_CU_NOT_SUPPORTED;
        link->has_code = true;
        link->size_bytes = 0; // it has what the texts would have added
        return append_bytes(link, bytes, size_bytes);
    }
    if (link->has_code) return VR_CU_SUCCESS;
    const char *end = memchr(bytes, '\0', size_bytes);
    const vr_cu_result result = append_bytes(link, bytes, end == NULL ? size_bytes : (size_t)(end - (const char *)bytes));
    return result == VR_CU_SUCCESS ? append_bytes(link, "\n", 1) : result;
}

vr_cu_result vr_sim_link_add_data(struct vr_sim *sim, uint64_t link, int type, const void *bytes, uint64_t size_bytes, const char *name,
                                  unsigned count, const int *options, void **values) {
    struct vr_sim_link *found = link_of(sim, link);
    (void)name;
    if (count != 0 && (options == NULL || values == NULL)) return VR_CU_INVALID_VALUE;
    return found == NULL ? VR_CU_INVALID_HANDLE : add_input(found, type, bytes, (size_t)size_bytes);
}

vr_cu_result vr_sim_link_add_file(struct vr_sim *sim, uint64_t link, int type, const char *path, unsigned count, const int *options,
                                  void **values) {
    struct vr_sim_link *found = link_of(sim, link);
    struct vr_os_view view;
    if (path == NULL || (count != 0 && (options == NULL || values == NULL))) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (vr_os_view_open(path, &view) != VRAM_OK) return VR_CU_FILE_NOT_FOUND;
    const vr_cu_result result = add_input(found, type, view.bytes, (size_t)view.size_bytes);
    vr_os_view_close(&view);
    return result;
}

// The code is the linker's until it is destroyed.
vr_cu_result vr_sim_link_complete(struct vr_sim *sim, uint64_t link, void **code, uint64_t *size_bytes) {
    struct vr_sim_link *found = link_of(sim, link);
    if (code == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (found->size_bytes == 0) return VR_CU_INVALID_IMAGE;
    found->complete = true;
    *code = found->bytes;
    if (size_bytes != NULL) *size_bytes = found->size_bytes + !found->has_code; // a text with its end
    return VR_CU_SUCCESS;
}

static void end_link(struct vr_sim *sim, struct vr_sim_link *link) {
    free(link->bytes);
    vr_sim_slots_give(&sim->links, vr_sim_slots_index(&sim->links, link));
}

vr_cu_result vr_sim_link_destroy(struct vr_sim *sim, uint64_t link) {
    struct vr_sim_link *found = link_of(sim, link);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    end_link(sim, found);
    return VR_CU_SUCCESS;
}

void vr_sim_end_links(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->links.used; i++) {
        struct vr_sim_link *link = (struct vr_sim_link *)(void *)vr_sim_slots_item(&sim->links, i);
        if (link->slot.live) end_link(sim, link);
    }
}
