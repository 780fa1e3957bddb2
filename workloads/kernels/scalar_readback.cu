// Damped Jacobi relaxation of x[i] = coupling * (x[i-1] + x[i+1]) on a ring. The solution is zero, so the
// distance from it, the largest |x|, is known exactly and falls for as long as anyone wants to iterate.
//
// An iteration is `sweeps` sweeps over the ring, the last of which also computes that distance, the residual.
// Every kernel returns at once when the state says `done`: work that was launched too far ahead changes nothing.
//
// The host's reference is src/scalar_readback/reference.rs.

#include "relax.cuh"

struct State {
    float residual;        // of the last iteration
    float tolerance;       // done when residual <= tolerance
    unsigned iterations;   // iterations done
    unsigned done;
    unsigned pending;      // bits of the largest |x| seen so far in this iteration
    unsigned arrived;      // blocks that have added theirs to `pending`
    unsigned slots[3];     // `pending` of three consecutive iterations, for the persistent kernel
    unsigned barrier;      // arrivals at the grid barrier, for the persistent kernel
};

// Moves one unknown towards the value that its neighbours ask for.
__device__ __forceinline__ float relax(const float *from, unsigned i, unsigned size, unsigned steps, float coupling)
{
    float left = from[i == 0 ? size - 1 : i - 1];
    float right = from[i + 1 == size ? 0 : i + 1];
    float target = coupling * (left + right);
    return relax(from[i], target, steps);
}

// The block's largest value, in thread 0.
__device__ __forceinline__ float block_max(float value)
{
    __shared__ float warps[32];
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_down_sync(0xffffffffu, value, offset));
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned warp = 1; warp < blockDim.x / 32; ++warp)
            value = fmaxf(value, warps[warp]);
    return value;
}

// Sweep number `sweep` of an iteration: from `a` to `b`, or back when an odd number of sweeps came before.
extern "C" __global__ void sweep(float *a, float *b, const State *state, unsigned size, unsigned steps, float coupling,
                                 unsigned sweep, unsigned sweeps)
{
    if (state->done)
        return;
    bool odd = (state->iterations * sweeps + sweep) & 1;
    const float *from = odd ? b : a;
    float *to = odd ? a : b;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size)
        to[i] = relax(from, i, size, steps, coupling);
}

// The last sweep of an iteration, with the residual and the decision. The block that arrives last closes the
// iteration; every other block has read the state by then. `mirror`, if any, is host memory: the number of
// iterations in the upper half, the residual's bits in the lower.
extern "C" __global__ void sweep_and_check(float *a, float *b, State *state, unsigned size, unsigned steps,
                                           float coupling, unsigned sweeps, unsigned long long *mirror)
{
    if (state->done)
        return;
    bool odd = (state->iterations * sweeps + sweeps - 1) & 1;
    const float *from = odd ? b : a;
    float *to = odd ? a : b;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float largest = 0.0f;
    if (i < size) {
        float x = relax(from, i, size, steps, coupling);
        to[i] = x;
        largest = fabsf(x);
    }
    largest = block_max(largest);
    if (threadIdx.x == 0) {
        // Floats that are not negative are ordered as their bits are.
        atomicMax(&state->pending, __float_as_uint(largest));
        __threadfence();
        if (atomicAdd(&state->arrived, 1) == gridDim.x - 1) {
            __threadfence();
            unsigned bits = atomicExch(&state->pending, 0);
            float residual = __uint_as_float(bits);
            unsigned iterations = state->iterations + 1;
            state->residual = residual;
            state->iterations = iterations;
            state->done = residual <= state->tolerance;
            state->arrived = 0;
            if (mirror) {
                __threadfence_system();
                *(volatile unsigned long long *)mirror = (unsigned long long)iterations << 32 | bits;
            }
        }
    }
}

// Waits until every block of the grid has come here as often as this one. Needs a cooperative launch.
__device__ __forceinline__ void grid_barrier(unsigned *arrivals, unsigned *target)
{
    __syncthreads();
    *target += gridDim.x;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrivals, 1);
        while ((int)(*(volatile unsigned *)arrivals - *target) < 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

// The whole solve in one cooperative launch. Every iteration has a slot for its residual; it is emptied one
// iteration ahead, when the two iterations that surround it are sure not to touch it.
extern "C" __global__ void solve_persistent(float *a, float *b, State *state, unsigned size, unsigned steps,
                                            float coupling, unsigned sweeps, unsigned max_iterations)
{
    unsigned target = 0;
    float tolerance = state->tolerance;
    for (unsigned iteration = 0; iteration < max_iterations; ++iteration) {
        unsigned *slot = &state->slots[iteration % 3];
        for (unsigned sweep = 0; sweep < sweeps; ++sweep) {
            bool odd = (iteration * sweeps + sweep) & 1;
            const float *from = odd ? b : a;
            float *to = odd ? a : b;
            float largest = 0.0f;
            for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x) {
                float x = relax(from, i, size, steps, coupling);
                to[i] = x;
                largest = fmaxf(largest, fabsf(x));
            }
            if (sweep == sweeps - 1) {
                largest = block_max(largest);
                if (threadIdx.x == 0) {
                    atomicMax(slot, __float_as_uint(largest));
                    if (blockIdx.x == 0)
                        state->slots[(iteration + 1) % 3] = 0;
                }
            }
            grid_barrier(&state->barrier, &target);
        }
        float residual = __uint_as_float(*(volatile unsigned *)slot);
        bool done = residual <= tolerance;
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            state->residual = residual;
            state->iterations = iteration + 1;
            state->done = done;
        }
        if (done)
            return;
    }
}
