// The smallest CUPTI client that records what Bubblescope records: it counts the records and drops them.
//
// Loaded with CUDA_INJECTION64_PATH into a program that is not recorded otherwise, it is the floor that the cost of
// recording is measured against. BARE_KINDS holds the activity kinds, as comma-separated numbers of CUpti_ActivityKind,
// which are enabled in this order.
//
// Build: cc -O2 -shared -fPIC -I$CUPTI/include -I$CUDA/include bare_inject.c -L$CUPTI/lib64 -lcupti -o libbare_inject.so
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (8u << 20)
#define POOL 16

static void *pool[POOL];
static int pool_used;
static long records, bytes, buffers;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    int slot = __sync_fetch_and_add(&pool_used, 1);
    *buffer = slot < POOL ? pool[slot] : calloc(1, BUFFER_BYTES);
    *size = BUFFER_BYTES;
    *max_records = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) records++;
    bytes += (long)valid;
    buffers++;
}

static void at_exit(void) {
    cuptiActivityFlushAll(1);
    fprintf(stderr, "bare client: %ld records, %ld bytes, %ld buffers\n", records, bytes, buffers);
}

static void enable(uint32_t kind) {
    CUptiResult result = cuptiActivityEnable((CUpti_ActivityKind)kind);
    if (result) fprintf(stderr, "bare client: kind %u gives error %d\n", kind, (int)result);
}

__attribute__((visibility("default"))) int InitializeInjection(void) {
    for (int slot = 0; slot < POOL; slot++) {
        pool[slot] = aligned_alloc(4096, BUFFER_BYTES);
        memset(pool[slot], 0, BUFFER_BYTES);
    }
    uint8_t one = 1;
    size_t size = sizeof one;
    cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &one);
    cuptiActivityRegisterCallbacks(requested, completed);
    for (const char *list = getenv("BARE_KINDS"); list && *list;) {
        char *end;
        enable((uint32_t)strtoul(list, &end, 10));
        list = *end ? end + 1 : end;
    }
    atexit(at_exit);
    return 1;
}
