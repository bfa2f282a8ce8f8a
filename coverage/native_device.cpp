// An engine whose kernel fails in the way that the first argument says. Compiled by nvcc as CUDA.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef WITH_CUBLAS
#include <cublas_v2.h>
#endif

// Every project has its own way to tell of an error of the runtime.
static void told(cudaError_t code, const char* what, const char* file, int line) {
  if (code == cudaSuccess) return;
#if STYLE == 0
  fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\"\n", file, line, (int)code, cudaGetErrorName(code), what);
#elif STYLE == 1
  fprintf(stderr, "[ERROR] %s:%d: %s failed: %s\n", file, line, what, cudaGetErrorString(code));
#elif STYLE == 2
  fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
#else
  throw std::runtime_error("CUDA failure " + std::to_string((int)code) + ": " + cudaGetErrorString(code) + "; " + what);
#endif
  exit(2);
}
#define CHECK(expr) told((expr), #expr, __FILE__, __LINE__)

__global__ void FN_INNER(float* out, long stride, int width) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  out[i * stride] = (float)(i % width);
}

__global__ void gather_rows(const float* table, const int* ids, float* out, int rows, int width) {
  int row = blockIdx.x, col = threadIdx.x;
  assert(ids[row] >= 0 && ids[row] < rows);
  out[row * width + col] = table[ids[row] * width + col];
}

__global__ void load_vectors(const char* packed, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(packed + 1 + threadIdx.x * sizeof(float4));
}

__global__ void check_scales(const float* scales, int count) {
  for (int i = 0; i < count; ++i)
    if (!(scales[i] > 0.f)) __trap();
}

__device__ __noinline__ float visit(const float* tree, int node, int depth) {
  volatile float path[64];
  for (int i = 0; i < 64; ++i) path[i] = tree[node % 1024] + i;
  if (depth == 0) return path[node % 64];
  return path[depth % 64] + visit(tree, node * 2 + 1, depth - 1) + visit(tree, node * 2 + 2, depth - 1);
}

__global__ void walk_tree(const float* tree, float* out, int depth) { out[threadIdx.x] = visit(tree, 0, depth); }

struct FN_TYPE {
  float* data = nullptr;
  size_t bytes = 0;
  void reserve(size_t want) {
    bytes = want;
    CHECK(cudaMalloc(&data, bytes));
  }
};

static void FN_MIDDLE(const std::string& mode, int size) {
  FN_TYPE out, table;
  if (mode == "memory") {
    std::vector<FN_TYPE> pool(size);
    for (int layer = 0; layer < size; ++layer) {
      printf("allocating kv cache layer %d of %d\n", layer, size);
      pool[layer].reserve(12ull << 30);
    }
  }
  if (mode == "ordinal") CHECK(cudaSetDevice(size));
#ifdef WITH_CUBLAS
  if (mode == "cublas") {
    size_t free = 0, total = 0;
    CHECK(cudaMemGetInfo(&free, &total));
    for (size_t step = 1ull << 32; step >= (1ull << 20); step >>= 1)  // other models have taken what there is
      for (void* held; cudaMalloc(&held, step) == cudaSuccess;) {}
    cudaGetLastError();
    cublasHandle_t handle;
    cublasStatus_t status = cublasCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
      fprintf(stderr, "cuBLAS error: %s (%d) in cublasCreate, %s:%d\n", cublasGetStatusName(status), (int)status, __FILE__, __LINE__);
      exit(3);
    }
  }
#endif
  out.reserve(1 << 20);
  table.reserve(1 << 20);
  CHECK(cudaMemset(table.data, 0, table.bytes));
  if (mode == "address") {
    FN_INNER<<<64, 256>>>(out.data, 1l << 24, size);
  } else if (mode == "assert") {
    std::vector<int> ids(32, 3);
    ids[size % 32] = 1 << 20;
    int* where;
    CHECK(cudaMalloc(&where, ids.size() * sizeof(int)));
    CHECK(cudaMemcpy(where, ids.data(), ids.size() * sizeof(int), cudaMemcpyHostToDevice));
    gather_rows<<<32, 8>>>(table.data, where, out.data, 128, 8);
  } else if (mode == "misaligned") {
    load_vectors<<<1, 32>>>((const char*)table.data, (float4*)out.data);
  } else if (mode == "trap") {
    check_scales<<<1, 1>>>(table.data, 16);
  } else if (mode == "stack") {
    walk_tree<<<1, 32>>>(table.data, out.data, 4096);
  } else {
    FN_INNER<<<1, 32>>>(out.data, 1, size);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  printf("ok\n");
}

void FN_OUTER(const std::string& mode, int size) {
  printf("engine: request of %d tokens\n", size);
  FN_MIDDLE(mode, size);
}

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  FN_OUTER(argc > 1 ? argv[1] : "", argc > 2 ? atoi(argv[2]) : 7);
}
