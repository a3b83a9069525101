// Products of matrices in cuBLAS, whose operands have known sizes. All other calls are rows of cublas_calls.def.
#include "cublas.h"

// C = alpha op(A) op(B) + beta C, for each matrix of the batch. multiply() fills in the rows and columns.
struct product {
    const struct standin_handle *handle;
    const char *name;
    bool a_transposed, b_transposed;
    int64_t m, n, k, batch;
    const void *alpha, *beta;
    size_t scalar_bytes; // the bytes of alpha and beta that tell whether they are zero
    struct cublas_matrix a, b, c;
};

static bool is_zero(const struct product *product, const void *scalar) {
    return product->handle->pointer_mode == 0 && standin_cublas_is_zero(scalar, product->scalar_bytes);
}

static int multiply(struct product *product) {
    const int status = standin_query(&codes, product->handle);
    if (status != 0) return status;
    struct cublas_matrix *a = &product->a, *b = &product->b, *c = &product->c;
    a->rows = product->a_transposed ? product->k : product->m;
    a->columns = product->a_transposed ? product->m : product->k;
    b->rows = product->b_transposed ? product->n : product->k;
    b->columns = product->b_transposed ? product->k : product->n;
    c->rows = product->m;
    c->columns = product->n;
    const int64_t factors = is_zero(product, product->alpha) ? 0 : product->batch;
    const int64_t sums = is_zero(product, product->beta) ? 0 : product->batch;
    const struct standin_operand operands[] = {
        standin_cublas_matrix(a, factors, STANDIN_READS),
        standin_cublas_matrix(b, factors, STANDIN_READS),
        standin_cublas_matrix(c, sums, STANDIN_READS),
        standin_cublas_matrix(c, product->batch, STANDIN_WRITES),
    };
    return standin_call_on(&codes, product->handle, product->name, operands, sizeof operands / sizeof *operands);
}

// Returns the bytes of alpha that tell whether it is zero, by the cublasComputeType_t: half, double or four bytes. A program of before CUDA
// 11 passes the cudaDataType of the scalars instead.
static size_t scalar_bytes(int compute_type) {
    enum { HALF = 2, COMPUTE_16F = 64, COMPUTE_16F_PEDANTIC = 65, DOUBLE = 1, COMPUTE_64F = 70, COMPUTE_64F_PEDANTIC = 71 };
    if (compute_type == HALF || compute_type == COMPUTE_16F || compute_type == COMPUTE_16F_PEDANTIC) return 2;
    return compute_type == DOUBLE || compute_type == COMPUTE_64F || compute_type == COMPUTE_64F_PEDANTIC ? 8 : 4;
}

// --- one type ------------------------------------------------------------
#define PRODUCT(name, integer, bytes)                                                                                                      \
    int name(struct standin_handle *handle, int transa, int transb, integer m, integer n, integer k, const void *alpha, const void *a,     \
             integer lda, const void *b, integer ldb, const void *beta, void *c, integer ldc) {                                            \
        return multiply(&(struct product){handle,                                                                                          \
                                          #name,                                                                                           \
                                          transa != 0,                                                                                     \
                                          transb != 0,                                                                                     \
                                          m,                                                                                               \
                                          n,                                                                                               \
                                          k,                                                                                               \
                                          1,                                                                                               \
                                          alpha,                                                                                           \
                                          beta,                                                                                            \
                                          bytes,                                                                                           \
                                          {a, 0, 0, lda, 0, bytes},                                                                        \
                                          {b, 0, 0, ldb, 0, bytes},                                                                        \
                                          {c, 0, 0, ldc, 0, bytes}});                                                                      \
    }
PRODUCT(cublasHgemm, int, 2)
PRODUCT(cublasHgemm_64, int64_t, 2)
PRODUCT(cublasSgemm_v2, int, 4)
PRODUCT(cublasSgemm_v2_64, int64_t, 4)
PRODUCT(cublasDgemm_v2, int, 8)
PRODUCT(cublasDgemm_v2_64, int64_t, 8)
PRODUCT(cublasCgemm_v2, int, 8)
PRODUCT(cublasCgemm_v2_64, int64_t, 8)
PRODUCT(cublasCgemm3m, int, 8)
PRODUCT(cublasCgemm3m_64, int64_t, 8)
PRODUCT(cublasZgemm_v2, int, 16)
PRODUCT(cublasZgemm_v2_64, int64_t, 16)
PRODUCT(cublasZgemm3m, int, 16)
PRODUCT(cublasZgemm3m_64, int64_t, 16)

