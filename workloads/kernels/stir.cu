// One kernel for several workloads: to[i] = stir(from[i]).

#include "relax.cuh"

extern "C" __global__ void stir_all(const float *from, float *to, unsigned size, float rate, unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        to[i] = stir(from[i], rate, steps);
}
