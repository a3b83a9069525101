#include "history/thread_text.h"

#include <stdatomic.h>
#include <stdio.h>

#include "model/builder.h"
#include "os/os.h"
#include "vram/history.h"

_Thread_local struct vr_thread_text vr_thread_text;

// A lock without initialization. Held while a table is searched.
static _Atomic uint32_t held;
static struct vr_builder texts; // its strings; created with the first one
static bool made;

static void lock_texts(void) {
    uint32_t expected = 0;
    while (!atomic_compare_exchange_weak_explicit(&held, &expected, 1, memory_order_acquire, memory_order_relaxed)) {
        expected = 0;
        vr_os_yield();
    }
}
static void unlock_texts(void) { atomic_store_explicit(&held, 0, memory_order_release); }

static enum vram_status word_locked(const char *text, size_t length, uint32_t *word) {
    if (!made) {
        VR_TRY(vr_builder_init(&texts, VR_THREAD_TEXT_MOST_BYTES));
        made = true;
    }
    if (vr_builder_find_string(&texts, text, length, word)) return VRAM_OK;
    return texts.strings.count >= VR_THREAD_TEXT_MOST ? VRAM_LIMIT : vr_builder_string(&texts, text, length, word);
}

enum vram_status vr_thread_text_number(const char *text, uint32_t *word) {
    const size_t length = text == NULL ? 0 : strlen(text);
    if (length == 0) {
        *word = 0;
        return VRAM_OK;
    }
    if (!vr_utf8_valid(text, length)) return VRAM_INVALID_ARGUMENT;
    lock_texts();
    const enum vram_status status = word_locked(text, length, word);
    unlock_texts();
    return status;
}

void vr_thread_text_append(uint32_t word, struct vr_text *text) {
    if (word == 0) return;
    lock_texts();
    const struct vr_strings *strings = &texts.strings;
    vr_text_append(text, strings->bytes + strings->offset[word], (size_t)(strings->offset[word + 1] - strings->offset[word] - 1));
    unlock_texts();
}

// --- a thread's texts ----------------------------------------------------------------------------------------------------------------

enum vram_status vram_set_metadata(const char *text) { return vr_thread_text_number(text, &vr_thread_text.origin.metadata); }

static size_t copy_word(uint32_t word, char *text, size_t capacity) {
    struct vr_text copy = {0};
    vr_thread_text_append(word, &copy);
    const int length = snprintf(text, capacity, "%s", vr_text_string(&copy));
    vr_text_release(&copy);
    return (size_t)length;
}

size_t vram_metadata(char *text, size_t capacity) { return copy_word(vr_thread_text.origin.metadata, text, capacity); }
size_t vram_tag(char *text, size_t capacity) { return copy_word(vr_thread_text.origin.tag, text, capacity); }
size_t vram_compile_context(char *text, size_t capacity) { return copy_word(vr_thread_text.origin.context, text, capacity); }

static enum vram_status push_text(struct vr_thread_text_stack *stack, const char *text, uint32_t *innermost) {
    if (stack->depth == VR_THREAD_TEXT_DEPTH) return VRAM_LIMIT;
    VR_TRY(vr_thread_text_number(text, &stack->word[stack->depth]));
    *innermost = stack->word[stack->depth++];
    return VRAM_OK;
}

static void pop_text(struct vr_thread_text_stack *stack, uint32_t *innermost) {
    if (stack->depth != 0) stack->depth--;
    *innermost = stack->depth == 0 ? 0 : stack->word[stack->depth - 1];
}

enum vram_status vram_push_tag(const char *tag) { return push_text(&vr_thread_text.tags, tag, &vr_thread_text.origin.tag); }
void vram_pop_tag(void) { pop_text(&vr_thread_text.tags, &vr_thread_text.origin.tag); }
enum vram_status vram_push_context(const char *name) { return push_text(&vr_thread_text.contexts, name, &vr_thread_text.origin.context); }
void vram_pop_context(void) { pop_text(&vr_thread_text.contexts, &vr_thread_text.origin.context); }
