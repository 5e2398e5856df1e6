// One OS thread runs one block at a time; the threads of a block take turns in random order, and change only
// where they wait. Several OS threads share the blocks.

#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "block.hpp"
#include "context.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define CUZK_ADDRESS_SANITIZER 1
#endif

namespace cuzk_emulator {

struct Fiber {
    Context context;
    void* stack = nullptr;
    Thread* thread = nullptr;
    void* fake_stack = nullptr;
};

namespace {

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
#ifdef CUZK_ADDRESS_SANITIZER
    // An abandoned frame's marks outlive its stack, and this one may lie where that did.
    __asan_unpoison_memory_region(static_cast<char*>(stack) + page, STACK_BYTES);
#endif
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

}  // namespace

void Block::resume(Thread& thread) {
    // The thread that settles an operation never parked: it goes on by itself.
    if (&thread != current) {
        worker->ready.push_back(&thread);
    }
}

namespace {

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

}  // namespace

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

}  // namespace cuzk_emulator
