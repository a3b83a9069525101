// sim_missing.h: what a program wanted of the simulated driver and the stand-ins and did not get.
#ifndef CLI_SIM_MISSING_H
#define CLI_SIM_MISSING_H

// Runs the program, and says on standard error what it and its children wanted. Its exit code, 128 + n for signal n.
int sim_missing_run(char **program);

#endif
