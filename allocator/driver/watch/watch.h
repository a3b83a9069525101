// watch.h: what the files of the watching driver share. docs/guides/network.md.
#ifndef VR_DRIVER_WATCH_WATCH_H
#define VR_DRIVER_WATCH_WATCH_H

#include "driver/driver.h"
#include "os/os.h"
#include "vram/network.h"

struct vr_watching {
    struct vram_driver head;
    struct vram_driver *inner; // borrowed
    // `order` is held from before a call of the driver until everybody was told of it: mappings, calls and observers are in one order.
    // `table` guards the mappings, for questions from inside of observers. `order` comes first.
    struct vr_mutex order, table;
    struct vram_mapping *mappings; // by ascending address
    size_t mapping_count, mappings_capacity;
    struct vram_mapping_observer *observers;
    size_t observer_count, observers_capacity;
    uint64_t generation;
    bool no_fabric[VRAM_MAX_DEVICES]; // the device refused handles of the fabric (guarded by order)
};

// NULL for another driver.
struct vr_watching *vr_watch_of(struct vram_driver *driver);
// The first mapping whose end is above the address. Under `table`.
size_t vr_watch_first(const struct vr_watching *watch, uint64_t address);
// The device's primary context is current from here on; `before` for vr_watch_leave(). The driver's answer.
vr_cu_result vr_watch_enter(const struct vr_watching *watch, uint32_t device, uint64_t *before);
void vr_watch_leave(const struct vr_watching *watch, uint32_t device, uint64_t before);
bool vr_watch_has(const struct vr_watching *watch, uint32_t device, int attribute);

#endif
