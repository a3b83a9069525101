// vram/output.h: now vram/status.h; this name is kept for one release.
#ifndef VRAM_OUTPUT_H
#define VRAM_OUTPUT_H
#include "vram/status.h"
#endif
