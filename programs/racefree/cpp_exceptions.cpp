// Eight threads throw and catch exceptions: the unwinder's own data do not race.
//
//~ verdict: race-free
//~ topic: exception, C++ mutex
//~ source: the threads share only a total, under a mutex
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static int total;

static int descend(int depth, const std::string &why) {
    if (depth == 0) throw std::out_of_range(why);
    return descend(depth - 1, why + "x") + 1;
}

static void work(int id) {
    for (int i = 0; i < 5; i++) {
        try {
            descend(id + i, "depth");
        } catch (const std::out_of_range &error) {
            std::lock_guard<std::mutex> guard(lock);
            total += static_cast<int>(std::string(error.what()).size());
        }
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int id = 0; id < 8; id++) threads.emplace_back(work, id);
    for (auto &thread : threads) thread.join();
    std::printf("%d\n", total);
    return 0;
}
