// sim_session.h: the file by which the processes of one `vram sim` know of each other (simulator/standins/common/session.h).
#ifndef CLI_SIM_SESSION_H
#define CLI_SIM_SESSION_H

// Makes it and names it in the environment; what other sessions that are over left behind goes. Without it, NVML tells of no process.
void sim_session_put(void);

#endif
