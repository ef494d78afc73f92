// Exceptions thrown through several frames in eight threads at once, caught, rethrown, and carried to another thread.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Guard {
    long &count;
    ~Guard() { count++; }
};

[[gnu::noinline]] static long deep(int depth, long &unwound) {
    Guard guard{unwound};
    if (depth == 0) throw std::runtime_error("bottom");
    return deep(depth - 1, unwound) + 1;
}

static void work(int id, long &caught, long &unwound, std::exception_ptr &last) {
    for (int i = 0; i < 40; i++) {
        try {
            try {
                deep(i % 20, unwound);
            } catch (const std::runtime_error &error) {
                if (i % 2) throw std::logic_error(std::to_string(id) + error.what());
                caught++;
            }
        } catch (const std::exception &) {
            caught++;
            last = std::current_exception();
        }
    }
}

int main() {
    constexpr int threads = 8;
    std::vector<std::thread> running;
    std::vector<long> caught(threads * 16), unwound(threads * 16);
    std::vector<std::exception_ptr> last(threads);
    for (int id = 0; id < threads; id++)
        running.emplace_back(work, id, std::ref(caught[id * 16]), std::ref(unwound[id * 16]), std::ref(last[id]));
    for (auto &thread : running) thread.join();
    for (int id = 0; id < threads; id++) {
        try {
            std::rethrow_exception(last[id]);
        } catch (const std::logic_error &error) {
            std::printf("%d: caught %ld, unwound %ld, last %s\n", id, caught[id * 16], unwound[id * 16], error.what());
        }
    }
    throw std::runtime_error("nobody catches this");
}
