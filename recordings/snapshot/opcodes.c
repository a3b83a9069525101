#include "snapshot/opcodes.h"

const uint8_t vr_opcode_bytes[256] = {
#define OPCODE_BYTES(code, name, argument) [(code)] = 1 + (argument),
    VR_OPCODES(OPCODE_BYTES)
#undef OPCODE_BYTES
};
