// A family of processes: one forked before CUDA starts and one after, which never use it, and one that is started with
// exec and uses it. Each that uses CUDA counts for itself.
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

static void work(int steps) {
    int *device, host = 0;
    CHECK(cudaMalloc(&device, 1 << 16));
    for (int step = 0; step < steps; step++) {
        launch(device, 100, nullptr);
        launch(device, 100, nullptr);
        CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
        counted.copies++;
    }
    CHECK(cudaDeviceSynchronize());
}

// Waits for a child that has to end with `code`.
static void join(pid_t child, int code) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != code) {
        fprintf(stderr, "child %d ended with status %d, not %d\n", (int)child, status, code);
        exit(5);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        work(60);
        counted.print();
        return 9;
    }
    const pid_t before = fork();
    if (before == 0) {
        usleep(50000);
        _exit(1);
    }
    work(100);
    const pid_t after = fork();
    if (after == 0) {
        usleep(50000);
        exit(2);  // Runs what was registered to run at the exit of the parent.
    }
    const pid_t other = fork();
    if (other == 0) {
        execl("/proc/self/exe", argv[0], "--child", (char *)nullptr);
        _exit(127);
    }
    work(100);
    join(before, 1);
    join(after, 2);
    join(other, 9);
    work(100);
    counted.print();
    return 0;
}
