// One round of many short kernels: `begin` splits c into a and b, which are then stirred several times each,
// independently of each other, until `finish` makes a new c of both. The rate of each kernel depends on the round,
// which `begin` is told or, when told 0, counts itself.

#include "relax.cuh"

__device__ __forceinline__ float rate_of(unsigned round, unsigned position)
{
    return 3.6f + 0.05f * (float)((round + position) % 8);
}

extern "C" __global__ void begin(const float *c, float *a, float *b, unsigned *round, unsigned told, unsigned size,
                                 unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    // Nothing else in this kernel looks at the round.
    if (i == 0)
        *round = told ? told : *round + 1;
    if (i < size) {
        float x = c[i];
        a[i] = stir(x, 3.9f, steps);
        b[i] = stir(1.0f - 0.5f * x, 3.8f, steps);
    }
}

extern "C" __global__ void branch(float *x, const unsigned *round, unsigned position, unsigned size, unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        x[i] = stir(x[i], rate_of(*round, position), steps);
}

extern "C" __global__ void finish(float *c, const float *a, const float *b, unsigned size, unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        c[i] = stir(0.5f * (a[i] + b[i]), 3.7f, steps);
}

// The whole round in one kernel. Branch b's positions follow on branch a's.
extern "C" __global__ void fused(float *c, unsigned round, unsigned branch_kernels, unsigned size, unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        float x = c[i];
        float a = stir(x, 3.9f, steps);
        float b = stir(1.0f - 0.5f * x, 3.8f, steps);
        for (unsigned position = 0; position < branch_kernels; ++position) {
            a = stir(a, rate_of(round, position), steps);
            b = stir(b, rate_of(round, branch_kernels + position), steps);
        }
        c[i] = stir(0.5f * (a + b), 3.7f, steps);
    }
}
