// A Node addon whose interface version is of another Node: the loader refuses it.
extern "C" {
struct Module {
    int version;
    unsigned flags;
    void* handle;
    const char* file;
    void* init;
    void* context_init;
    const char* name;
    void* priv;
    void* link;
};
void node_module_register(void* module);
static Module module = {ADDON_ABI, 0, nullptr, "addon.cc", nullptr, reinterpret_cast<void*>(&node_module_register), "addon", nullptr, nullptr};
__attribute__((constructor)) static void enrol() { node_module_register(&module); }
}
