#include "vram/vram.h"

const char *vram_version(void) { return VRAM_VERSION_STRING; }
