// All calls of cuSOLVER that are answered alike.
#include "cusolver.h"

#include "cusolver_calls.def"
