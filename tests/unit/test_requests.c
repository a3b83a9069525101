// Tests requests of `vram fit --requests`: shapes, the formats of files, what is refused, and the file for the player.
#define _POSIX_C_SOURCE 200809L // mkstemp
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../cli/fit_requests.h"

static char path[] = "/tmp/test_requests_XXXXXX";

static const char *file_of(const char *content) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void expect_wrong(const char *text, const char *why) {
    struct fit_requests requests;
    char wrong[FIT_WRONG_CAPACITY];
    assert_false(fit_requests_open(&requests, text, wrong));
    if (strstr(wrong, why) == NULL) fail_msg("'%s': '%s' instead of '%s'", text, wrong, why);
    assert_null(requests.rows);
    assert_int_equal(requests.count, 0);
}

static struct fit_requests opened(const char *text) {
    struct fit_requests requests;
    char wrong[FIT_WRONG_CAPACITY];
    if (!fit_requests_open(&requests, text, wrong)) fail_msg("'%s': %s", text, wrong);
    return requests;
}

static void expect_row(const struct fit_requests *requests, size_t row, uint64_t arrival_ns, uint64_t prompt, uint64_t output) {
    assert_true(row < requests->count);
    assert_int_equal(requests->rows[row].arrival_ns, arrival_ns);
    assert_int_equal(requests->rows[row].prompt_tokens, prompt);
    assert_int_equal(requests->rows[row].output_tokens, output);
}

// --- shapes -------------------------------------------------------------------------------------------------------------------------

static void what_is_no_shape(void **state) {
    static const char *const parts[] = {
        "rate=0",     "rate=-1/s", "rate=8/d",  "rate=",  "rate=8s", "prompt=x", "prompt=", "prompt=9..8", "prompt=1..",  "prompt=..8",
        "prompt=1.5", "output=-1", "count=1e3", "size=8", "prompt",  "=8",       "",        "rate=nan",    "output=4...5"};
    char text[200], shown[200];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        (void)snprintf(text, sizeof text, "seed=5,%s", parts[i]);
        (void)snprintf(shown, sizeof shown, "'%s' is not one of rate=8/s", parts[i]);
        expect_wrong(text, shown);
    }
    expect_wrong("count=5,count=6", "'count=6' is given twice");
    expect_wrong("rate=8", "a shape needs prompt= and output=");
    expect_wrong("prompt=8", "a shape needs prompt= and output=");
    expect_wrong("prompt=0..8,output=1", "of at least 1 token");
    expect_wrong("prompt=8,output=1,count=0", "count= takes 1 to 10000000 requests");
    expect_wrong("prompt=8,output=1,count=10000001", "count= takes 1 to 10000000 requests");
    expect_wrong("prompt=8..16,output=1,prefix=9", "prefix= is longer than the shortest prompt");
    expect_wrong("prompt=8,output=1,prefixes=0", "prefixes= takes 1 to 10000000");
    expect_wrong("prompt=8,output=1,concurrency=99999999999999999999", "concurrency= takes 1 to 10000000");
    expect_wrong("prompt=999999999999,output=1", "prompt= takes at most 100000000 tokens");
    expect_wrong("prompt=1,output=1..999999999999", "output= takes at most 100000000 tokens");
    expect_wrong("missing.jsonl", "'missing.jsonl' is neither a file nor a shape");
    expect_wrong("", "'' is neither a file nor a shape");
    char longer[700];
    memset(longer, '=', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    expect_wrong(longer, "the shape is longer than 511 characters");
    (void)state;
}

static void all_at_once(void **state) {
    struct fit_requests requests = opened("prompt=100,output=7,count=3,concurrency=2");
    assert_int_equal(requests.count, 3);
    assert_int_equal(requests.together, 2);
    for (size_t i = 0; i < 3; i++) expect_row(&requests, i, 0, 100, 7);
    fit_requests_release(&requests);
    (void)state;
}

