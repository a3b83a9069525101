// vram/follow.h: now vram/log.h; this name is kept for one release.
#ifndef VRAM_FOLLOW_H
#define VRAM_FOLLOW_H
#include "vram/log.h"
#endif
