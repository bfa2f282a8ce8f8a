// Memory errors that the address and undefined-behaviour sanitizers report.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifndef FN_OUTER
#define FN_OUTER serve_request
#define FN_MIDDLE run_graph
#define FN_INNER apply_layer
#endif

static volatile size_t width = 16;

__attribute__((noinline)) float FN_INNER(const std::string& mode, float* row) {
    if (mode == "heap-overflow") return row[width];
    if (mode == "use-after-free") { delete[] row; return row[1]; }
    if (mode == "double-free") { delete[] row; delete[] row; }
    if (mode == "stack-overflow") { float local[4] = {1, 2, 3, 4}; return local[width % 13 + 2]; }
    if (mode == "null") return *reinterpret_cast<volatile float*>(width - 16);
    if (mode == "memcpy") { std::memcpy(row, row + 8, width * 4); }
    if (mode == "shift") { volatile int bits = 40; return static_cast<float>(1 << bits); }
    if (mode == "signed") { volatile int most = 0x7fffffff; return static_cast<float>(most + static_cast<int>(width)); }
    if (mode == "align") { return *reinterpret_cast<float*>(reinterpret_cast<char*>(row) + 1); }
    if (mode == "malloc") { return *static_cast<float*>(std::malloc(width << 50)); }
    return 0;
}

__attribute__((noinline)) float FN_MIDDLE(const std::string& mode, float* row) { return FN_INNER(mode, row) + 1; }
__attribute__((noinline)) float FN_OUTER(const std::string& mode, float* row) { return FN_MIDDLE(mode, row) + 1; }

int main(int argc, char** argv) {
    float* row = new float[16]();
    std::printf("result %f\n", FN_OUTER(argc > 1 ? argv[1] : "", row));
    return 0;
}
