#include "analyze/roles.h"
#include "base/base.h"
#include "vram/roles.h"

const char *vram_role_word(size_t role) {
    static const char *const words[VRAM_ROLE_COUNT] = {
#define VRAM_ROLE(constant, word, title) word,
        VRAM_ROLES(VRAM_ROLE)
#undef VRAM_ROLE
    };
    return role < VRAM_ROLE_COUNT ? words[role] : NULL;
}

const char *vram_role_title(size_t role) {
    static const char *const titles[VRAM_ROLE_COUNT] = {
#define VRAM_ROLE(constant, word, title) title,
        VRAM_ROLES(VRAM_ROLE)
#undef VRAM_ROLE
    };
    return role < VRAM_ROLE_COUNT ? titles[role] : NULL;
}

const char *vr_role_pass_word(enum vr_role_pass pass) {
    static const char *const words[VR_PASS_COUNT] = {
        [VR_PASS_IDLE] = "",           [VR_PASS_LOAD] = "load",         [VR_PASS_INPUT] = "input",
        [VR_PASS_FORWARD] = "forward", [VR_PASS_BACKWARD] = "backward", [VR_PASS_OPTIMIZER] = "optimizer"};
    return words[pass];
}
