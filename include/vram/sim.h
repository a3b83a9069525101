// vram/sim.h: now vram/driver.h; this name is kept for one release.
#ifndef VRAM_SIM_H
#define VRAM_SIM_H
#include "vram/driver.h"
#endif
