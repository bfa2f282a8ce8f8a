// Files and folders that a small engine cannot have: what the C++ library says of them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#ifndef FN_OUTER
#define FN_OUTER serve_request
#define FN_INNER apply_layer
#endif

namespace fs = std::filesystem;

float FN_INNER(const std::string& mode, const std::string& path) {
    if (mode == "open") { fs::directory_iterator entries(path); }
    if (mode == "filesize") return fs::file_size(path);
    if (mode == "mkdir") fs::create_directories(path);
    if (mode == "copy") fs::copy_file(path, path + ".staged");
    if (mode == "function") return std::function<float(float)>{}(1.0f);
    return 0;
}

float FN_OUTER(const std::string& mode, const std::string& path) { return FN_INNER(mode, path) + 1; }

int main(int argc, char** argv) {
    const char* step = std::getenv("ENGINE_STEP");
    std::printf("result %f\n", FN_OUTER(step != nullptr ? step : "", argc > 1 ? argv[1] : ""));
    return 0;
}
