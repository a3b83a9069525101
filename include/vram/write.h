// vram/write.h: now vram/export.h; this name is kept for one release.
#ifndef VRAM_WRITE_H
#define VRAM_WRITE_H
#include "vram/export.h"
#endif
