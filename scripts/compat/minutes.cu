// Works for a long time: threads that launch kernels, and one that replays a graph of 20 kernels.
//
//   minutes SECONDS THREADS GRAPH PACE_US LOG
//
// PACE_US of 0 is as fast as it goes; otherwise each thread rests that long after 10 launches or one replay, and what it
// launched is waited for and read back. LOG gets one line a second: CLOCK_MONOTONIC seconds, kernels so far, launch
// calls so far; the first line is the process id.
#include <thread>
#include <unistd.h>
#include <vector>

#include "kernels.h"

static std::atomic<bool> over{false};
static std::atomic<long> calls{0};

static void launches(long pace) {
    cudaStream_t stream;
    int *device, *pinned;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, 1 << 16));
    CHECK(cudaMallocHost(&pinned, 64));
    long since = 0;
    while (!over.load(std::memory_order_relaxed)) {
        for (int kernel = 0; kernel < 10; kernel++) enqueue(device, 10, stream);
        counted.kernels += 10;
        calls += 10;
        since += 10;
        if (pace > 0) {
            CHECK(cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
            counted.copies++;
            CHECK(cudaStreamSynchronize(stream));
            usleep((useconds_t)pace);
        } else if (since >= 1000) {
            CHECK(cudaStreamSynchronize(stream));
            since = 0;
        }
    }
    CHECK(cudaStreamSynchronize(stream));
}

static void replays(long pace) {
    cudaStream_t stream;
    int *device;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, 1 << 16));
    Graph graph(device, nullptr, 20, 10, false);
    for (long replay = 1; !over.load(std::memory_order_relaxed); replay++) {
        graph.launch(stream);
        calls++;
        if (pace > 0 || replay % 50 == 0) CHECK(cudaStreamSynchronize(stream));
        if (pace > 0) usleep((useconds_t)pace);
    }
    CHECK(cudaStreamSynchronize(stream));
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    const double length = atof(argv[1]);
    const int threads = atoi(argv[2]);
    const long pace = atol(argv[4]);
    FILE *log = fopen(argv[5], "w");
    if (!log) return 2;
    fprintf(log, "%d\n", (int)getpid());
    fflush(log);
    CHECK(cudaFree(nullptr));
    std::vector<std::thread> workers;
    for (int thread = 0; thread < threads; thread++) workers.emplace_back(launches, pace);
    if (atoi(argv[3])) workers.emplace_back(replays, pace);
    const double begun = seconds();
    while (seconds() - begun < length) {
        usleep(1000000);
        fprintf(log, "%.6f %ld %ld\n", seconds(), counted.kernels.load(), calls.load());
        fflush(log);
    }
    over = true;
    for (std::thread &worker : workers) worker.join();
    CHECK(cudaDeviceSynchronize());
    counted.print();
    printf("calls: %ld\n", calls.load());
    return 0;
}
