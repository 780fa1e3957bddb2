// The kernel of the runtime API programs, launched and counted in one place.
#pragma once
#include <cuda_runtime.h>

#include "counted.h"

__global__ void spin(int *out, int steps) {
    int value = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    for (int step = 0; step < steps; step++) value = value * 1664525 + 1013904223;
    if (value == 42) *out = value;
}

// Enqueues one kernel without counting it: what a capture records runs when its graph does.
inline void enqueue(int *out, int steps, cudaStream_t stream, int blocks = 1) {
    void *arguments[] = {&out, &steps};
    CHECK(cudaLaunchKernel((const void *)spin, dim3(blocks), dim3(64), arguments, 0, stream));
}

inline void launch(int *out, int steps, cudaStream_t stream, int blocks = 1) {
    enqueue(out, steps, stream, blocks);
    counted.kernels++;
}

// A graph of kernels in a row, with a copy and a memset at its end if `whole`.
struct Graph {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    int kernels = 0;
    bool whole = false;

    Graph(int *device, int *pinned, int kernels_, int steps, bool whole_) : kernels(kernels_), whole(whole_) {
        cudaStream_t stream;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int kernel = 0; kernel < kernels; kernel++) enqueue(device, steps, stream);
        if (whole) {
            CHECK(cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
            CHECK(cudaMemsetAsync(device + 1, 0, 1 << 16, stream));
        }
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&ready, graph, 0));
        CHECK(cudaStreamDestroy(stream));
    }

    void launch(cudaStream_t stream) {
        CHECK(cudaGraphLaunch(ready, stream));
        counted.kernels += kernels;
        if (whole) counted.copies++, counted.memsets++;
    }
};
