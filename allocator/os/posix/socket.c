// socket.c: bytes and descriptors over a local socket.
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

enum { MOST = 128 }; // descriptors per message; the kernel allows 253

union control {
    struct cmsghdr head; // for its alignment
    char bytes[CMSG_SPACE(MOST * sizeof(int))];
};

static enum vram_status send_some(int socket, const struct iovec *part, const int *descriptors, size_t count, size_t *sent) {
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = (struct iovec *)part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    }
    ssize_t result;
    do result = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (result < 0 && errno == EINTR);
    if (result <= 0) return VRAM_IO;
    *sent = (size_t)result;
    return VRAM_OK;
}

enum vram_status vr_os_send(int socket, const void *bytes, size_t size_bytes) {
    assert(bytes != NULL || size_bytes == 0);
    while (size_bytes > 0) {
        const struct iovec part = {(void *)(uintptr_t)bytes, size_bytes};
        size_t sent = 0;
        const enum vram_status status = send_some(socket, &part, NULL, 0, &sent);
        if (status != VRAM_OK) return status;
        bytes = (const char *)bytes + sent;
        size_bytes -= sent;
    }
    return VRAM_OK;
}

enum vram_status vr_os_receive(int socket, void *bytes, size_t size_bytes) {
    assert(bytes != NULL || size_bytes == 0);
    while (size_bytes > 0) {
        const ssize_t result = recv(socket, bytes, size_bytes, 0);
        if (result < 0 && errno == EINTR) continue;
        if (result <= 0) return VRAM_IO;
        bytes = (char *)bytes + result;
        size_bytes -= (size_t)result;
    }
    return VRAM_OK;
}

// Descriptors must travel with at least one byte.
enum vram_status vr_os_send_descriptors(int socket, const int *descriptors, size_t count) {
    assert(descriptors != NULL || count == 0);
    char byte = 'd';
    const struct iovec part = {&byte, 1};
    for (size_t at = 0; at < count;) {
        const size_t now = count - at < MOST ? count - at : MOST;
        size_t sent = 0;
        const enum vram_status status = send_some(socket, &part, descriptors + at, now, &sent);
        if (status != VRAM_OK) return status;
        at += now;
    }
    return VRAM_OK;
}

// Stores the descriptors that fit and closes the rest.
static size_t take_descriptors(struct msghdr *message, int *descriptors, size_t room) {
    size_t taken = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(head) + i * sizeof descriptor, sizeof descriptor);
            if (taken < room)
                descriptors[taken++] = descriptor;
            else
                (void)close(descriptor);
        }
    }
    return taken;
}

static enum vram_status receive_some(int socket, int *descriptors, size_t room, size_t *taken) {
    union control control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t result;
    do result = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (result < 0 && errno == EINTR);
    if (result <= 0) return VRAM_IO;
    *taken = take_descriptors(&message, descriptors, room);
    // The kernel drops descriptors that it cannot open here.
    if ((message.msg_flags & MSG_CTRUNC) != 0) return VRAM_LIMIT;
    return *taken == 0 ? VRAM_BAD_INPUT : VRAM_OK;
}

enum vram_status vr_os_receive_descriptors(int socket, int *descriptors, size_t count) {
    assert(descriptors != NULL || count == 0);
    size_t at = 0;
    enum vram_status status = VRAM_OK;
    while (at < count && status == VRAM_OK) {
        size_t taken = 0;
        status = receive_some(socket, descriptors + at, count - at, &taken);
        at += taken;
    }
    while (status != VRAM_OK && at > 0) (void)close(descriptors[--at]);
    return status;
}
