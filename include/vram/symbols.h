// vram/symbols.h: now vram/recording.h; this name is kept for one release.
#ifndef VRAM_SYMBOLS_H
#define VRAM_SYMBOLS_H
#include "vram/recording.h"
#endif
