// A program of the driver API alone, whose kernel comes as PTX and is compiled by the driver.
#include <cuda.h>

#include "counted.h"

static const char *const PTX = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 out)
{
    .reg .b64 %address, %global;
    .reg .b32 %value;
    ld.param.u64 %address, [out];
    cvta.to.global.u64 %global, %address;
    mov.u32 %value, 42;
    st.global.u32 [%global], %value;
    ret;
}
)";

int main() {
    CHECK(cuInit(0));
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CUmodule module;
    CHECK(cuModuleLoadData(&module, PTX));
    CUfunction touch;
    CHECK(cuModuleGetFunction(&touch, module, "touch"));
    const size_t bytes = 1 << 16;
    CUdeviceptr memory;
    CHECK(cuMemAlloc(&memory, bytes));
    void *host;
    CHECK(cuMemAllocHost(&host, bytes));
    CUstream stream;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    int answer = 0;
    for (int step = 0; step < 300; step++) {
        void *arguments[] = {&memory};
        CHECK(cuMemsetD32Async(memory, 0, bytes / 4, stream));
        counted.memsets++;
        for (int kernel = 0; kernel < 3; kernel++) {
            CHECK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
            counted.kernels++;
        }
        CHECK(cuMemcpyDtoHAsync(host, memory, bytes, stream));
        counted.copies++;
        CHECK(cuStreamSynchronize(stream));
        if (step % 10 == 9) {
            CHECK(cuMemcpyDtoH(&answer, memory, sizeof answer));
            counted.copies++;
        }
    }
    CHECK(cuCtxSynchronize());
    counted.print();
    return answer == 42 ? 0 : 4;
}
