// All calls of cuSPARSE that are answered alike.
#include "cusparse.h"

#include "cusparse_calls.def"
