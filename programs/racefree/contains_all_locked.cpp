// The lists of papers/racefuzzer_contains_all.cpp with the iteration under the other list's lock.
//
//~ verdict: race-free
//~ topic: C++ mutex, exception
//~ source: every access to a list is under its own lock; the two locks are always taken in one order
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

class SyncList {
public:
    bool contains_all(SyncList &other) {
        std::scoped_lock guard(lock, other.lock);
        for (int item : other.items) {
            bool found = false;
            for (int own : items) found |= own == item;
            if (!found) return false;
        }
        return true;
    }

    void remove_all() {
        std::lock_guard<std::mutex> guard(lock);
        items.clear();
    }

    int first() {
        std::lock_guard<std::mutex> guard(lock);
        if (items.empty()) throw std::runtime_error("no such element");
        return items.front();
    }

private:
    std::mutex lock;
    std::vector<int> items{1, 2, 3};
};

int main() {
    SyncList l1, l2;
    bool contained = false;
    int caught = 0;
    std::thread reader([&] { contained = l1.contains_all(l2); });
    std::thread remover([&] { l2.remove_all(); });
    reader.join();
    remover.join();
    try {
        caught = l2.first();
    } catch (const std::runtime_error &) {
        caught = -1;
    }
    std::printf("contained %d, caught %d\n", contained, caught);
    return 0;
}
