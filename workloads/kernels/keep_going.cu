// Decides on the device whether the body of a WHILE node runs again. Apart from the other kernels because the
// call below exists only since CUDA 12.3; the driver provides it when it compiles this.

extern "C" __global__ void keep_going(cudaGraphConditionalHandle again, const unsigned *state, unsigned max_iterations)
{
    unsigned iterations = state[2];
    unsigned done = state[3];
    cudaGraphSetConditional(again, !done && iterations < max_iterations);
}
