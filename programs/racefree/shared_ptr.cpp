// std::shared_ptr: copies in many threads, the last one deletes.
//
//~ verdict: race-free
//~ topic: C++ shared_ptr, double free
//~ source: the reference count is atomic, each thread has its own shared_ptr object, and the
//~ | deleter runs after all uses
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

static int deleted;

struct Node {
    int payload = 3;
    ~Node() { deleted++; }
};

int main() {
    int sums[4] = {};
    std::vector<std::thread> threads;
    {
        auto node = std::make_shared<Node>();
        for (int &sum : sums) {
            threads.emplace_back([node, &sum] {
                for (int i = 0; i < 10; i++) {
                    std::shared_ptr<Node> copy = node;
                    sum += copy->payload;
                }
            });
        }
    }
    for (auto &thread : threads) thread.join();
    threads.clear();
    std::printf("%d %d, deleted %d\n", sums[0], sums[3], deleted);
    return 0;
}
