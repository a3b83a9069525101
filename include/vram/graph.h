// vram/graph.h: now vram/pool.h; this name is kept for one release.
#ifndef VRAM_GRAPH_H
#define VRAM_GRAPH_H
#include "vram/pool.h"
#endif
