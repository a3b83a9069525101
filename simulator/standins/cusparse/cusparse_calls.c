// Calls of cuSPARSE from the generated table.
#include "cusparse.h"

#include "cusparse_calls.def"
