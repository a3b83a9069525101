// Calls of cuBLAS from the generated table.
#include "cublas.h"

#include "cublas_calls.def"
