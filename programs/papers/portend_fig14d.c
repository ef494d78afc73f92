// A writer waits for a compressed block by polling a flag, sleeping between looks.
//
// After pbzip2, whose file writer polls for the next block and for the end.
//
//~ verdict: racy
//~ topic: ad hoc synchronisation
//~ figure: portend-plus fig. 14d
//~ twin: racefree/block_semaphore.c
//~ race a: the flag
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: a look before the write only sleeps once more
//~ race b: the block
//~   real: no
//~   observed: always
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: portend-plus 6.2, fig. 14d: busy wait; the block cannot be read before it is written
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int block_done;
static volatile int output_block;

static void *consumer_decompress(void *unused) {
    output_block = 900;       //~ RACE(b) write
    block_done = 1;           //~ RACE(a) write
    return unused;
}

static void *file_writer(void *unused) {
    while (!block_done) {     //~ RACE(a) read
        usleep(50);
    }
    int size = output_block;  //~ RACE(b) read
    printf("wrote %d\n", size);
    return unused;
}

int main(void) {
    pthread_t compressor, writer;
    pthread_create(&writer, NULL, file_writer, NULL);
    pthread_create(&compressor, NULL, consumer_decompress, NULL);
    pthread_join(compressor, NULL);
    pthread_join(writer, NULL);
    return 0;
}
