// Runs a kernel's blocks on the host: threads, barriers, warp operations, shared memory.
//
// A thread that must wait parks. Whoever brings the last missing thread settles the operation for
// all of them and wakes them. So a block in which every thread is parked or gone will never move
// again: that is a deadlock, and it is reported with the places where its threads stand.
//
// Two ways to run a block's threads, chosen when this file is compiled:
//   fibers    one OS thread runs one block at a time; the threads of a block take turns in random
//             order, and change only where they wait. Several OS threads share the blocks.
//   threads   (CUZK_EMULATOR_THREADS) OS thread t is thread t of every block, in a random order of
//             blocks and without meeting the others between blocks: the thread sanitizer then sees
//             every access that no barrier or warp operation orders, within and across blocks.

#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifndef CUZK_EMULATOR_THREADS
#include <sys/mman.h>
#include <unistd.h>

#include "context.hpp"
#endif

#include "emulator.hpp"

#if defined(__SANITIZE_ADDRESS__) && !defined(CUZK_EMULATOR_THREADS)
#include <sanitizer/common_interface_defs.h>
#define CUZK_ADDRESS_SANITIZER 1
#endif

namespace cuzk_emulator {

__thread const Here* here = nullptr;

namespace {

constexpr unsigned WARP = 32;
constexpr unsigned char POISON = 0xa5;

const char* name_of(Operation operation) {
    switch (operation) {
        case Operation::none: return "nothing";
        case Operation::barrier: return "__syncthreads";
        case Operation::barrier_count: return "__syncthreads_count";
        case Operation::barrier_and: return "__syncthreads_and";
        case Operation::barrier_or: return "__syncthreads_or";
        case Operation::sync_warp: return "__syncwarp";
        case Operation::shuffle: return "__shfl_sync";
        case Operation::ballot: return "__ballot_sync";
        case Operation::any: return "__any_sync";
        case Operation::all: return "__all_sync";
        case Operation::match_any: return "__match_any_sync";
        case Operation::reduce_add: return "__reduce_add_sync";
    }
    return "?";
}

bool is_same(const Site& one, const Site& other) {
    return one.line == other.line && (one.file == other.file || strcmp(one.file, other.file) == 0);
}

// The launch ended early; unwinds an OS thread out of its kernel.
struct Abandon {};

// What the whole launch shares.
struct Launch {
    void (*body)(void*);
    void* arguments;
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    uint64_t seed;
    std::vector<unsigned> order;

    std::atomic<bool> failed{false};
    std::mutex message_lock;
    std::string message;

    unsigned threads() const { return block.x * block.y * block.z; }

