// The door for Rust (crates/cuzk-kernels/src/launcher/emulator.rs): runs a kernel's blocks on the host.
//
// Of the two ways to run a block's threads one is compiled: fibers.cpp, or, under CUZK_EMULATOR_THREADS,
// threads.cpp.

#include "block.hpp"

namespace cuzk_emulator {

__thread const Here* here = nullptr;
__thread Thread* current = nullptr;

}  // namespace cuzk_emulator

struct cuzk_emulator_shape {
    uint32_t grid[3];
    uint32_t block[3];
    uint64_t shared_bytes;
};

// Runs `body(arguments)` as every thread of the launch. 0: done; else `message` says what was wrong.
extern "C" int cuzk_emulator_launch(void (*body)(void*), void* arguments, const cuzk_emulator_shape* shape,
                                    uint64_t seed, unsigned workers, char* message, size_t message_bytes) {
    using namespace cuzk_emulator;
    Launch launch;
    launch.body = body;
    launch.arguments = arguments;
    launch.grid = {shape->grid[0], shape->grid[1], shape->grid[2]};
    launch.block = {shape->block[0], shape->block[1], shape->block[2]};
    launch.shared_bytes = shape->shared_bytes;
    launch.seed = seed;
    const size_t count = static_cast<size_t>(shape->grid[0]) * shape->grid[1] * shape->grid[2];
    for (size_t number = 0; number < count; ++number) {
        launch.order.push_back(static_cast<unsigned>(number));
    }
    auto random = random_source(seed, ~0ull);
    std::shuffle(launch.order.begin(), launch.order.end(), random);
    run(launch, workers);
    if (!launch.failed) {
        return 0;
    }
    if (message_bytes > 0) {
        snprintf(message, message_bytes, "%s", launch.message.c_str());
    }
    return 1;
}
