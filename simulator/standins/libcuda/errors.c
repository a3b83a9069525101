// errors.c: names and texts of all results, from the tables of facts. The texts are the runtime's, whose errors have the driver's numbers.
#include "libcuda.h"

static const struct {
    const char *kind, *name;
    int value;
} values[] = {
#define V(kind, name, value, first, last) {#kind, #name, value},
#include "../facts/cuda_values.def"
#undef V
};

static const struct {
    int result;
    const char *text;
} texts[] = {
#define T(error, text) {error, text},
#include "../facts/cudart_texts.def"
#undef T
};

static const char *result_name(vr_cu_result result) {
    for (size_t i = 0; i < VR_COUNT_OF(values); i++)
        if (values[i].value == (int)result && strcmp(values[i].kind, "CUresult") == 0) return values[i].name;
    return NULL;
}

vr_cu_result cuGetErrorName(vr_cu_result result, const char **name) {
    if (name == NULL) return VR_CU_INVALID_VALUE;
    *name = result_name(result);
    return *name == NULL ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS;
}

// A result that the runtime has no words for is told by its name.
vr_cu_result cuGetErrorString(vr_cu_result result, const char **text) {
    if (text == NULL) return VR_CU_INVALID_VALUE;
    *text = result_name(result);
    if (*text == NULL) return VR_CU_INVALID_VALUE;
    for (size_t i = 0; i < VR_COUNT_OF(texts); i++)
        if (texts[i].result == (int)result) *text = texts[i].text;
    return VR_CU_SUCCESS;
}
