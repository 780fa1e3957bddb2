// The loops that the cost of recording is measured on. Each prints a line `result: {...}` for each round of it.
//
//   record_bench SECTION...
//     loop       launches of an empty kernel into one stream, ns per launch
//     range      the launch loop before, between and after cudaProfilerStart and cudaProfilerStop
//     switch     the launch loop and the waited-for graph in short pieces, by turns in the one and the other state of what
//                BARE_CLOCK of bare_inject.c lets change, ns of the middle piece: in one process, whose pace from the next
//                one's does not matter then
//     reuse      how long a launch takes that CUPTI needs another buffer on the device for: the middle of the longest around
//                each RECORD_BENCH_SLOTS-th op, beside those halfway between, once all buffers have been used; ns.
//                And how long CUDA takes to begin
//     huge       replays of a graph of 200,000 kernels, ns per kernel
//     time       the launch loop for six seconds, in pieces of a quarter of a second, each with the time since CUDA began
//   record_bench turns IN OUT
//     Does a piece of one of these whenever the file IN says its first letter, on the processors of the list behind it, and
//     says in the file OUT how long it took, ns: so that programs that are recorded differently take turns, and the pace of
//     the machine is the same for all of them.
//     loop       launches of an empty kernel into one stream, per launch
//     threads    the same from four threads, each with a stream, per launch (wall of all over launches of all)
//     graph      replays of a graph of 20 kernels, waited for after every 500, per replay: with more underway, a program under
//                Nsight Systems 2025.3 ends with an error of the GPU (Xid 13)
//     synced     replays of a graph of 40 kernels, each waited for, per replay
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
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

// Replays of a graph, waited for after every so many and at the end.
static void replay(cudaGraphExec_t graph, cudaStream_t stream, long count, long at_once) {
    for (long i = 1; i <= count; i++) {
        CHECK(cudaGraphLaunch(graph, stream));
        if (i % at_once == 0 || i == count) CHECK(cudaStreamSynchronize(stream));
    }
}

template <typename Piece>
static void by_turns(const char *section, int pieces, long count, Piece piece) {
    // The driver keeps the client's symbols to itself.
    const char *const client = getenv("BARE_CLOCK") ? getenv("CUDA_INJECTION64_PATH") : nullptr;
    void *const library = client ? dlopen(client, RTLD_NOLOAD | RTLD_LAZY) : nullptr;
    const auto change = library ? (void (*)(int))dlsym(library, "bare_switch") : nullptr;
    if (client && !change) {
        fprintf(stderr, "%s has no bare_switch\n", client);
        exit(3);
    }
    std::vector<double> spent[2];
    for (int i = 0; i < 2 * pieces; i++) {
        if (change) change(i % 2);
        piece();
        const double from = now();
        piece();
        spent[i % 2].push_back(now() - from);
    }
    for (int state = 0; state < 2; state++) {
        std::nth_element(spent[state].begin(), spent[state].begin() + pieces / 2, spent[state].end());
        char name[16];
        snprintf(name, sizeof name, "%s %d", section, state);
        result(name, spent[state][pieces / 2], count);
    }
}

static void switched(int pieces) {
    cudaStream_t stream = stream_of_its_own();
    cudaGraphExec_t graph = graph_of(40);
    by_turns("loop", pieces, 300, [=] { loop(stream, 300); });
    by_turns("synced", pieces, 10, [=] { replay(graph, stream, 10, 1); });
}

static void huge(int rounds) {
    const long kernels = 200000;
    cudaStream_t stream = stream_of_its_own();
    cudaGraphExec_t graph = graph_of((int)kernels);
    for (int round = 0; round < rounds; round++) {
        const double from = now();
        replay(graph, stream, 1, 1);
        result("huge", now() - from, kernels);
    }
}

