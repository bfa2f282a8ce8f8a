// A small inference engine that fails in the way that ENGINE_STEP names. FN_* are names that vary.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifndef FN_OUTER
#define FN_OUTER serve_request
#define FN_MIDDLE run_graph
#define FN_INNER apply_layer
#define FN_TYPE Tensor
#endif

struct FN_TYPE {
    std::vector<float> data;
    std::vector<long> shape;
    virtual ~FN_TYPE() = default;
    virtual float at(size_t index) const { return data.at(index); }
};

struct Kernel {
    explicit Kernel(int) { prepare(); }
    virtual ~Kernel() = default;
    virtual void run() = 0;
    void prepare() { run(); }
};
struct FusedKernel : Kernel {
    using Kernel::Kernel;
    void run() override {}
};

static volatile int zero = 0;
static std::string path;
static size_t size = 0;

__attribute__((noinline)) int recurse(int depth) {
    volatile char pad[4096];
    pad[0] = static_cast<char>(depth);
    return recurse(depth + 1) + pad[0];
}

__attribute__((noinline)) void smash(const char* text) {
    char name[8];
    std::strcpy(name, text);
    std::printf("%s\n", name);
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

void* other_order(void*) {
    pthread_mutex_lock(&second);
    usleep(200000);
    pthread_mutex_lock(&first);
    return nullptr;
}

void deadlock() {
    pthread_t worker;
    pthread_create(&worker, nullptr, other_order, nullptr);
    pthread_mutex_lock(&first);
    usleep(200000);
    pthread_mutex_lock(&second);
}

__attribute__((noinline)) float FN_INNER(const std::string& mode, FN_TYPE* tensor) {
    if (mode == "segv") return *reinterpret_cast<volatile float*>(static_cast<size_t>(zero) + 24);
    if (mode == "wild") return *reinterpret_cast<volatile float*>(0x7f0000001000ull + size);
    if (mode == "abort") std::abort();
    if (mode == "assert") assert(tensor->shape.size() == size && "rank of the input");
    if (mode == "range") return tensor->at(tensor->data.size() + size);
    if (mode == "stoi") return std::stoi(path);
    if (mode == "length") tensor->data.reserve(~size_t(0));
    if (mode == "alloc") for (std::vector<std::vector<float>> kept;;) kept.emplace_back(size, 1.0f);
    if (mode == "double_free") { void* block = std::malloc(64); std::free(block); std::free(block); }
    if (mode == "free_invalid") { std::free(reinterpret_cast<char*>(tensor->data.data()) + 16); }
    if (mode == "heap") { char* block = static_cast<char*>(std::malloc(24)); std::memset(block, 0x41, 64); void* next = std::malloc(100000); std::free(next); std::free(block); std::malloc(4096); }
    if (mode == "smash") smash(path.c_str());
    if (mode == "overflow") return recurse(0);
    if (mode == "ill") __builtin_trap();
    if (mode == "fpe") return 100 / zero;
    if (mode == "pure") { FusedKernel kernel(1); }
    if (mode == "deadlock") deadlock();
    if (mode == "mmap") {
        int file = open(path.c_str(), O_RDWR);
        auto* weights = static_cast<volatile float*>(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
        if (ftruncate(file, 0) != 0) return 0;
        return weights[size / 8];
    }
    if (mode == "dlopen") {
        void* library = dlopen(path.c_str(), RTLD_NOW);
        if (library == nullptr) { std::fprintf(stderr, "ERROR: cannot load plugin: %s\n", dlerror()); std::exit(1); }
    }
    return 0;
}

__attribute__((noinline)) float FN_MIDDLE(const std::string& mode, FN_TYPE* tensor) { return FN_INNER(mode, tensor) + 1; }
__attribute__((noinline)) float FN_OUTER(const std::string& mode, FN_TYPE* tensor) { return FN_MIDDLE(mode, tensor) + 1; }

void on_signal(int number) {
    void* frames[32];
    std::fprintf(stderr, "*** %s received by PID %d, stack trace: ***\n", number == SIGSEGV ? "SIGSEGV" : number == SIGABRT ? "SIGABRT" : number == SIGFPE ? "SIGFPE" : number == SIGBUS ? "SIGBUS" : "SIGILL", getpid());
    backtrace_symbols_fd(frames, backtrace(frames, 32), 2);
    std::signal(number, SIG_DFL);
    std::raise(number);
}

int main(int argc, char** argv) {
    const char* step = std::getenv("ENGINE_STEP");  // not an argument: bash prints those of a program that died
    std::string mode = step != nullptr ? step : "";
    path = argc > 1 ? argv[1] : "";
    size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    if (std::getenv("ENGINE_STACKTRACE") != nullptr)
        for (int number : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(number, on_signal);
    FN_TYPE tensor;
    tensor.data = {1, 2, 3};
    tensor.shape = {1, 3};
    std::printf("result %f\n", FN_OUTER(mode, &tensor));
    return 0;
}