    void fail(const std::string& text) {
        std::lock_guard<std::mutex> guard(message_lock);
        if (!failed.exchange(true)) {
            message = text;
        }
    }
};

enum class State { running, parked, left };

struct Block;

struct Thread {
    Here where;
    unsigned index;
    Block* block;
    State state = State::running;
    // What it waits in, while parked.
    Operation operation = Operation::none;
    uint32_t mask = 0;
    uint64_t value = 0;
    unsigned source = 0;
    Site site{"", 0};
    // What came of it.
    uint64_t result = 0;
#ifdef CUZK_EMULATOR_THREADS
    std::condition_variable woken;
#else
    struct Fiber* fiber = nullptr;
#endif
};

__thread Thread* current = nullptr;

std::string text(const char* format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

struct FreeArray {
    void operator()(void* memory) const { free(memory); }
};
using Array = std::unique_ptr<void, FreeArray>;

Array poisoned(size_t bytes, size_t alignment) {
    void* memory = nullptr;
    alignment = std::max(alignment, sizeof(void*));
    if (posix_memalign(&memory, alignment, std::max<size_t>(bytes, 1)) != 0) {
        fputs("cuzk emulator: no memory for shared arrays\n", stderr);
        abort();
    }
    memset(memory, POISON, bytes);
    return Array(memory);
}

struct Block {
    Launch& launch;
    // Which block of the grid; a worker uses one Block for one block after another.
    uint3 index{};
    std::vector<Thread> threads;
    // Of each warp, those that wait in an operation of the warp, and those that have left.
    struct Lanes {
        uint32_t waiting = 0;
        uint32_t left = 0;
    };
    std::vector<Lanes> warps;
    unsigned parked = 0;
    unsigned left = 0;
    unsigned at_barrier = 0;
    std::map<const void*, Array> arrays;
    Array dynamic;
    std::mutex lock;

    explicit Block(Launch& launch_)
        : launch(launch_), threads(launch_.threads()), warps((launch_.threads() + WARP - 1) / WARP) {
        for (unsigned i = 0; i < threads.size(); ++i) {
            Thread& thread = threads[i];
            const dim3 size = launch.block;
            thread.index = i;
            thread.block = this;
            thread.where.thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
            thread.where.block_size = size;
            thread.where.grid_size = launch.grid;
            thread.where.lane = i % WARP;
        }
    }

    void begin(unsigned number) {
        const dim3 grid = launch.grid;
        index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
        for (Thread& thread : threads) {
            thread.where.block = index;
            thread.state = State::running;
            thread.operation = Operation::none;
        }
        std::fill(warps.begin(), warps.end(), Lanes{});
        parked = left = at_barrier = 0;
        arrays.clear();
        dynamic.reset();
    }

    std::string place(const Thread& thread) const {
        return text("block (%u, %u, %u) thread (%u, %u, %u)", index.x, index.y, index.z, thread.where.thread.x,
                    thread.where.thread.y, thread.where.thread.z);
    }

    std::string doing(const Thread& thread) const {
        if (thread.state == State::left) {
            return "has left the kernel";
        }
        if (thread.state == State::running) {
            return "runs";
        }
        const bool whole_block = thread.operation <= Operation::barrier_or;
        return text("waits in %s%s at %s:%d", name_of(thread.operation),
                    whole_block ? "" : text(" of mask %08x", thread.mask).c_str(), thread.site.file, thread.site.line);
    }

    void fail(const Thread& thread, const std::string& what) {
        launch.fail(place(thread) + ": " + what);
    }

    // Two threads that should be in one operation.
    void fail_pair(const Thread& one, const Thread& other, const char* what) {
        fail(one, text("%s: it %s, thread (%u, %u, %u) %s", what, doing(one).c_str(), other.where.thread.x,
                       other.where.thread.y, other.where.thread.z, doing(other).c_str()));
    }

    // Below: the block's lock is held, in threads mode.

    // `thread` has parked or left. Settles what that completes; false: the launch has failed.
    bool arrived(Thread& thread) {
        if (thread.operation >= Operation::barrier && thread.operation <= Operation::barrier_or) {
            ++at_barrier;
            if (left > 0) {
                for (const Thread& other : threads) {
                    if (other.state == State::left) {
                        fail_pair(thread, other, "divergent barrier");
                        return false;
                    }
                }
            }
            if (at_barrier == threads.size()) {
                return settle_barrier();
            }
        } else if (!settle_warp(thread)) {
            return false;
        }
        return check_progress();
    }

    bool check_progress() {
        if (parked == 0 || parked + left < threads.size()) {
            return true;
        }
        const Thread* first = nullptr;
        for (const Thread& thread : threads) {
            if (thread.state != State::parked) {
                continue;
            }
            if (first == nullptr) {
                first = &thread;
            } else if (thread.operation != first->operation || thread.site.line != first->site.line ||
                       thread.mask != first->mask) {
                fail_pair(*first, thread, "deadlock, nobody in the block can go on");
                return false;
            }
        }
        for (const Thread& thread : threads) {
            if (thread.state == State::left) {
                fail_pair(*first, thread, "deadlock, nobody in the block can go on");
                return false;
            }
        }
        fail(*first, "deadlock, nobody in the block can go on: it " + doing(*first));
        return false;
    }

    bool settle_barrier() {
        const Thread& first = threads.front();
        uint64_t count = 0;
        for (const Thread& thread : threads) {
            if (thread.operation != first.operation || !is_same(thread.site, first.site)) {
                fail_pair(first, thread, "divergent barrier");
                return false;
            }
            count += thread.value;
        }
        uint64_t result = count;
        if (first.operation == Operation::barrier_and) {
            result = count == threads.size();
        } else if (first.operation == Operation::barrier_or) {
            result = count > 0;
        }
        at_barrier = 0;
        for (Thread& thread : threads) {
            wake(thread, result);
        }
        return true;
    }

    // The lowest of some lanes of the thread's warp.
    const Thread& lane_of(const Thread& thread, uint32_t lanes) const {
        return threads[thread.index - thread.where.lane + static_cast<unsigned>(__builtin_ctz(lanes))];
    }

    // The lanes that `thread` waits with; settles their operation once all are there.
    bool settle_warp(Thread& thread) {
        const unsigned warp_begin = thread.index - thread.index % WARP;
        const unsigned lanes = std::min<unsigned>(WARP, threads.size() - warp_begin);
        if ((thread.mask >> thread.where.lane & 1) == 0) {
            fail(thread, "is not in its own mask: it " + doing(thread));
            return false;
        }
        if (lanes < WARP && thread.mask >> lanes != 0) {
            fail(thread, "names lanes that the block does not have: it " + doing(thread));
            return false;
        }
        Lanes& warp = warps[thread.index / WARP];
        warp.waiting |= 1u << thread.where.lane;
        if ((thread.mask & warp.left) != 0) {
            fail_pair(thread, lane_of(thread, thread.mask & warp.left), "a lane of the mask will not come");
            return false;
        }
        // Until all are there one of the others will do, as those before it have been compared with each other.
        const uint32_t others = thread.mask & warp.waiting & ~(1u << thread.where.lane);
        const bool complete = (thread.mask & ~warp.waiting) == 0;
        for (uint32_t rest = others; rest != 0; rest &= rest - 1) {
            const Thread& other = lane_of(thread, rest);
            if (other.operation != thread.operation || other.mask != thread.mask || !is_same(other.site, thread.site)) {
                fail_pair(thread, other, "lanes of a mask in different operations");
                return false;
            }
            if (!complete) {
                return true;
            }
        }
        if (!complete) {
            return true;
        }
        warp.waiting &= ~thread.mask;
        uint32_t votes = 0;
        uint32_t sum = 0;
        uint64_t values[WARP] = {};
        for (unsigned lane = 0; lane < lanes; ++lane) {
            if (thread.mask >> lane & 1) {
                values[lane] = threads[warp_begin + lane].value;
                votes |= values[lane] != 0 ? 1u << lane : 0;
                sum += static_cast<uint32_t>(values[lane]);
            }
        }
        for (unsigned lane = 0; lane < lanes; ++lane) {
            if ((thread.mask >> lane & 1) == 0) {
                continue;
            }
            Thread& other = threads[warp_begin + lane];
            uint64_t result = 0;
            switch (other.operation) {
                case Operation::shuffle:
                    if (other.source >= WARP || (other.mask >> other.source & 1) == 0) {
                        fail(other, text("takes the value of lane %u, which is not in the mask: it %s", other.source,
                                         doing(other).c_str()));
                        return false;
                    }
                    result = values[other.source];
                    break;
                case Operation::ballot: result = votes; break;
                case Operation::any: result = votes != 0; break;
                case Operation::all: result = votes == other.mask; break;
                case Operation::reduce_add: result = sum; break;
                case Operation::match_any:
                    for (unsigned with = 0; with < lanes; ++with) {
                        if ((other.mask >> with & 1) && values[with] == values[lane]) {
                            result |= 1u << with;
                        }
                    }
                    break;
                default: break;
            }
            wake(other, result);
        }
        return true;
    }

    void wake(Thread& thread, uint64_t result) {
        thread.result = result;
        thread.operation = Operation::none;
        thread.state = State::running;
        --parked;
        resume(thread);
    }

    // `thread` has returned from the kernel; false: the launch has failed.
    bool leave(Thread& thread) {
        thread.state = State::left;
        ++left;
        warps[thread.index / WARP].left |= 1u << thread.where.lane;
        for (const Thread& other : threads) {
            if (parked == 0) {
                break;
            }
            if (other.state != State::parked) {
                continue;
            }
            const bool misses = other.operation <= Operation::barrier_or ||
                                (other.index / WARP == thread.index / WARP && (other.mask >> thread.where.lane & 1));
            if (misses) {
                fail_pair(other, thread,
                          other.operation <= Operation::barrier_or ? "divergent barrier"
                                                                   : "a lane of the mask will not come");
                return false;
            }
        }
        return check_progress();
    }

    void* array(const void* key, size_t bytes, size_t alignment) {
        Array& found = arrays[key];
        if (!found) {
            found = poisoned(bytes, alignment);
        }
        return found.get();
    }

    void* dynamic_array() {
        if (!dynamic) {
            dynamic = poisoned(launch.shared_bytes, 16);
        }
        return dynamic.get();
    }

    void resume(Thread& thread);
};

std::mt19937_64 random_source(uint64_t seed, uint64_t stream) {
    return std::mt19937_64(seed ^ (stream + 1) * 0x9e3779b97f4a7c15ull);
}

#ifdef CUZK_EMULATOR_THREADS

}  // namespace
}  // namespace cuzk_emulator

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

namespace {

void Block::resume(Thread& thread) {
    thread.woken.notify_one();
}

void run_thread(Launch& launch, std::vector<std::unique_ptr<Block>>& blocks, unsigned index) {
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

#else  // fibers

struct Fiber {
    Context context;
    void* stack = nullptr;
    Thread* thread = nullptr;
    void* fake_stack = nullptr;
};

constexpr size_t STACK_BYTES = 1 << 20;

// Stacks of launches that are over: mapping one costs more than most threads do. Under the address sanitizer each
// launch has new ones, since abandoned frames leave their marks on old ones.
std::mutex spare_stacks_lock;
std::vector<void*> spare_stacks;
constexpr size_t MAX_SPARE_STACKS = 4096;

void* map_stack(size_t page) {
    {
        std::lock_guard<std::mutex> guard(spare_stacks_lock);
        if (!spare_stacks.empty()) {
            void* stack = spare_stacks.back();
            spare_stacks.pop_back();
            return stack;
        }
    }
    void* stack = mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE) != 0) {
        fputs("cuzk emulator: no memory for the stacks of threads\n", stderr);
        abort();
    }
    return static_cast<char*>(stack) + page;
}

void give_back_stack(void* stack, size_t page) {
#ifndef CUZK_ADDRESS_SANITIZER
    std::lock_guard<std::mutex> guard(spare_stacks_lock);
    if (spare_stacks.size() < MAX_SPARE_STACKS) {
        spare_stacks.push_back(stack);
        return;
    }
#endif
    munmap(static_cast<char*>(stack) - page, STACK_BYTES + page);
}

// One OS thread's share of a launch.
struct Worker {
    Launch& launch;
    Block block;
    std::mt19937_64 random;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Fiber*> idle;
    // Threads that may run: woken ones, and, up to `unstarted`, those that have not begun.
    std::vector<Thread*> ready;
    std::vector<Thread*> unstarted;
    Fiber* running = nullptr;
    Context home;
    const void* home_stack = nullptr;
    size_t home_stack_bytes = 0;
    void* home_fake_stack = nullptr;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

