// proto.h: the wire format of Protocol Buffers, as far as the writers here need it: varints, and fields that are varints or bytes.
// A message inside a message is built in a buffer of its own and appended as bytes.
#ifndef VR_EXPORT_PROTO_H
#define VR_EXPORT_PROTO_H

#include "base/text.h"

VR_INLINE void vr_proto_varint(struct vr_text *out, uint64_t value) {
    char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7) bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    vr_text_append(out, bytes, length);
}
// Fields are numbered from 1; 0 would begin what no reader accepts.
VR_INLINE void vr_proto_number(struct vr_text *out, unsigned field, uint64_t value) {
    assert(field != 0);
    vr_proto_varint(out, (uint64_t)field << 3);
    vr_proto_varint(out, value);
}
VR_INLINE void vr_proto_bytes(struct vr_text *out, unsigned field, const char *bytes, size_t length) {
    assert(field != 0 && bytes != NULL);
    vr_proto_varint(out, (uint64_t)field << 3 | 2);
    vr_proto_varint(out, length);
    vr_text_append(out, bytes, length);
}
VR_INLINE void vr_proto_string(struct vr_text *out, unsigned field, const char *string) {
    vr_proto_bytes(out, field, string, strlen(string));
}
// Appends the message built in *inner, which is emptied (and fails *out when it failed).
VR_INLINE void vr_proto_message(struct vr_text *out, unsigned field, struct vr_text *inner) {
    assert(inner != out); // it is emptied
    if (inner->failed) out->failed = true;
    vr_proto_bytes(out, field, vr_text_string(inner), inner->length);
    inner->length = 0;
}

#endif
