// Calls of cuSOLVER from the generated table.
#include "cusolver.h"

#include "cusolver_calls.def"
