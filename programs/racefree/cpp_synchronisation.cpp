// C++ shared_mutex, condition_variable, call_once, promise and future, async.
//
//~ verdict: race-free
//~ topic: C++ mutex, C++ future
//~ source: each shared variable is under its mutex, initialised once, or handed over by a future
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

static std::shared_mutex table_lock;
static int table[4];
static std::once_flag once;
static int initial;
static std::mutex lock;
static std::condition_variable changed;
static int waiting;

static int work(int id) {
    std::call_once(once, [] { initial = 7; });
    {
        std::unique_lock<std::shared_mutex> exclusive(table_lock);
        table[id] = initial + id;
    }
    std::unique_lock<std::mutex> guard(lock);
    waiting++;
    changed.notify_all();
    changed.wait(guard, [] { return waiting == 3; });
    guard.unlock();
    std::shared_lock<std::shared_mutex> shared(table_lock);
    return table[0] + table[1] + table[2];
}

int main() {
    std::promise<int> promise;
    std::future<int> answer = promise.get_future();
    auto a = std::async(std::launch::async, work, 0);
    auto b = std::async(std::launch::async, work, 1);
    std::thread c([&promise] { promise.set_value(work(2)); });
    int sums = a.get() + b.get() + answer.get();
    c.join();
    auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("no"); });
    bool caught = false;
    try {
        failing.get();
    } catch (const std::runtime_error &) {
        caught = true;
    }
    std::printf("%d, caught %d\n", sums, caught);
    return 0;
}
