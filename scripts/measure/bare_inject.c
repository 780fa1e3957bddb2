// The smallest CUPTI client that records what Bubblescope records: it counts the records and drops them.
//
// Loaded with CUDA_INJECTION64_PATH into a program that is not recorded otherwise, it is the floor that the cost of
// recording is measured against, and a count of records that shares nothing with Bubblescope.
//   BARE_KINDS        activity kinds, comma-separated numbers of CUpti_ActivityKind, enabled in this order
//   BARE_LEAVE_OUT    names of API calls that are not recorded, comma-separated, without their version suffix
//   BARE_PER_THREAD   0 or 1: per-thread activity buffers (CUPTI's own default when unset)
//   BARE_BUFFER, BARE_DEVICE_BUFFER, BARE_DEVICE_BUFFERS   bytes of a buffer, and of how many on the device
//   BARE_FLUSH        how often buffers that are full are asked for, ms; only at the end when unset. Without, the buffers of
//                     threads that launch no more stay with CUPTI, which gives the others back in many small steps
//   BARE_PINNED       1: the buffers on the device are in page-locked memory of the host instead
//   BARE_DEVICE_LIMIT how many buffers on the device there may be in a context
//   BARE_CLOCK        1: CUPTI reads a clock of the client's, which `bare_switch` changes while the program runs: 0, as at the
//                     start, the system's, 1 the processor's counter. It counts how often each was read. 2: that one from the start
//   BARE_ZERO         who makes a buffer zero: `after`, the thread that gets it back (when unset), `past`, the same without
//                     taking it into its processor's cache, `before`, the thread that asks for it, or `cupti`
//   BARE_RAW          1: times of kernels by the GPU's own clock, which Nsight Systems asks for as well; no header describes
//                     it, and nothing that they describe says how that clock and the host's go together
//   BARE_CHECK_TIMES  1: kernels without times are counted
//
// Build: cc -O2 -shared -fPIC -I$CUPTI/include -I$CUDA/include bare_inject.c -L$CUPTI/lib64 -lcupti -o libbare_inject.so
#include <cupti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

// Memory of the buffers that are ready at first, and of those kept when they are not in use.
#define POOL_BYTES (128u << 20)
#define POOL 4096
#define KINDS 128
#define LAST_CBID 2000

// In no header of CUPTI's.
extern CUptiResult CUPTIAPI cuptiActivityEnableRawTimestamps(uint8_t enable) __attribute__((weak));

static size_t buffer_bytes = 8u << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *pool[POOL];
static int ready;
static volatile int asked_for, ending;
static long kinds[KINDS], records, bytes, buffers, dropped, untimed;
static int checks_times;
static enum { AFTER, PAST, BEFORE, CUPTI } zeroed;
static long readings[2];

static volatile int state;
static uint64_t first_tsc, first_ns;
static double ns_per_tick;

static uint64_t system_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t ticks(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return system_ns();
#endif
}

static uint64_t CUPTIAPI stamp(void) {
    const int now = state;
    __atomic_fetch_add(&readings[now], 1, __ATOMIC_RELAXED);
    return now ? first_ns + (uint64_t)((double)(ticks() - first_tsc) * ns_per_tick) : system_ns();
}

static void own_clock(void) {
    first_tsc = ticks(), first_ns = system_ns();
    while (system_ns() - first_ns < 20000000) {}
    ns_per_tick = (double)(system_ns() - first_ns) / (double)(ticks() - first_tsc);
    CUptiResult result = cuptiActivityRegisterTimestampCallback(stamp);
    if (result) fprintf(stderr, "bare client: a clock of its own gives error %d\n", (int)result);
}

// Mapped, since what the allocator makes of large blocks that come and go is nobody's cost of recording.
static uint8_t *fresh(void) {
    void *buffer = mmap(NULL, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return buffer == MAP_FAILED ? NULL : buffer;
}

static void zero_past(uint8_t *buffer, size_t count) {
#if defined(__x86_64__)
    const __m128i zero = _mm_setzero_si128();
    for (size_t at = 0; at < count; at += sizeof zero) _mm_stream_si128((__m128i *)(buffer + at), zero);
    _mm_sfence();
#else
    memset(buffer, 0, count);
#endif
}

static int at_most(void) {
    size_t count = POOL_BYTES / buffer_bytes;
    return count > POOL ? POOL : count < 4 ? 4 : (int)count;
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    asked_for = 1;
    pthread_mutex_lock(&lock);
    *buffer = ready > 0 ? pool[--ready] : NULL;
    pthread_mutex_unlock(&lock);
    if (!*buffer) *buffer = fresh();
    if (zeroed == BEFORE) memset(*buffer, 0, buffer_bytes);
    *size = buffer_bytes;
    *max_records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    CUpti_Activity *record = NULL;
    long found[KINDS] = {0}, all = 0, without = 0;
    // What lies an hour before this moment or a second behind it is no time of a kernel.
    const uint64_t now = checks_times ? system_ns() : 0, from = now - 3600000000000u, until = now + 1000000000u;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        all++;
        if ((unsigned)record->kind < KINDS) found[record->kind]++;
        if (checks_times && record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            // The times stand at the same place in all versions of the record.
            const CUpti_ActivityKernel9 *kernel = (const CUpti_ActivityKernel9 *)record;
            without += kernel->start < from || kernel->end < kernel->start || kernel->end > until;
        }
#if CUPTI_API_VERSION >= 22
        // The header asks for it; without, a program that fills its command buffer all the time loses memory.
        if (record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD) free(((CUpti_ActivityOverhead3 *)record)->overheadData);
#endif
    }
    if (zeroed == AFTER) memset(buffer, 0, valid);
    if (zeroed == PAST) zero_past(buffer, valid);
    pthread_mutex_lock(&lock);
    for (int kind = 0; kind < KINDS; kind++) kinds[kind] += found[kind];
    records += all;
    untimed += without;
    bytes += (long)valid;
    buffers++;
    int kept = ready < at_most();
    if (kept) pool[ready++] = buffer;
    pthread_mutex_unlock(&lock);
    if (!kept) munmap(buffer, buffer_bytes);
}

