// vram/explain.h: now vram/oom.h; this name is kept for one release.
#ifndef VRAM_EXPLAIN_H
#define VRAM_EXPLAIN_H
#include "vram/oom.h"
#endif