    Worker(Launch& launch_, unsigned number)
        : launch(launch_), block(launch_), random(random_source(launch_.seed, number)) {}

    ~Worker() {
        for (auto& fiber : fibers) {
            give_back_stack(fiber->stack, page);
        }
    }

    Fiber* take_fiber();
    void run_block(unsigned number);

    // Next thread that has not begun, if that is what should run next.
    Thread* begin_next() {
        if (unstarted.empty() || launch.failed) {
            return nullptr;
        }
        Thread* thread = unstarted.back();
        unstarted.pop_back();
        return thread;
    }

    void switch_to(Fiber* fiber) {
        running = fiber;
        set_current(fiber->thread);
#ifdef CUZK_ADDRESS_SANITIZER
        __sanitizer_start_switch_fiber(&home_fake_stack, fiber->stack, STACK_BYTES);
#endif
        change(home, fiber->context);
#ifdef CUZK_ADDRESS_SANITIZER
        __sanitizer_finish_switch_fiber(home_fake_stack, nullptr, nullptr);
#endif
        running = nullptr;
    }

    void switch_home(Fiber* fiber) {
#ifdef CUZK_ADDRESS_SANITIZER
        __sanitizer_start_switch_fiber(&fiber->fake_stack, home_stack, home_stack_bytes);
#endif
        change(fiber->context, home);
#ifdef CUZK_ADDRESS_SANITIZER
        __sanitizer_finish_switch_fiber(fiber->fake_stack, nullptr, nullptr);
#endif
    }

