// fault.h: further faults beyond vram_driver_fault_set(): a second fault after the first, and random faults.
#ifndef VR_DRIVER_FAULT_FAULT_H
#define VR_DRIVER_FAULT_FAULT_H

#include "vram/driver.h"

// Adds a second fault: the nth call (1 = the next), of any function, after the first failed call fails with `result`. Setting the first
// fault clears it, so set that before. One thread at a time.
void vr_fault_then(struct vram_driver *driver, uint64_t nth, int32_t result);
// Makes `percent` of all calls fail from now on, each with a result that a real driver returns, drawn from `seed`; 0 percent ends it. Works
// together with the other faults. One thread at a time.
void vr_fault_random(struct vram_driver *driver, uint32_t percent, uint64_t seed);

#endif
