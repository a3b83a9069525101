// All calls of cuDNN that are answered alike.
#include "cudnn.h"

#include "cudnn_calls.def"
