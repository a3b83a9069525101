// plan_cache.h: checks the invariant of a plan cache (vram/workspace.h), for tests.
#ifndef VR_LIBRARY_PLAN_CACHE_H
#define VR_LIBRARY_PLAN_CACHE_H

#include "base/base.h"

struct vram_plan_cache;

// Returns whether, on every device, each held plan is in the list by last use and is found by its key, once each; and whether their number
// matches the statistics and does not exceed the maximum.
bool vr_plan_cache_check(struct vram_plan_cache *cache);

#endif
