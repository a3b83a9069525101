// What a dictionary is, told by its keys.
#include "snapshot/schema.h"

#define BIT(word) ((uint64_t)1 << (VR_WORD_##word - VR_WORD_ADDR))

// The keys that tell, the surest first.
static const struct {
    uint64_t any_of;
    enum vr_tag kind;
} kinds[] = {
    {BIT(SEGMENTS) | BIT(DEVICE_TRACES), VR_TAG_DICT},
    {BIT(ACTION), VR_TAG_EVENT},
    {BIT(FILENAME) | BIT(LINE), VR_TAG_FRAME},
    {BIT(BLOCKS) | BIT(TOTAL_SIZE) | BIT(SEGMENT_TYPE), VR_TAG_SEGMENT},
    {BIT(STATE), VR_TAG_BLOCK},
    {BIT(REAL_SIZE), VR_TAG_TENANT},
    {BIT(STAGE), VR_TAG_ANNOTATION},
};

enum vr_tag vr_schema_classify(const uint64_t *pairs, size_t count) {
    static_assert(VR_WORD_COUNT - VR_WORD_ADDR <= 64, "a bit for every word");
    uint64_t keys = 0;
    // Both of PyTorch's writers put it first, and nothing else begins so.
    if (count != 0 && pairs[0] == VR_VALUE(VR_TAG_STRING, VR_WORD_ACTION)) return VR_TAG_EVENT;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = pairs[2 * i] - vr_value(VR_TAG_STRING, VR_WORD_ADDR);
        if (word < VR_WORD_COUNT - VR_WORD_ADDR) keys |= (uint64_t)1 << word;
    }
    for (size_t i = 0; i < VR_COUNT_OF(kinds); i++) {
        if (keys & kinds[i].any_of) return kinds[i].kind;
    }
    return VR_TAG_DICT;
}
