// flame_script.h: what makes a flame graph's picture zoom and search where a browser runs it.
#ifndef VR_PRESENT_FLAME_SCRIPT_H
#define VR_PRESENT_FLAME_SCRIPT_H

extern const char vr_flame_script[];

#endif
