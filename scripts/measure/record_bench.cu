// The loops that the cost of recording is measured on. Each prints a line `result: {...}` for each round of it.
//
//   record_bench SECTION...
//     loop       launches of an empty kernel into one stream, ns per launch
//     threads    the same from four threads, each with a stream, ns per launch (wall of all over launches of all)
//     graph      replays of a graph of 20 kernels, waited for at the end, ns per replay
//     synced     replays of a graph of 40 kernels, each waited for, ns per replay
//     range      the launch loop before, between and after cudaProfilerStart and cudaProfilerStop
//     time       the launch loop for six seconds, in pieces of a quarter of a second, each with the time since CUDA began
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#define CHECK(call)                                                                     \
    do {                                                                                \
        const int error_ = (int)(call);                                                 \
        if (error_) {                                                                   \
            fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, error_); \
            exit(3);                                                                    \
        }                                                                               \
    } while (0)

// As in cuda_profiler_api.h, which not every toolkit is installed with.
extern "C" cudaError_t CUDARTAPI cudaProfilerStart(void);
extern "C" cudaError_t CUDARTAPI cudaProfilerStop(void);

__global__ void nothing() {}

static double begun;

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void launch(cudaStream_t stream) {
    CHECK(cudaLaunchKernel((const void *)nothing, dim3(1), dim3(32), nullptr, 0, stream));
}

static cudaStream_t stream_of_its_own() {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void result(const char *section, double seconds, long count) {
    printf("result: {\"section\": \"%s\", \"ns\": %.2f, \"count\": %ld, \"at\": %.3f}\n", section,
           1e9 * seconds / (double)count, count, now() - begun);
    fflush(stdout);
}

// The time of `count` launches from their first to the end of their last.
static double loop(cudaStream_t stream, long count) {
    const double from = now();
    for (long i = 0; i < count; i++) launch(stream);
    CHECK(cudaStreamSynchronize(stream));
    return now() - from;
}

static void loops(int rounds, long count) {
    cudaStream_t stream = stream_of_its_own();
    loop(stream, 5000);
    for (int round = 0; round < rounds; round++) result("loop", loop(stream, count), count);
}

static void threads(int rounds, long count) {
    std::vector<cudaStream_t> streams;
    for (int i = 0; i < 4; i++) streams.push_back(stream_of_its_own());
    for (int round = -1; round < rounds; round++) {
        const double from = now();
        std::vector<std::thread> workers;
        for (cudaStream_t stream : streams) workers.emplace_back([=] { loop(stream, count); });
        for (std::thread &worker : workers) worker.join();
        if (round >= 0) result("threads", now() - from, 4 * count);
    }
}

static cudaGraphExec_t graph_of(int kernels) {
    cudaStream_t stream = stream_of_its_own();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; i++) launch(stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphUpload(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    return ready;
}

static void graphs(const char *section, int kernels, bool synced, int rounds, long count) {
    cudaStream_t stream = stream_of_its_own();
    cudaGraphExec_t graph = graph_of(kernels);
    for (int round = -1; round < rounds; round++) {
        const double from = now();
        for (long i = 0; i < count; i++) {
            CHECK(cudaGraphLaunch(graph, stream));
            if (synced) CHECK(cudaStreamSynchronize(stream));
        }
        CHECK(cudaStreamSynchronize(stream));
        if (round >= 0) result(section, now() - from, count);
    }
}

static void range(long count) {
    cudaStream_t stream = stream_of_its_own();
    loop(stream, 5000);
    const char *const names[] = {"before", "between", "after"};
    for (int part = 0; part < 3; part++) {
        if (part == 1) CHECK(cudaProfilerStart());
        if (part == 2) CHECK(cudaProfilerStop());
        loop(stream, 5000);
        for (int round = 0; round < 5; round++) result(names[part], loop(stream, count), count);
    }
}

static void over_time(double length) {
    cudaStream_t stream = stream_of_its_own();
    while (now() - begun < length) {
        const double from = now();
        double spent = 0;
        long count = 0;
        while (now() - from < 0.25) {
            spent += loop(stream, 1000);
            count += 1000;
        }
        result("time", spent, count);
    }
}

int main(int argc, char **argv) {
    const char *text = getenv("RECORD_BENCH_SCALE");
    const double scale = text ? atof(text) : 1;
    const auto scaled = [=](double count) { return (long)(count * scale) + 1; };
    CHECK(cudaFree(nullptr));
    begun = now();
    for (int i = 1; i < argc; i++) {
        const auto is = [=](const char *name) { return !strcmp(argv[i], name); };
        if (is("loop")) loops(3, scaled(50000));
        if (is("threads")) threads(3, scaled(12000));
        if (is("graph")) graphs("graph", 20, false, 3, scaled(2000));
        if (is("synced")) graphs("synced", 40, true, 3, scaled(1000));
        if (is("range")) range(scaled(20000));
        if (is("time")) over_time(6 * (scale < 1 ? 0.5 : 1));
    }
    return 0;
}
