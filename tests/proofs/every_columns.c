// Checks every column of up to three rows over the values at which a varint becomes longer: it is read as it was written, in each coding.
// Every string of bytes up to a length is read as a column of up to three rows, within its end.
//   proof_columns [length of the strings]
#include "proofs/every.h"

#include "history/logcolumn.h"

enum { ROWS = 3 };

static const uint64_t values[] = {0,         1, 127, 128, 16383, 16384, (1ull << 56) - 1, 1ull << 56, INT64_MAX, (uint64_t)INT64_MAX + 1,
                                  UINT64_MAX};
// Bytes that change the reader's decisions: the codings, counts, the last and other bytes of a varint.
static const unsigned char letters[] = {0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0x81, 0xff};

typedef void write_column(struct vr_bytes *out, const uint64_t *column, size_t count);
static void write_any(struct vr_bytes *out, const uint64_t *column, size_t count) { vr_column_write(out, column, count, false); }
static void write_varied(struct vr_bytes *out, const uint64_t *column, size_t count) { vr_column_write(out, column, count, true); }

static void check_written(write_column *write, const uint64_t *column, size_t count, unsigned long long number) {
    struct vr_bytes out = {0};
    uint64_t read[ROWS] = {0}, largest, wanted = 0;
    write(&out, column, count);
    every_require(!out.failed, "no memory", number);
    struct vr_cursor cursor = {.next = out.data, .end = out.data + out.count};
    vr_column_read(&cursor, read, count, &largest);
    for (size_t i = 0; i < count; i++) wanted = column[i] > wanted ? column[i] : wanted;
    every_require(!cursor.failed && cursor.next == cursor.end, "a column does not end where it was written to", number);
    every_require(memcmp(read, column, count * sizeof *column) == 0 && largest == wanted, "a column reads as another", number);
    vr_bytes_release(&out);
}

static unsigned long long write_all(void) {
    static write_column *const ways[] = {write_any, write_varied, vr_column_write_plain, vr_column_write_change, vr_column_write_rising};
    unsigned long long ran = 0;
    for (unsigned count = 1; count <= ROWS; count++) {
        for (unsigned long long number = 0; number < every_words(VR_COUNT_OF(values), count); number++) {
            uint64_t column[ROWS];
            unsigned long long left = number;
            for (unsigned i = 0; i < count; i++, left /= VR_COUNT_OF(values)) column[i] = values[left % VR_COUNT_OF(values)];
            for (unsigned way = 0; way < VR_COUNT_OF(ways); way++, ran++) check_written(ways[way], column, count, number);
        }
    }
    return ran;
}

// Reads a varint as logbytes.h describes it; advances *at. Returns false if there is none.
static bool plain_varint(const unsigned char *bytes, size_t length, size_t *at, uint64_t *value) {
    *value = 0;
    for (unsigned i = 0; i < VR_VARINT_MAX && *at < length; i++) {
        const unsigned char byte = bytes[(*at)++];
        if (i == VR_VARINT_MAX - 1 && byte > 1) return false;
        *value |= (uint64_t)(byte & 127) << (7 * i);
        if (byte < 128) return true;
    }
    return false;
}

// Reads a column as logcolumn.h describes it. Returns false if the bytes are invalid.
static bool plain_column(const unsigned char *bytes, size_t length, size_t rows, uint64_t *column) {
    uint64_t choices[VR_CHOICE_MAX], count, before = 0;
    size_t at = 1;
    if (rows == 0) return true;
    if (length == 0 || bytes[0] >= VR_CODING_COUNT) return false;
    if (bytes[0] == VR_CODING_SAME) {
        if (!plain_varint(bytes, length, &at, column)) return false;
        for (size_t i = 1; i < rows; i++) column[i] = column[0];
        return true;
    }
    if (bytes[0] == VR_CODING_CHOICE) {
        if (!plain_varint(bytes, length, &at, &count) || count == 0 || count > VR_CHOICE_MAX) return false;
        for (size_t i = 0; i < count; i++)
            if (!plain_varint(bytes, length, &at, &choices[i])) return false;
        for (size_t i = 0; i < rows; i++, at++) {
            if (at >= length || bytes[at] >= count) return false;
            column[i] = choices[bytes[at]];
        }
        return true;
    }
    for (size_t i = 0; i < rows; i++) {
        if (!plain_varint(bytes, length, &at, &column[i])) return false;
        if (bytes[0] == VR_CODING_CHANGE) column[i] = before += column[i] % 2 == 0 ? column[i] / 2 : ~(column[i] / 2);
    }
    return true;
}

// Bytes and rows have their own allocations, so that a sanitizer detects accesses beyond them.
static void check_read(const unsigned char *bytes, size_t length, size_t rows, unsigned long long number) {
    unsigned char *exact = malloc(length == 0 ? 1 : length);
    uint64_t *column = malloc(rows == 0 ? 1 : rows * sizeof *column), largest = 0;
    every_require(exact != NULL && column != NULL, "no memory", number);
    if (length != 0) memcpy(exact, bytes, length);
    struct vr_cursor cursor = {.next = exact, .end = exact + length};
    vr_column_read(&cursor, column, rows, &largest);
    every_require(cursor.next <= cursor.end && cursor.next >= exact, "the reader is beyond its end", number);
    uint64_t wanted[ROWS], most = 0;
    every_require(plain_column(bytes, length, rows, wanted) == !cursor.failed, "another answer than that of the plain reader", number);
    for (size_t i = 0; i < rows && !cursor.failed; i++) {
        every_require(column[i] == wanted[i], "another value than that of the plain reader", number);
        most = wanted[i] > most ? wanted[i] : most;
    }
    // For choices it is the largest choice, whether or not a row has it.
    every_require(cursor.failed || largest == most || (bytes[0] == VR_CODING_CHOICE && largest > most), "the largest value is another one",
                  number);
    free(exact);
    free(column);
}

static unsigned long long read_all(unsigned most) {
    unsigned long long ran = 0;
    unsigned char bytes[16];
    for (unsigned length = 0; length <= most; length++) {
        for (unsigned long long number = 0; number < every_words(VR_COUNT_OF(letters), length); number++, ran++) {
            unsigned long long left = number;
            for (unsigned i = 0; i < length; i++, left /= VR_COUNT_OF(letters)) bytes[i] = letters[left % VR_COUNT_OF(letters)];
            for (size_t rows = 0; rows <= ROWS; rows++) check_read(bytes, length, rows, number);
        }
    }
    return ran;
}

int main(int argc, char **argv) {
    const unsigned most = every_bound(argc, argv, 4);
    const unsigned long long written = write_all(), read = read_all(most < 16 ? most : 16);
    printf("columns: %llu written and read, %llu strings of up to %u bytes read as 0 to %d rows\n", written, read, most, ROWS);
    return 0;
}
