// A program that marks what it does with NVTX: `measured` around its steps, `step 0`, `step 1`, … around each, and one
// range that is started and ended, not pushed, around all of it. With an argument it counts only what lies in `measured`.
#include <nvtx3/nvToolsExt.h>

#include <string>

#include "kernels.h"

static void step(int *device) {
    int host = 0;
    for (int kernel = 0; kernel < 3; kernel++) launch(device, 100, nullptr);
    CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    counted.copies++;
}

int main(int argc, char **) {
    int *device;
    CHECK(cudaMalloc(&device, 1 << 16));
    const nvtxRangeId_t whole = nvtxRangeStartA("whole");
    for (int i = 0; i < 20; i++) step(device);
    if (argc > 1) counted.kernels = counted.copies = 0;
    nvtxRangePushA("measured");
    for (int i = 0; i < 50; i++) {
        nvtxRangePushA(("step " + std::to_string(i)).c_str());
        step(device);
        nvtxRangePop();
    }
    nvtxRangePop();
    const Counted &all = counted;
    const long kernels = all.kernels, copies = all.copies;
    for (int i = 0; i < 20; i++) step(device);
    CHECK(cudaDeviceSynchronize());
    nvtxRangeEnd(whole);
    if (argc > 1) counted.kernels = kernels, counted.copies = copies;
    counted.print();
    return 0;
}
