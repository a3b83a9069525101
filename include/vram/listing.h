// vram/listing.h: now vram/profile.h; this name is kept for one release.
#ifndef VRAM_LISTING_H
#define VRAM_LISTING_H
#include "vram/profile.h"
#endif
