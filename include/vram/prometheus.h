// vram/prometheus.h: now vram/stats.h; this name is kept for one release.
#ifndef VRAM_PROMETHEUS_H
#define VRAM_PROMETHEUS_H
#include "vram/stats.h"
#endif
