// What a program gave the GPU to do, counted where it does it.
#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

struct Counted {
    std::atomic<long> kernels{0}, copies{0}, memsets{0};

    // One line that scripts/compat/run.py reads.
    void print() const {
        printf("counted: {\"kernels\": %ld, \"copies\": %ld, \"memsets\": %ld}\n", kernels.load(), copies.load(),
               memsets.load());
        fflush(stdout);
    }
};

inline Counted counted;

#define CHECK(call)                                                                     \
    do {                                                                                \
        const int error_ = (int)(call);                                                 \
        if (error_) {                                                                   \
            fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, error_); \
            exit(3);                                                                    \
        }                                                                               \
    } while (0)

inline double seconds(clockid_t clock = CLOCK_MONOTONIC) {
    timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
