// A lock-free queue for one producer and one consumer, and a stack for several.
//
//~ verdict: race-free
//~ topic: lock-free queue, C++ atomics
//~ source: each slot is written before the index is released and read after it is acquired; the
//~ | stack is taken whole
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

template <typename T, unsigned CAPACITY>
class Queue {
public:
    bool push(const T &item) {
        unsigned tail = tail_.load(std::memory_order_relaxed);
        if (tail - head_.load(std::memory_order_acquire) == CAPACITY) return false;
        items_[tail % CAPACITY] = item;
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }

    bool pop(T &item) {
        unsigned head = head_.load(std::memory_order_relaxed);
        if (head == tail_.load(std::memory_order_acquire)) return false;
        item = items_[head % CAPACITY];
        head_.store(head + 1, std::memory_order_release);
        return true;
    }

private:
    std::array<T, CAPACITY> items_{};
    std::atomic<unsigned> head_{0}, tail_{0};
};

struct Node {
    int value;
    Node *next;
};

static Queue<int, 4> queue;
static std::atomic<Node *> top{nullptr};

static void push_all(int base) {
    for (int i = 0; i < 20; i++) {
        Node *node = new Node{base + i, top.load(std::memory_order_relaxed)};
        while (!top.compare_exchange_weak(node->next, node, std::memory_order_release,
                                          std::memory_order_relaxed)) {
        }
    }
}

int main() {
    int sum = 0, stacked = 0;
    std::thread producer([] {
        for (int i = 1; i <= 100; i++) {
            while (!queue.push(i)) std::this_thread::yield();
        }
    });
    std::thread consumer([&sum] {
        for (int i = 0, item = 0; i < 100; i++) {
            while (!queue.pop(item)) std::this_thread::yield();
            sum += item;
        }
    });
    std::thread pusher1(push_all, 0), pusher2(push_all, 1000);
    std::thread taker([&stacked] {
        for (int taken = 0; taken < 40;) {
            Node *node = top.exchange(nullptr, std::memory_order_acquire);
            if (node == nullptr) std::this_thread::yield();
            while (node != nullptr) {
                Node *next = node->next;
                stacked += node->value;
                delete node;
                node = next;
                taken++;
            }
        }
    });
    producer.join();
    consumer.join();
    pusher1.join();
    pusher2.join();
    taker.join();
    std::printf("%d %d\n", sum, stacked);
    return 0;
}