// 30,000 requests at 8 a second: lengths cover their range evenly, and gaps are exponential (their variance is the square of their mean).
static void lengths_and_gaps(void **state) {
    struct fit_requests requests = opened("rate=480/m,prompt=512..4096,output=1..256,count=30000");
    double prompts = 0, outputs = 0, squares = 0;
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < requests.count; i++) {
        const struct fit_request *row = &requests.rows[i];
        const double gap = i == 0 ? 0 : (double)(row->arrival_ns - requests.rows[i - 1].arrival_ns) / 1e9;
        assert_true(i == 0 || row->arrival_ns >= requests.rows[i - 1].arrival_ns);
        prompts += (double)row->prompt_tokens, outputs += (double)row->output_tokens, squares += gap * gap;
        least = row->prompt_tokens < least ? row->prompt_tokens : least;
        most = row->prompt_tokens > most ? row->prompt_tokens : most;
        assert_true(row->output_tokens >= 1 && row->output_tokens <= 256);
    }
    assert_int_equal(least, 512);
    assert_int_equal(most, 4096);
    assert_true(prompts / 30000 > 2280 && prompts / 30000 < 2328); // 2304
    assert_true(outputs / 30000 > 126 && outputs / 30000 < 131);   // 128.5
    const double seconds = (double)requests.rows[29999].arrival_ns / 1e9;
    assert_true(seconds > 3650 && seconds < 3850);                     // 3750
    assert_true(squares / 30000 > 0.0295 && squares / 30000 < 0.0330); // 2 / 64
    fit_requests_release(&requests);
    (void)state;
}

static void seeds(void **state) {
    struct fit_requests one = opened("rate=8,prompt=1..900,output=9,seed=3,count=50"),
                        same = opened("seed=3,rate=8/s,count=50,output=9,prompt=1..900"),
                        other = opened("rate=8,prompt=1..900,output=9,seed=4,count=50");
    assert_memory_equal(one.rows, same.rows, 50 * sizeof *one.rows);
    assert_memory_not_equal(one.rows, other.rows, 50 * sizeof *one.rows);
    fit_requests_release(&one);
    fit_requests_release(&same);
    fit_requests_release(&other);
    (void)state;
}

static void shared_prefixes(void **state) {
    struct fit_requests requests = opened("prompt=100..200,output=7,count=1000,prefix=64,prefixes=5");
    uint64_t counts[5] = {0};
    for (size_t i = 0; i < requests.count; i++) {
        assert_int_equal(requests.rows[i].piece_count, 1);
        const struct fit_piece *piece = &requests.pieces[requests.rows[i].first_piece];
        assert_int_equal(piece->tokens, 64);
        assert_true(piece->id < 5);
        counts[piece->id]++;
    }
    for (size_t i = 0; i < 5; i++) assert_true(counts[i] > 150 && counts[i] < 250);
    fit_requests_release(&requests);
    (void)state;
}

// --- files --------------------------------------------------------------------------------------------------------------------------

static void json_lines(void **state) {
    struct fit_requests requests =
        opened(file_of("{\"arrival\": 1.5, \"prompt_tokens\": 30, \"output_tokens\": 4}\n\n"
                       "  {\"prompt_tokens\": 20, \"output_tokens\": 5, \"prefix\": 3, \"prefix_tokens\": 16}\r\n"
                       "{\"arrival\": 1.5, \"prompt_tokens\": 31, \"output_tokens\": 4, \"prefix_tokens\": 0}"));
    assert_int_equal(requests.count, 3);
    expect_row(&requests, 0, 0, 20, 5); // by arrival
    expect_row(&requests, 1, 1500000000, 30, 4);
    expect_row(&requests, 2, 1500000000, 31, 4);
    assert_int_equal(requests.rows[0].piece_count, 1);
    assert_int_equal(requests.rows[1].piece_count, 0);
    assert_int_equal(requests.pieces[requests.rows[0].first_piece].id, 3);
    fit_requests_release(&requests);
    (void)state;
}

static void mooncake(void **state) {
    struct fit_requests requests =
        opened(file_of("{\"timestamp\": 27482, \"input_length\": 1100, \"output_length\": 52, \"hash_ids\": [46, 47, 48]}\n"
                       "{\"timestamp\": 27483, \"input_length\": 512, \"output_length\": 1, \"hash_ids\": [46]}\n"));
    expect_row(&requests, 0, UINT64_C(27482000000), 1100, 52);
    assert_int_equal(requests.rows[0].piece_count, 3);
    const struct fit_piece *pieces = &requests.pieces[requests.rows[0].first_piece];
    assert_int_equal(pieces[0].tokens, 512);
    assert_int_equal(pieces[2].tokens, 76);
    assert_int_equal(pieces[2].id, 48);
    assert_int_equal(requests.pieces[requests.rows[1].first_piece].id, 46);
    fit_requests_release(&requests);
    (void)state;
}

