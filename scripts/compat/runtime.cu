// A program of the runtime API: kernels on two streams, copies of each direction, memsets, events and a graph.
#include "kernels.h"

int main() {
    const size_t bytes = 1 << 20;
    int *device, *other, *pinned;
    static int pageable[1 << 18];
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMalloc(&other, bytes));
    CHECK(cudaMallocHost(&pinned, bytes));
    cudaStream_t streams[2];
    for (cudaStream_t &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

    for (int step = 0; step < 400; step++) {
        CHECK(cudaMemcpyAsync(device, pinned, bytes / 4, cudaMemcpyHostToDevice, streams[0]));
        counted.copies++;
        launch(device, 200, streams[0], 8);
        launch(device, 200, streams[0]);
        CHECK(cudaEventRecord(event, streams[0]));
        CHECK(cudaStreamWaitEvent(streams[1], event, 0));
        launch(other, 100, streams[1]);
        CHECK(cudaMemsetAsync(other, 0, bytes / 2, streams[1]));
        counted.memsets++;
        if (step % 8 == 7) {
            CHECK(cudaMemcpy(pageable, device, bytes / 8, cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpyAsync(other, device, bytes / 2, cudaMemcpyDeviceToDevice, streams[1]));
            counted.copies += 2;
            CHECK(cudaStreamSynchronize(streams[1]));
        }
    }
    CHECK(cudaDeviceSynchronize());
    Graph graph(device, pinned, 10, 100, true);
    for (int replay = 0; replay < 100; replay++) {
        graph.launch(streams[replay % 2]);
        if (replay % 10 == 9) CHECK(cudaStreamSynchronize(streams[1]));
    }
    CHECK(cudaDeviceSynchronize());
    counted.print();
    return 7;  // An exit code of its own, to be handed through.
}
