// What the kernels of several workloads do to one number. Compiled with --fmad=false: the host's reference
// (src/arithmetic.rs) gives the same bits.

// `steps` damped steps towards a target.
__device__ __forceinline__ float relax(float x, float target, unsigned steps)
{
    for (unsigned step = 0; step < steps; ++step)
        x = x + 0.5f * (target - x);
    return x;
}

// A step of the logistic map, approached in `steps` damped steps. Chaotic for rates near 4 and many steps: the
// result tells how often it was applied, in which order and to what. Stays between 0 and 1.
__device__ __forceinline__ float stir(float x, float rate, unsigned steps)
{
    return relax(x, rate * x * (1.0f - x), steps);
}
