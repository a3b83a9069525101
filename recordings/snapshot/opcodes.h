// opcodes.h: the opcodes of Python's pickles up to protocol 5, and functions to load their arguments.
#ifndef VR_SNAPSHOT_OPCODES_H
#define VR_SNAPSHOT_OPCODES_H

#include "base/base.h"

// X(code, NAME, bytes of its argument). Includes refused opcodes, so that messages can name them.
// clang-format off
#define VR_OPCODES(X) \
    X('(', MARK, 0) X('.', STOP, 0) X('0', POP, 0) X('1', POP_MARK, 0) X('2', DUP, 0) X('F', FLOAT, 0) X('I', INT, 0) \
    X('J', BININT, 4) X('K', BININT1, 1) X('L', LONG, 0) X('M', BININT2, 2) X('N', NONE, 0) X('P', PERSID, 0) \
    X('Q', BINPERSID, 0) X('R', REDUCE, 0) X('S', STRING, 0) X('T', BINSTRING, 4) X('U', SHORT_BINSTRING, 1) \
    X('V', UNICODE, 0) X('X', BINUNICODE, 4) X('a', APPEND, 0) X('b', BUILD, 0) X('c', GLOBAL, 0) X('d', DICT, 0) \
    X('}', EMPTY_DICT, 0) X('e', APPENDS, 0) X('g', GET, 0) X('h', BINGET, 1) X('i', INST, 0) X('j', LONG_BINGET, 4) \
    X('l', LIST, 0) X(']', EMPTY_LIST, 0) X('o', OBJ, 0) X('p', PUT, 0) X('q', BINPUT, 1) X('r', LONG_BINPUT, 4) \
    X('s', SETITEM, 0) X('t', TUPLE, 0) X(')', EMPTY_TUPLE, 0) X('u', SETITEMS, 0) X('G', BINFLOAT, 8) \
    X('B', BINBYTES, 4) X('C', SHORT_BINBYTES, 1) X(0x80, PROTO, 1) X(0x81, NEWOBJ, 0) X(0x82, EXT1, 1) X(0x83, EXT2, 2) \
    X(0x84, EXT4, 4) X(0x85, TUPLE1, 0) X(0x86, TUPLE2, 0) X(0x87, TUPLE3, 0) X(0x88, NEWTRUE, 0) X(0x89, NEWFALSE, 0) \
    X(0x8a, LONG1, 1) X(0x8b, LONG4, 4) X(0x8c, SHORT_BINUNICODE, 1) X(0x8d, BINUNICODE8, 8) X(0x8e, BINBYTES8, 8) \
    X(0x8f, EMPTY_SET, 0) X(0x90, ADDITEMS, 0) X(0x91, FROZENSET, 0) X(0x92, NEWOBJ_EX, 0) X(0x93, STACK_GLOBAL, 0) \
    X(0x94, MEMOIZE, 0) X(0x95, FRAME, 8) X(0x96, BYTEARRAY8, 8) X(0x97, NEXT_BUFFER, 0) X(0x98, READONLY_BUFFER, 0)
// clang-format on

enum vr_opcode {
#define VR_OPCODE_ENUM(code, name, argument) OP_##name = (code),
    VR_OPCODES(VR_OPCODE_ENUM)
#undef VR_OPCODE_ENUM
};

// 1 + the bytes of the argument; 0 for a byte that is not an opcode.
extern const uint8_t vr_opcode_bytes[256];

VR_INLINE uint64_t vr_little_endian(const unsigned char *bytes, size_t count) {
    uint64_t number = 0;
    for (size_t i = count; i-- > 0;) number = number << 8 | bytes[i];
    return number;
}

// Loads in one instruction on a little-endian machine; compilers do not always recognize the byte-wise form.
VR_INLINE uint64_t vr_load_64(const unsigned char *bytes) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
#else
    return vr_little_endian(bytes, 8);
#endif
}
VR_INLINE uint32_t vr_load_32(const unsigned char *bytes) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint32_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
#else
    return (uint32_t)vr_little_endian(bytes, 4);
#endif
}

// Stores eight bytes, the lowest first.
VR_INLINE void vr_store_64(unsigned char *bytes, uint64_t number) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(bytes, &number, sizeof number);
#else
    for (unsigned i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> (8 * i));
#endif
}

// Returns the memo index of a BINGET or LONG_BINGET.
VR_INLINE uint32_t vr_get_index(const unsigned char *opcode) { return opcode[0] == OP_LONG_BINGET ? vr_load_32(opcode + 1) : opcode[1]; }
VR_INLINE bool vr_is_get(unsigned char code) { return (code & 0xfd) == OP_BINGET; }
static_assert((OP_LONG_BINGET & ~2) == OP_BINGET && (OP_LONG_BINGET & 2) != 0 && (OP_BINGET & 0xfd) == OP_BINGET, "one bit apart");

// Returns the number of a LONG1 of 1 to 7 bytes; 8 bytes must be readable at `bytes`.
VR_INLINE int64_t vr_load_long(const unsigned char *bytes, unsigned length) {
    unsigned unused = 64 - 8 * length;
    return (int64_t)(vr_load_64(bytes) << unused) >> unused;
}

#endif
