// A library of a wheel: it needs a runtime under the name that the wheel gives, and its symbols by version.
int cudaRuntimeGetVersion(int *version);
__attribute__((visibility("default"))) int cuInit(unsigned flags);

int cuInit(unsigned flags) {
    int version = (int)flags;
    return cudaRuntimeGetVersion(&version) != 0 || version < 0;
}
