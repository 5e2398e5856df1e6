// OS thread t is thread t of every block, in a random order of blocks and without meeting the others between
// blocks: the thread sanitizer then sees every access that no barrier or warp operation orders, within and
// across blocks.

#include <chrono>
#include <thread>

#include "block.hpp"

#ifdef __SANITIZE_THREAD__
// Of the sanitizer's runtime.
extern "C" {
void AnnotateIgnoreSyncBegin(const char*, int);
void AnnotateIgnoreSyncEnd(const char*, int);
void AnnotateIgnoreReadsBegin(const char*, int);
void AnnotateIgnoreReadsEnd(const char*, int);
void AnnotateIgnoreWritesBegin(const char*, int);
void AnnotateIgnoreWritesEnd(const char*, int);
void AnnotateHappensBefore(const char*, int, uintptr_t);
void AnnotateHappensAfter(const char*, int, uintptr_t);
}
#endif

namespace cuzk_emulator {
namespace {

// The launch ended early; unwinds an OS thread out of its kernel.
struct Abandon {};

// While it lives, the thread sanitizer sees nothing: the emulator's own locks must not order what the
// kernel leaves unordered. What CUDA does order is said with `order_before` and `order_after`.
struct Unseen {
#ifdef __SANITIZE_THREAD__
    Unseen() {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~Unseen() {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
#else
    Unseen() {}
    ~Unseen() {}
#endif
};

void order_before([[maybe_unused]] const void* key) {
#ifdef __SANITIZE_THREAD__
    AnnotateHappensBefore(__FILE__, __LINE__, reinterpret_cast<uintptr_t>(key));
#endif
}

void order_after([[maybe_unused]] const void* key) {
#ifdef __SANITIZE_THREAD__
    AnnotateHappensAfter(__FILE__, __LINE__, reinterpret_cast<uintptr_t>(key));
#endif
}

uint64_t exchange_unseen(Thread& thread, Operation operation, uint32_t mask, uint64_t value, unsigned source,
                         Site site) {
    Unseen unseen;
    Block& block = *thread.block;
    std::unique_lock<std::mutex> guard(block.lock);
    if (block.launch.failed) {
        throw Abandon{};
    }
    thread.operation = operation;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    thread.site = site;
    thread.state = State::parked;
    ++block.parked;
    if (!block.arrived(thread)) {
        for (Thread& other : block.threads) {
            other.woken.notify_one();
        }
        throw Abandon{};
    }
    while (thread.state == State::parked && !block.launch.failed) {
        // Another block's failure rings no bell here.
        thread.woken.wait_for(guard, std::chrono::seconds(1));
    }
    if (thread.state == State::parked) {
        throw Abandon{};
    }
    return thread.result;
}

}  // namespace

int barrier(Operation operation, int value, Site site) {
    return static_cast<int>(exchange(operation, ~0u, static_cast<uint64_t>(value), 0, site));
}

uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, unsigned source, Site site) {
    Thread& thread = *current;
    // Barriers order memory within the block, __syncwarp within the warp; shuffles and votes do not.
    const void* key = nullptr;
    if (operation <= Operation::barrier_or) {
        key = thread.block;
    } else if (operation == Operation::sync_warp) {
        key = &thread.block->threads[thread.index - thread.where.lane];
    }
    if (key != nullptr) {
        order_before(key);
    }
    const uint64_t result = exchange_unseen(thread, operation, mask, value, source, site);
    if (key != nullptr) {
        order_after(key);
    }
    return result;
}

void* shared(const void* key, size_t bytes, size_t alignment) {
    Unseen unseen;
    Block& block = *current->block;
    std::lock_guard<std::mutex> guard(block.lock);
    return block.array(key, bytes, alignment);
}

void* dynamic_shared() {
    Unseen unseen;
    Block& block = *current->block;
    std::lock_guard<std::mutex> guard(block.lock);
    return block.dynamic_array();
}

void trap(Site site) {
    Unseen unseen;
    Block& block = *current->block;
    std::lock_guard<std::mutex> guard(block.lock);
    block.fail(*current, text("__trap at %s:%d", site.file, site.line));
    throw Abandon{};
}

void Block::resume(Thread& thread) {
    thread.woken.notify_one();
}

static void run_thread(Launch& launch, std::vector<std::unique_ptr<Block>>& blocks, unsigned index) {
    for (auto& block : blocks) {
        if (launch.failed) {
            return;
        }
        Thread& thread = block->threads[index];
        current = &thread;
        here = &thread.where;
        try {
            launch.body(launch.arguments);
        } catch (const Abandon&) {
            return;
        }
        Unseen unseen;
        std::lock_guard<std::mutex> guard(block->lock);
        if (!block->leave(thread)) {
            for (Thread& other : block->threads) {
                other.woken.notify_one();
            }
            return;
        }
    }
}

void run(Launch& launch, unsigned) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (unsigned number : launch.order) {
        blocks.push_back(std::make_unique<Block>(launch));
        blocks.back()->begin(number);
    }
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < launch.threads(); ++index) {
        threads.emplace_back([&launch, &blocks, index] { run_thread(launch, blocks, index); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace cuzk_emulator
