// sim_front.h: the simulated driver and the stand-ins in front of the libraries that a program brings.
#ifndef CLI_SIM_FRONT_H
#define CLI_SIM_FRONT_H

#include <stdbool.h>

// Sets the environment of the program to come: LD_LIBRARY_PATH, and for the dynamic linker's auditor LD_AUDIT and VRAM_SIM_FRONT
// (simulator/standins/front). hip: AMD's runtime, too. Returns CLI_OK, or the exit code after a line on standard error.
int sim_front_put(bool hip);
// A line on standard error where the program does not run on the simulator at all, because it has no dynamic linker or one that must not
// listen.
void sim_front_check(const char *program);

#endif
