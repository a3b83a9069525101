// sim_calls.h: the calls of the simulated driver, one function per row of calls.def and program_calls.def. The models' folders define them;
// sim_calls.c calls them with the lock held, counts them and charges their cost.
#ifndef VR_SIM_SIM_CALLS_H
#define VR_SIM_SIM_CALLS_H

#include "driver/driver.h"
#include "sim/sim_abi.h"

struct vr_sim;

enum vr_sim_call {
#define X(member, symbol, exported, version, parameters, arguments) VR_SIM_CALL_##member,
#include "driver/calls.def"
#include "sim/program_calls.def"
#undef X
    VR_SIM_CALL_COUNT
};

// vr_sim_<member>(sim, ...): called with the lock held.
// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result vr_sim_##member VR_WITH_SIM parameters;
#define VR_WITH_SIM(...) (struct vr_sim *sim, __VA_ARGS__)
#include "driver/calls.def"
#include "sim/program_calls.def"
#undef X
// vr_sim_call_<member>(sim, ...): called without the lock; counts the call and charges its cost.
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result vr_sim_call_##member VR_WITH_SIM parameters;
#include "sim/program_calls.def"
#undef X
#undef VR_WITH_SIM
// clang-format on

// Call table of the simulated driver.
extern const struct vr_driver_calls vr_sim_calls;

#endif
