// All calls of cuBLAS that are answered alike.
#include "cublas.h"

#include "cublas_calls.def"