// A buffer on the device has room for `slots` ops, and CUPTI has `buffers` of them that are new at first.
static void reuse(long slots, long buffers, long times) {
    cudaStream_t stream = stream_of_its_own();
    const long near = slots / 8 < 64 ? slots / 8 : 64;
    std::vector<double> at, between;
    double longest[2] = {0, 0};
    const double begun = now();
    const long count = (buffers + times) * slots;
    for (long i = 0; i < count; i++) {
        const double from = now();
        launch(stream);
        const double length = now() - from;
        const long phase = i % slots;
        const bool on[2] = {phase < near || phase >= slots - near, phase >= slots / 2 - near && phase < slots / 2 + near};
        for (int which = 0; which < 2; which++) {
            if (on[which]) longest[which] = std::max(longest[which], length);
        }
        if (phase == near && i > buffers * slots) at.push_back(longest[0]);
        if (phase == near) longest[0] = 0;
        if (phase == slots / 2 + near && i > buffers * slots) between.push_back(longest[1]);
        if (phase == slots / 2 + near) longest[1] = 0;
        // Not where it is looked at.
        if (i % 500 == 250 && !on[0] && !on[1]) CHECK(cudaStreamSynchronize(stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    const double spent = now() - begun;
    for (std::vector<double> *found : {&at, &between}) std::sort(found->begin(), found->end());
    result("reuse", at[at.size() / 2], 1);
    result("between", between[between.size() / 2], 1);
    result("launch", spent, count);
}

// The time of one unit of a piece. A part of it goes before, so that nothing is left of what another program did.
template <typename Work>
static double piece(long count, long units, Work work) {
    work(std::min(count / 4, 1000L) + 1);
    const double from = now();
    work(count);
    return 1e9 * (now() - from) / (double)(count * units);
}

// Keeps this thread and those that it starts to the processors of a comma-separated list.
static void move_to(const char *list) {
    cpu_set_t processors;
    CPU_ZERO(&processors);
    char *end;
    for (long processor = strtol(list, &end, 10); end != list; list = *end ? end + 1 : end, processor = strtol(list, &end, 10))
        CPU_SET(processor, &processors);
    if (sched_setaffinity(0, sizeof processors, &processors)) exit(3);
}

static void turns(const char *in, const char *out, double scale) {
    cudaStream_t streams[4];
    for (cudaStream_t &stream : streams) stream = stream_of_its_own();
    cudaGraphExec_t short_graph = graph_of(20), long_graph = graph_of(40);
    const int said = open(in, O_RDONLY);
    FILE *const answers = fopen(out, "w");
    if (said < 0 || !answers) exit(3);
    const auto scaled = [=](double count) { return (long)(count * scale) + 1; };
    double found = 0;
    while (true) {
        fprintf(answers, "%.2f\n", found);
        fflush(answers);
        // A line is one write, and read at once. A recorder may send signals.
        char line[256];
        const ssize_t length = TEMP_FAILURE_RETRY(read(said, line, sizeof line - 1));
        if (length <= 0) return;
        line[length] = 0;
        move_to(line + 1);
        const char which = line[0];
        if (which == 'l') found = piece(scaled(4000), 1, [&](long count) { loop(streams[0], count); });
        if (which == 't') {
            found = piece(scaled(1500), 4, [&](long count) {
                std::vector<std::thread> workers;
                for (cudaStream_t stream : streams) workers.emplace_back([=] { loop(stream, count); });
                for (std::thread &worker : workers) worker.join();
            });
        }
        if (which == 'g') found = piece(scaled(700), 1, [&](long count) { replay(short_graph, streams[0], count, 500); });
        if (which == 's') found = piece(scaled(250), 1, [&](long count) { replay(long_graph, streams[0], count, 1); });
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
    const double before = now();
    CHECK(cudaFree(nullptr));
    begun = now();
    if (argc == 4 && !strcmp(argv[1], "turns")) {
        turns(argv[2], argv[3], scale);
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        const auto is = [=](const char *name) { return !strcmp(argv[i], name); };
        if (is("loop")) loops(3, scaled(50000));
        if (is("switch")) switched((int)scaled(300));
        if (is("reuse")) {
            const char *const slots = getenv("RECORD_BENCH_SLOTS"), *const buffers = getenv("RECORD_BENCH_BUFFERS");
            result("begin", begun - before, 1);
            reuse(slots ? atol(slots) : 65536, buffers ? atol(buffers) : 16, (long)scaled(8));
        }
        if (is("huge")) huge(3);
        if (is("range")) range(scaled(20000));
        if (is("time")) over_time(6 * (scale < 1 ? 0.5 : 1));
    }
    return 0;
}
