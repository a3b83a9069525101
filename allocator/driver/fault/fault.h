// fault.h: what a driver that fails calls can do beside vram_driver_fault_set(): a second fault after the first, and faults at random.
#ifndef VR_DRIVER_FAULT_FAULT_H
#define VR_DRIVER_FAULT_FAULT_H

#include "vram/driver.h"

// Once the fault that is set has failed its call, the nth call after it (1 = the next), of any function, fails with `result`. Ends with the
// fault that is set, so it is set after it. For one thread.
void vr_fault_then(struct vram_driver *driver, uint64_t nth, int32_t result);
// From now on `percent` of all calls fail, each with one of the results that a driver gives, drawn from `seed`; 0 percent ends it. Beside
// the other faults. For one thread.
void vr_fault_random(struct vram_driver *driver, uint32_t percent, uint64_t seed);

#endif
