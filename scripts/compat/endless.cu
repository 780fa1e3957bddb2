// Works until it is asked to end with SIGINT, as from a terminal, and then ends in order: it finishes its step, prints
// what it did and leaves with code 6. After a minute it ends by itself, with code 1.
#include <csignal>
#include <unistd.h>

#include "kernels.h"

static volatile std::sig_atomic_t asked = 0;

int main() {
    std::signal(SIGINT, [](int) { asked++; });
    int *device, host = 0;
    CHECK(cudaMalloc(&device, 1 << 16));
    printf("ready\n");
    fflush(stdout);
    const double begun = seconds();
    while (!asked && seconds() - begun < 60) {
        for (int kernel = 0; kernel < 4; kernel++) launch(device, 100, nullptr);
        CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
        counted.copies++;
        usleep(200);
    }
    CHECK(cudaDeviceSynchronize());
    counted.print();
    return asked == 1 ? 6 : 1;
}
