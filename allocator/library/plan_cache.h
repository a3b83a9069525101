// plan_cache.h: the invariant of a cache of plans (vram/workspace.h), for tests.
#ifndef VR_LIBRARY_PLAN_CACHE_H
#define VR_LIBRARY_PLAN_CACHE_H

#include "base/base.h"

struct vram_plan_cache;

// On every device: the plans that are held are in the list by last use and found by their key, each once; they are as many as the
// statistics say, and no more than may be.
bool vr_plan_cache_check(struct vram_plan_cache *cache);

#endif
