// A block of a launch: who waits in what, and what comes of it.
//
// A thread that must wait parks. Whoever brings the last missing thread settles the operation for
// all of them and wakes them. So a block in which every thread is parked or gone will never move
// again: that is a deadlock, and it is reported with the places where its threads stand.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "emulator.hpp"

namespace cuzk_emulator {

constexpr unsigned WARP = 32;
constexpr unsigned char POISON = 0xa5;

inline const char* name_of(Operation operation) {
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

inline bool is_same(const Site& one, const Site& other) {
    return one.line == other.line && (one.file == other.file || strcmp(one.file, other.file) == 0);
}

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

// The thread whose code runs on this OS thread.
extern __thread Thread* current;

inline std::string text(const char* format, ...) {
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

inline Array poisoned(size_t bytes, size_t alignment) {
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

    // `thread` may go on.
    void resume(Thread& thread);
};

inline std::mt19937_64 random_source(uint64_t seed, uint64_t stream) {
    return std::mt19937_64(seed ^ (stream + 1) * 0x9e3779b97f4a7c15ull);
}

// Runs all blocks of a launch, by at most so many OS threads where fibers do it.
void run(Launch& launch, unsigned workers);

}  // namespace cuzk_emulator