    static void set_current(Thread* thread) {
        current = thread;
        here = thread == nullptr ? nullptr : &thread->where;
    }
};

__thread Worker* worker = nullptr;

// A fiber runs one thread after another; between them it may go idle.
void fiber_main() {
    Worker& mine = *worker;
    Fiber* fiber = mine.running;
#ifdef CUZK_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(nullptr, &mine.home_stack, &mine.home_stack_bytes);
#endif
    for (;;) {
        Thread* thread = fiber->thread;
        thread->fiber = fiber;
        mine.launch.body(mine.launch.arguments);
        mine.block.leave(*thread);
        fiber->thread = mine.begin_next();
        if (fiber->thread == nullptr) {
            mine.idle.push_back(fiber);
            mine.switch_home(fiber);
        } else {
            Worker::set_current(fiber->thread);
        }
    }
}

Fiber* Worker::take_fiber() {
    if (!idle.empty()) {
        Fiber* fiber = idle.back();
        idle.pop_back();
        return fiber;
    }
    fibers.push_back(std::make_unique<Fiber>());
    Fiber* fiber = fibers.back().get();
    fiber->stack = map_stack(page);
    prepare(fiber->context, fiber->stack, STACK_BYTES, fiber_main);
    return fiber;
}

void Worker::run_block(unsigned number) {
    block.begin(number);
    ready.clear();
    unstarted.clear();
    for (Thread& thread : block.threads) {
        unstarted.push_back(&thread);
    }
    std::shuffle(unstarted.begin(), unstarted.end(), random);
    while (!launch.failed && block.left < block.threads.size()) {
        const size_t choices = ready.size() + (unstarted.empty() ? 0 : 1);
        const size_t choice = random() % choices;
        if (choice == ready.size()) {
            Thread* thread = begin_next();
            if (thread == nullptr) {
                // Another worker's block has failed just now.
                return;
            }
            Fiber* fiber = take_fiber();
            fiber->thread = thread;
            switch_to(fiber);
        } else {
            Thread* thread = ready[choice];
            ready[choice] = ready.back();
            ready.pop_back();
            switch_to(thread->fiber);
        }
    }
}

void Block::resume(Thread& thread) {
    // The thread that settles an operation never parked: it goes on by itself.
    if (&thread != current) {
        worker->ready.push_back(&thread);
    }
}

// Gives the OS thread back for good: a fiber of a failed launch is never resumed.
[[noreturn]] void abandon() {
    for (;;) {
        worker->switch_home(worker->running);
    }
}

void run_worker(Launch& launch, std::atomic<size_t>& next, unsigned number) {
    Worker mine(launch, number);
    worker = &mine;
    for (;;) {
        const size_t at = next.fetch_add(1);
        if (at >= launch.order.size() || launch.failed) {
            break;
        }
        mine.run_block(launch.order[at]);
    }
    Worker::set_current(nullptr);
    worker = nullptr;
}

void run(Launch& launch, unsigned workers) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    const size_t count = std::min<size_t>(std::max(workers, 1u), launch.order.size());
    for (unsigned number = 1; number < count; ++number) {
        threads.emplace_back([&launch, &next, number] { run_worker(launch, next, number); });
    }
    run_worker(launch, next, 0);
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

int barrier(Operation operation, int value, Site site) {
    return static_cast<int>(exchange(operation, ~0u, static_cast<uint64_t>(value), 0, site));
}

uint64_t exchange(Operation operation, uint32_t mask, uint64_t value, unsigned source, Site site) {
    Thread& thread = *current;
    thread.operation = operation;
    thread.mask = mask;
    thread.value = value;
    thread.source = source;
    thread.site = site;
    thread.state = State::parked;
    ++thread.block->parked;
    if (!thread.block->arrived(thread)) {
        abandon();
    }
    if (thread.state == State::parked) {
        worker->switch_home(thread.fiber);
    }
    return thread.result;
}

void* shared(const void* key, size_t bytes, size_t alignment) {
    return current->block->array(key, bytes, alignment);
}

void* dynamic_shared() {
    return current->block->dynamic_array();
}

void trap(Site site) {
    current->block->fail(*current, text("__trap at %s:%d", site.file, site.line));
    abandon();
}

namespace {

#endif

}  // namespace
}  // namespace cuzk_emulator

// The door for Rust (crates/cuzk-kernels/src/emulator.rs).
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
