// A synchronised list whose contains_all iterates over the other list without its lock.
//
// After the JDK's synchronized LinkedList: iterator() is synchronised, the iteration is not.
//
//~ verdict: racy
//~ topic: exception
//~ figure: racefuzzer 5.3, containsAll
//~ twin: racefree/contains_all_locked.cpp
//~ race a: the modification count
//~   real: yes
//~   observed: maybe
//~   class: spec-violated exception
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: racefuzzer 5.3: the iterator sees the count changed and throws. Happens-before does not
//~   | see it when the removal comes before iterator()
//~ race b: the size, asked for the end of the iteration
//~   real: yes
//~   observed: maybe
//~   class: spec-violated exception
//~   or: k-witness-harmless
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: racefuzzer 5.3: past the first element the iteration misses the end and throws; before
//~   | it, the iteration just ends
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>

class SyncList {
public:
    class Iterator {
    public:
        Iterator(const SyncList &of, int modifications) : list(of), expected(modifications) {}

        bool has_next() const {
            return cursor != list.size;                          //~ RACE(b) read
        }

        int next() {
            if (list.modifications != expected) {                //~ RACE(a) read
                throw std::runtime_error("concurrent modification");
            }
            return list.items[cursor++];
        }

    private:
        const SyncList &list;
        int expected;
        int cursor = 0;
    };

    Iterator iterator() {
        std::lock_guard<std::mutex> guard(lock);
        return Iterator(*this, modifications);
    }

    bool contains(int item) {
        std::lock_guard<std::mutex> guard(lock);
        for (int i = 0; i < size; i++) {
            if (items[i] == item) return true;
        }
        return false;
    }

    bool contains_all(SyncList &other) {
        for (Iterator i = other.iterator(); i.has_next();) {
            if (!contains(i.next())) return false;
        }
        return true;
    }

    void remove_all() {
        std::lock_guard<std::mutex> guard(lock);
        modifications = modifications + 1;                       //~ RACE(a) write
        size = 0;                                                //~ RACE(b) write
    }

private:
    std::mutex lock;
    const int items[3] = {1, 2, 3};
    volatile int size = 3;
    volatile int modifications = 0;
};

static SyncList l1, l2;
static bool contained;

// What usually makes the removal come after the iteration.
static void other_work() {
    for (volatile int i = 0; i < 200000;) {
        i = i + 1;
    }
}

int main() {
    std::thread reader([] { contained = l1.contains_all(l2); });
    std::thread remover([] {
        other_work();
        l2.remove_all();
    });
    reader.join();
    remover.join();
    std::printf("contained %d\n", contained);
    return 0;
}
