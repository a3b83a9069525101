// vram/tune.h: now vram/replay.h; this name is kept for one release.
#ifndef VRAM_TUNE_H
#define VRAM_TUNE_H
#include "vram/replay.h"
#endif
