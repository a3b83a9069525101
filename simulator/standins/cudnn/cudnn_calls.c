// Calls of cuDNN from the generated table.
#include "cudnn.h"

#include "cudnn_calls.def"
