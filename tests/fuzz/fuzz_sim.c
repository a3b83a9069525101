// Reads any bytes as simulator options: gives a result, never a crash; accepted options make a simulator whose devices work, or are
// refused.
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "vram/driver.h"
#include "vram/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct vram_driver *driver) {
    int count = 0;
    if (vr_cu(driver, device_get_count, &count) != VR_CU_SUCCESS || count < 1 || count > VRAM_SIM_MOST_DEVICES) __builtin_trap();
    for (int device = 0; device < count; device++) {
        uint64_t context, address;
        int value = 0;
        for (int attribute = 0; attribute < 200; attribute++) (void)vr_cu(driver, device_get_attribute, &value, attribute, device);
        if (vr_cu(driver, primary_ctx_retain, &context, device) != VR_CU_SUCCESS) continue;
        if (vr_cu(driver, ctx_set_current, context) != VR_CU_SUCCESS) __builtin_trap();
        if (vr_cu(driver, mem_alloc, &address, VR_MIB + 1) == VR_CU_SUCCESS && vr_cu(driver, mem_free, address) != VR_CU_SUCCESS)
            __builtin_trap();
        (void)vr_cu(driver, primary_ctx_release, device);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size != 0) memcpy(text, data, size);
    text[size] = '\0';
    struct vram_sim_options options;
    struct vram_error error;
    struct vram_driver *driver;
    if (vram_sim_parse(text, &options, &error) == VRAM_OK) {
        options.backed = false; // files are not tested here
        options.bytes = VRAM_SIM_BYTES_NONE;
        if (vram_sim_create(&options, &driver) == VRAM_OK) {
            ask(driver);
            vram_driver_destroy(driver);
        }
    } else if (error.offset > strlen(text)) {
        __builtin_trap();
    }
    free(text);
    return 0;
}
