// A static local object is made by whichever thread comes first.
//
//~ verdict: race-free
//~ topic: C++ static local
//~ source: the language guards the initialisation (C++11 6.7): it happens before every use
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

static int made;

struct Table {
    std::vector<int> squares;
    std::string name = "squares of the first numbers";
    Table() {
        made++;
        for (int i = 0; i < 50; i++) squares.push_back(i * i);
    }
};

static const Table &table() {
    static Table instance;
    return instance;
}

int main() {
    size_t sums[4] = {};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; i++) {
        threads.emplace_back([i, &sums] { sums[i] = table().squares[i] + table().name.size(); });
    }
    for (auto &thread : threads) thread.join();
    std::printf("%zu %zu %zu %zu, made %d\n", sums[0], sums[1], sums[2], sums[3], made);
    return 0;
}
