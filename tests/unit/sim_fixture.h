// sim_fixture.h: shared by the tests of the simulated driver.
#ifndef SIM_FIXTURE_H
#define SIM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "driver/driver.h"
#include "vram/driver.h"
#include "vram/sim.h"

#define assert_cu(call, name) assert_string_equal(vr_cu_result_name(call), vr_cu_result_name(VR_CU_##name))

// Opens a simulator with the primary context of device 0 current.
static inline struct vram_driver *open_sim(const struct vram_sim_options *options) {
    struct vram_driver *driver = NULL;
    assert_int_equal(vram_sim_create(options, &driver), VRAM_OK);
    uint64_t context;
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    return driver;
}

#endif