static void tables(void **state) {
    struct fit_requests requests =
        opened(file_of("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                       "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118,GPT-4,417,276,693,API log\n"));
    assert_int_equal(requests.count, 2); // the second failed there
    expect_row(&requests, 0, 0, 472, 18);
    expect_row(&requests, 1, UINT64_C(113000000000), 417, 276);
    fit_requests_release(&requests);
    requests =
        opened(file_of("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-29 23:59:59.5,4808,10\r\n2024-03-01 00:00:01.0,3180,8\r\n"));
    expect_row(&requests, 0, 0, 4808, 10);
    expect_row(&requests, 1, 1500000000, 3180, 8);
    fit_requests_release(&requests);
    (void)state;
}

static void what_is_no_file_of_requests(void **state) {
    expect_wrong(file_of(""), "has no requests");
    expect_wrong(file_of("Timestamp,Request tokens,Response tokens\n"), "has no requests");
    expect_wrong(file_of("{\"prompt_tokens\": 1, \"output_tokens\": 2}\n{\n"), "line 2: not a JSON object");
    expect_wrong(file_of("{\"prompt_tokens\": 1}"), "line 1: has neither prompt_tokens and output_tokens");
    expect_wrong(file_of("{\"prompt_tokens\": 0, \"output_tokens\": 2}"), "line 1: the prompt has no tokens");
    expect_wrong(file_of("{\"prompt_tokens\": 1, \"output_tokens\": 1e300}"), "line 1: the output has no tokens, or too many");
    expect_wrong(file_of("{\"prompt_tokens\": \"1\", \"output_tokens\": 2}"), "line 1: has neither");
    expect_wrong(file_of("{\"arrival\": -1, \"prompt_tokens\": 1, \"output_tokens\": 2}"), "line 1: the arrival");
    expect_wrong(file_of("{\"prompt_tokens\": 8, \"output_tokens\": 2, \"prefix_tokens\": 9}"),
                 "line 1: the prefix is longer than the prompt");
    expect_wrong(file_of("{\"input_length\": 8, \"output_length\": 2, \"hash_ids\": [\"a\"]}"),
                 "hash_ids contains something other than numbers");
    expect_wrong(file_of("{\"prompt\": \"Once upon\", \"output_len\": 20}"), "line 1: a data set of texts");
    expect_wrong(file_of("[{\"conversations\": []}]"), "line 1: a JSON array (ShareGPT's texts?)");
    expect_wrong(file_of("a,b\n1,2\n"), "line 1: neither a JSON object nor the header of a BurstGPT or Azure table");
    expect_wrong(file_of("Timestamp,Request tokens,Response tokens\n1,2\n"), "line 2: fewer cells");
    expect_wrong(file_of("Timestamp,Request tokens,Response tokens\nnoon,2,3\n"), "line 2: the arrival is not a time");
    expect_wrong(file_of("Timestamp,Request tokens,Response tokens\n5,2,3\n4,2,3\n"), "line 3: the arrival");
    expect_wrong("/tmp", "/tmp");
    (void)state;
}

static bool append(void *user, const char *bytes, size_t length) {
    (void)strncat(user, bytes, length);
    return true;
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return false;
}

static void written_for_the_player(void **state) {
    struct fit_requests requests =
        opened(file_of("{\"arrival\": 2, \"prompt_tokens\": 20, \"output_tokens\": 5, \"prefix\": 3, \"prefix_tokens\": 16}\n"
                       "{\"arrival\": 1, \"input_length\": 600, \"timestamp\": 1000, \"output_length\": 2, \"hash_ids\": [7, 9]}\n"));
    requests.together = 4;
    char text[200] = "";
    assert_true(fit_requests_write(&requests, append, text));
    assert_string_equal(text, "1000000000 600 2 7:512 9:88\n2000000000 20 5 3:16\ntogether 4\n");
    assert_false(fit_requests_write(&requests, refuse, NULL));
    fit_requests_release(&requests);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_shape),
        cmocka_unit_test(all_at_once),
        cmocka_unit_test(lengths_and_gaps),
        cmocka_unit_test(seeds),
        cmocka_unit_test(shared_prefixes),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(mooncake),
        cmocka_unit_test(tables),
        cmocka_unit_test(what_is_no_file_of_requests),
        cmocka_unit_test(written_for_the_player),
    };
    const int made = mkstemp(path);
    if (made < 0) return 1;
    (void)close(made);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
