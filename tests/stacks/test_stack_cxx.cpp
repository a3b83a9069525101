// Stacks of C++ code: templates, lambdas, inlined functions, constructors, exceptions being thrown, frames of the C++ library. Compared with
// backtrace() and addr2line for the same addresses.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "vram/stack.h"

namespace {

vram_stacks *stacks;
int failures;

void expect(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "failed: %s\n", what);
    failures++;
}

std::vector<vram_frame> frames_of(uint32_t id) {
    std::vector<vram_frame> frames(512);
    frames.resize(vram_stack_frames(stacks, id, frames.data(), frames.size()));
    return frames;
}

// Returns addr2line's output for return addresses in the program: "function" lines with inlined functions, innermost first.
std::vector<std::string> ask_addr2line(void *const *addresses, int count) {
    std::vector<std::string> names;
    char program[4096] = "";
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return names;
    for (int i = 0; i < count; i++) {
        char **text = backtrace_symbols(&addresses[i], 1);
        const char *open = std::strchr(text[0], '('), *plus = open == nullptr ? nullptr : std::strstr(open, "+0x");
        if (plus != nullptr && open + 1 == plus && std::strncmp(text[0], program, std::strlen(program)) == 0) {
            const unsigned long offset = std::strtoul(plus + 1, nullptr, 16);
            const std::string command = "addr2line -Cfi -e " + std::string(program) + " " + std::to_string(0) + "x" + [&] {
                char hex[32];
                std::snprintf(hex, sizeof hex, "%lx", offset - 1);
                return std::string(hex);
            }();
            std::vector<std::string> group;
            FILE *pipe = popen(command.c_str(), "r");
            char line[4096];
            for (int n = 0; pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr; n++) {
                line[std::strcspn(line, "\n")] = '\0';
                if (n % 2 == 0) group.push_back(line);
            }
            if (pipe != nullptr) pclose(pipe);
            // For inlined functions, it names the innermost by the symbol of the outermost.
            names.insert(names.end(), group.begin() + (group.size() > 1 ? 1 : 0), group.end());
        }
        std::free(text);
    }
    return names;
}

// Returns the last part of a name, without arguments and template arguments: addr2line writes inlined functions without their scopes, and others
// differently. "" for lambdas, which have no name.
std::string bare(std::string name) {
    if (name.find("lambda") != std::string::npos || name.find("$_") != std::string::npos || name.find("operator") != std::string::npos) return "";
    std::string flat;
    int nesting = 0;
    for (const char c : name) {
        nesting += c == '(' || c == '<';
        if (nesting == 0) flat += c;
        nesting -= c == ')' || c == '>';
    }
    const size_t clone = flat.find(" ["), scope = flat.find_last_of(": ");
    if (clone != std::string::npos) return bare(flat.substr(0, clone));
    return scope == std::string::npos ? flat : flat.substr(scope + 1);
}

__attribute__((noinline)) void look(const char *where, bool in_lambda) {
    void *addresses[128];
    const int count = backtrace(addresses, 128);
    const uint32_t id = vram_stack_take(stacks, VRAM_STACK_C, 0);
    const std::vector<vram_frame> frames = frames_of(id);
    expect(id != 0 && !frames.empty(), where);
    expect(!frames.empty() && std::strstr(frames[0].name, "look") != nullptr, "the innermost function is the caller");
    if (in_lambda) {
        expect(std::any_of(frames.begin(), frames.end(), [](const vram_frame &f) {
                   // "{lambda()#1}" by one compiler, "$_0" by another.
                   return std::strstr(f.name, "lambda") != nullptr || std::strstr(f.name, "$_") != nullptr;
               }),
               "a lambda has a name");
    }
    // Every function of the program that addr2line finds, in order.
    const std::vector<std::string> names = ask_addr2line(addresses, count);
    size_t at = 0;
    for (const std::string &name : names) {
        if (name == "??" || bare(name).empty()) continue;
        size_t next = at;
        while (next < frames.size() && bare(frames[next].name) != bare(name)) next++;
        if (next == frames.size()) std::fprintf(stderr, "%s: %s is missing\n", where, name.c_str());
        expect(next < frames.size(), "a function that addr2line finds");
        if (next < frames.size()) at = next + 1;
    }
}

template <typename T> struct twice {
    static __attribute__((noinline)) T call(T value, const char *where) {
        volatile T kept = value;
        look(where, false);
        return kept + kept;
    }
};

inline __attribute__((always_inline)) int inlined_inner(int value) { return twice<int>::call(value, "inlined") + 1; }
inline __attribute__((always_inline)) int inlined_outer(int value) { return inlined_inner(value) * 2; }
__attribute__((noinline)) int calls_inlined(int value) { return inlined_outer(value) + 3; }

struct guard {
    ~guard() { look("destructor while an exception passes", false); }
};

__attribute__((noinline)) void throws(int depth) {
    volatile int kept = depth;
    guard watch;
    if (depth == 0) throw std::runtime_error("thrown");
    throws(depth - 1);
    kept = kept + 1;
}

struct made {
    std::string name;
    explicit made(const char *text) : name(text) { look("constructor", false); }
};

} // namespace

int main() {
    if (vram_stacks_create(nullptr, &stacks) != VRAM_OK) return 2;
    (void)twice<long>::call(3, "template");
    (void)calls_inlined(4);
    const std::function<void(int)> function = [](int value) {
        volatile int kept = value;
        look("lambda in std::function", true);
        kept = kept + 1;
    };
    function(1);
    std::vector<int> numbers = {3, 1, 2};
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) {
        look("lambda in std::sort", true);
        return a < b;
    });
    try {
        throws(3);
    } catch (const std::exception &) {
        look("handler", false);
    }
    const made object("made");
    vram_stacks_destroy(stacks);
    if (failures == 0) std::printf("all stacks as backtrace() and addr2line say\n");
    return failures == 0 ? 0 : 1;
}