#define PRODUCTS(name, integer, bytes)                                                                                                     \
    int name(struct standin_handle *handle, int transa, int transb, integer m, integer n, integer k, const void *alpha, const void *a,     \
             integer lda, int64_t stride_a, const void *b, integer ldb, int64_t stride_b, const void *beta, void *c, integer ldc,          \
             int64_t stride_c, integer batch) {                                                                                            \
        return multiply(&(struct product){handle,                                                                                          \
                                          #name,                                                                                           \
                                          transa != 0,                                                                                     \
                                          transb != 0,                                                                                     \
                                          m,                                                                                               \
                                          n,                                                                                               \
                                          k,                                                                                               \
                                          batch,                                                                                           \
                                          alpha,                                                                                           \
                                          beta,                                                                                            \
                                          bytes,                                                                                           \
                                          {a, 0, 0, lda, stride_a, bytes},                                                                 \
                                          {b, 0, 0, ldb, stride_b, bytes},                                                                 \
                                          {c, 0, 0, ldc, stride_c, bytes}});                                                               \
    }
PRODUCTS(cublasHgemmStridedBatched, int, 2)
PRODUCTS(cublasHgemmStridedBatched_64, int64_t, 2)
PRODUCTS(cublasSgemmStridedBatched, int, 4)
PRODUCTS(cublasSgemmStridedBatched_64, int64_t, 4)
PRODUCTS(cublasDgemmStridedBatched, int, 8)
PRODUCTS(cublasDgemmStridedBatched_64, int64_t, 8)
PRODUCTS(cublasCgemmStridedBatched, int, 8)
PRODUCTS(cublasCgemmStridedBatched_64, int64_t, 8)
PRODUCTS(cublasCgemm3mStridedBatched, int, 8)
PRODUCTS(cublasCgemm3mStridedBatched_64, int64_t, 8)
PRODUCTS(cublasZgemmStridedBatched, int, 16)
PRODUCTS(cublasZgemmStridedBatched_64, int64_t, 16)

// --- types as arguments ------------------------------------------------------------------------------------------------------------------
#define MIXED_PRODUCT(name, integer, compute_parameter, compute)                                                                           \
    int name(struct standin_handle *handle, int transa, int transb, integer m, integer n, integer k, const void *alpha, const void *a,     \
             int type_a, integer lda, const void *b, int type_b, integer ldb, const void *beta, void *c, int type_c,                       \
             integer ldc compute_parameter) {                                                                                              \
        return multiply(&(struct product){handle,                                                                                          \
                                          #name,                                                                                           \
                                          transa != 0,                                                                                     \
                                          transb != 0,                                                                                     \
                                          m,                                                                                               \
                                          n,                                                                                               \
                                          k,                                                                                               \
                                          1,                                                                                               \
                                          alpha,                                                                                           \
                                          beta,                                                                                            \
                                          scalar_bytes(compute),                                                                           \
                                          {a, 0, 0, lda, 0, standin_width(type_a)},                                                        \
                                          {b, 0, 0, ldb, 0, standin_width(type_b)},                                                        \
                                          {c, 0, 0, ldc, 0, standin_width(type_c)}});                                                      \
    }
#define COMMA_COMPUTE_TYPE , int compute_type
MIXED_PRODUCT(cublasSgemmEx, int, , 0)
MIXED_PRODUCT(cublasSgemmEx_64, int64_t, , 0)
MIXED_PRODUCT(cublasCgemmEx, int, , 0)
MIXED_PRODUCT(cublasCgemmEx_64, int64_t, , 0)
MIXED_PRODUCT(cublasCgemm3mEx, int, , 0)
MIXED_PRODUCT(cublasCgemm3mEx_64, int64_t, , 0)
MIXED_PRODUCT(cublasGemmEx, int, COMMA_COMPUTE_TYPE, compute_type)
MIXED_PRODUCT(cublasGemmEx_64, int64_t, COMMA_COMPUTE_TYPE, compute_type)

#define MIXED_PRODUCTS(name, integer)                                                                                                      \
    int name(struct standin_handle *handle, int transa, int transb, integer m, integer n, integer k, const void *alpha, const void *a,     \
             int type_a, integer lda, int64_t stride_a, const void *b, int type_b, integer ldb, int64_t stride_b, const void *beta,        \
             void *c, int type_c, integer ldc, int64_t stride_c, integer batch, int compute_type) {                                        \
        return multiply(&(struct product){handle,                                                                                          \
                                          #name,                                                                                           \
                                          transa != 0,                                                                                     \
                                          transb != 0,                                                                                     \
                                          m,                                                                                               \
                                          n,                                                                                               \
                                          k,                                                                                               \
                                          batch,                                                                                           \
                                          alpha,                                                                                           \
                                          beta,                                                                                            \
                                          scalar_bytes(compute_type),                                                                      \
                                          {a, 0, 0, lda, stride_a, standin_width(type_a)},                                                 \
                                          {b, 0, 0, ldb, stride_b, standin_width(type_b)},                                                 \
                                          {c, 0, 0, ldc, stride_c, standin_width(type_c)}});                                               \
    }
MIXED_PRODUCTS(cublasGemmStridedBatchedEx, int)
MIXED_PRODUCTS(cublasGemmStridedBatchedEx_64, int64_t)