static void *flushing(void *interval) {
    while (!ending) {
        usleep((useconds_t)(uintptr_t)interval * 1000);
        if (asked_for && !ending) cuptiActivityFlushAll(0);
    }
    return NULL;
}

static void at_exit(void) {
    size_t lost = 0;
    ending = 1;
    cuptiActivityFlushAll(1);
    if (cuptiActivityGetNumDroppedRecords(NULL, 0, &lost) == CUPTI_SUCCESS) dropped += (long)lost;
    pthread_mutex_lock(&lock);
    fprintf(stderr, "bare: {\"records\": %ld, \"bytes\": %ld, \"buffers\": %ld, \"dropped\": %ld, \"untimed\": %ld, \"readings\": [%ld, %ld], \"kinds\": {",
            records, bytes, buffers, dropped, untimed, readings[0], readings[1]);
    const char *comma = "";
    for (int kind = 0; kind < KINDS; kind++) {
        if (!kinds[kind]) continue;
        fprintf(stderr, "%s\"%d\": %ld", comma, kind, kinds[kind]);
        comma = ", ";
    }
    fprintf(stderr, "}}\n");
    pthread_mutex_unlock(&lock);
}

static size_t number(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void set(CUpti_ActivityAttribute attribute, size_t size, void *value) {
    CUptiResult result = cuptiActivitySetAttribute(attribute, &size, value);
    if (result) fprintf(stderr, "bare client: attribute %d gives error %d\n", (int)attribute, (int)result);
}

static void enable(uint32_t kind) {
    CUptiResult result = cuptiActivityEnable((CUpti_ActivityKind)kind);
    if (result) fprintf(stderr, "bare client: kind %u gives error %d\n", kind, (int)result);
}

// Whether `name`, such as cudaGetDevice_v3020, is one of the comma-separated names once its suffix is off.
static int is_listed(const char *name, const char *list) {
    size_t length = strlen(name);
    const char *suffix = strstr(name, "_v");
    if (suffix && suffix[2] >= '0' && suffix[2] <= '9') length = (size_t)(suffix - name);
    for (const char *at = list; *at;) {
        size_t here = strcspn(at, ",");
        if (here == length && !strncmp(at, name, length)) return 1;
        at += here + (at[here] == ',');
    }
    return 0;
}

static void leave_out(const char *list) {
    for (uint32_t cbid = 1; cbid <= LAST_CBID; cbid++) {
        const char *name = NULL;
        if (!cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, &name) && name && is_listed(name, list))
            cuptiActivityEnableRuntimeApi(cbid, 0);
        name = NULL;
        if (!cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &name) && name && is_listed(name, list))
            cuptiActivityEnableDriverApi(cbid, 0);
    }
}

__attribute__((visibility("default"))) void bare_switch(int to) { state = to; }

__attribute__((visibility("default"))) int InitializeInjection(void) {
    buffer_bytes = number("BARE_BUFFER", buffer_bytes);
    while (ready < at_most()) pool[ready++] = fresh();
    const char *const zero = getenv("BARE_ZERO");
    for (int way = AFTER; zero && way <= CUPTI; way++) {
        if (!strcmp(zero, (const char *const[]){"after", "past", "before", "cupti"}[way])) zeroed = way;
    }
    uint8_t ours = zeroed != CUPTI;
    set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof ours, &ours);
    if (getenv("BARE_PER_THREAD")) {
        uint8_t value = (uint8_t)number("BARE_PER_THREAD", 0);
        set(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof value, &value);
    }
    uint8_t pinned = number("BARE_PINNED", 0) != 0;
    if (pinned) set(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof pinned, &pinned);
    size_t device = number("BARE_DEVICE_BUFFER", 0), devices = number("BARE_DEVICE_BUFFERS", 0);
    if (device) set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof device, &device);
    // The limit first: it has to be above the other.
    size_t limit = number("BARE_DEVICE_LIMIT", 0);
    if (limit) set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof limit, &limit);
    if (devices) set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof devices, &devices);
    checks_times = number("BARE_CHECK_TIMES", 0) != 0;
    state = number("BARE_CLOCK", 0) > 1;
    if (number("BARE_CLOCK", 0)) own_clock();
    if (number("BARE_RAW", 0)) {
        int result = cuptiActivityEnableRawTimestamps ? (int)cuptiActivityEnableRawTimestamps(1) : -1;
        if (result) fprintf(stderr, "bare client: raw times give error %d\n", result);
    }
    cuptiActivityRegisterCallbacks(requested, completed);
    for (const char *list = getenv("BARE_KINDS"); list && *list;) {
        char *end;
        enable((uint32_t)strtoul(list, &end, 10));
        list = *end ? end + 1 : end;
    }
    // Enabling a kind switches all its calls on.
    if (getenv("BARE_LEAVE_OUT")) leave_out(getenv("BARE_LEAVE_OUT"));
    const size_t interval = number("BARE_FLUSH", 0);
    pthread_t thread;
    if (interval && !pthread_create(&thread, NULL, flushing, (void *)(uintptr_t)interval)) pthread_detach(thread);
    atexit(at_exit);
    return 1;
}
