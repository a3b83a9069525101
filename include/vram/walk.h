// vram/walk.h: now vram/recording.h; this name is kept for one release.
#ifndef VRAM_WALK_H
#define VRAM_WALK_H
#include "vram/recording.h"
#endif
