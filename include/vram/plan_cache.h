// vram/plan_cache.h: now vram/workspace.h; this name is kept for one release.
#ifndef VRAM_PLAN_CACHE_H
#define VRAM_PLAN_CACHE_H
#include "vram/workspace.h"
#endif
