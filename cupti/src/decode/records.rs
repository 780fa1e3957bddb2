//! The records, as far as they are decoded.
//!
//! Fields have CUPTI's names in snake case; times are nanoseconds of CUPTI's clock, 0 where CUPTI did not learn them.
//! A field that is `None` is newer than the CUPTI that wrote the record. Offsets are those of the newest struct of each
//! kind (CUPTI 13.5), and older structs are its prefixes: tests compare them with the generated bindings.

use super::field::{ApiDomain, Field, ObjectId, StringPtr};
use super::layout::records;

records! {
    /// One run of a kernel (kinds `KERNEL` and `CONCURRENT_KERNEL`).
    Kernel = (CUpti_ActivityKernel13, 208) {
        /// Registers of one thread.
        registers_per_thread: u16 = 6 registersPerThread;
        /// Start on the device.
        start: u64 = 16 start;
        /// End on the device.
        end: u64 = 24 end;
        /// End of the kernel and of all kernels it launched itself; 0 if unknown.
        completed: u64 = 32 completed;
        /// Device.
        device_id: u32 = 40 deviceId;
        /// Context.
        context_id: u32 = 44 contextId;
        /// Stream, unique within its context.
        stream_id: u32 = 48 streamId;
        /// Blocks in X.
        grid_x: i32 = 52 gridX;
        /// Blocks in Y.
        grid_y: i32 = 56 gridY;
        /// Blocks in Z.
        grid_z: i32 = 60 gridZ;
        /// Threads of a block in X.
        block_x: i32 = 64 blockX;
        /// Threads of a block in Y.
        block_y: i32 = 68 blockY;
        /// Threads of a block in Z.
        block_z: i32 = 72 blockZ;
        /// Bytes of static shared memory.
        static_shared_memory: i32 = 76 staticSharedMemory;
        /// Bytes of dynamic shared memory.
        dynamic_shared_memory: i32 = 80 dynamicSharedMemory;
        /// Bytes of local memory of one thread.
        local_memory_per_thread: u32 = 84 localMemoryPerThread;
        /// Correlation id of the API call that launched it.
        correlation_id: u32 = 92 correlationId;
        /// Number of this launch within its context.
        grid_id: i64 = 96 gridId;
        /// Mangled name.
        name: StringPtr = 104 name;
        /// When the command was queued on the host; 0 unless latency timestamps are on.
        queued: u64 = 120 queued;
        /// When the command was given to the device; 0 unless latency timestamps are on.
        submitted: u64 = 128 submitted;
        /// `CUpti_ActivityLaunchType`.
        launch_type: u8 = 136 launchType;
        /// Bytes of shared memory the launch was given.
        shared_memory_executed: u32 = 140 sharedMemoryExecuted;
        /// Node of the graph that launched it; 0 if none.
        graph_node_id: u64 = 144 graphNodeId;
        /// Graph that launched it; 0 if none.
        graph_id: u32 = 156 graphId;
        /// Hardware channel.
        channel_id: u32 = 168 channelID;
        /// `CUpti_ChannelType`.
        channel_type: u32 = 172 channelType;
        /// Blocks of a cluster in X.
        cluster_x: u32 = 176 clusterX;
        /// Blocks of a cluster in Y.
        cluster_y: u32 = 180 clusterY;
        /// Blocks of a cluster in Z.
        cluster_z: u32 = 184 clusterZ;
        /// Bytes of local memory of the launch.
        local_memory_total_v2: u64 = 192 localMemoryTotal_v2;
        /// Whether a graph launched from the device ran it. Since 13.0.
        is_device_launched: Option<u8> = 208 isDeviceLaunched;
        /// Priority of its stream. Since 13.1.
        priority: Option<i32> = 216 priority;
        /// The graph that `graph_id` was made from. Since 13.4.
        source_graph_id: Option<u32> = 232 sourceGraphId;
        /// The node that `graph_node_id` was made from. Since 13.4.
        source_graph_node_id: Option<u64> = 240 sourceGraphNodeId;
    }

    /// One copy (kind `MEMCPY`).
    Memcpy = (CUpti_ActivityMemcpy7, 88) {
        /// `CUpti_ActivityMemcpyKind`.
        copy_kind: u8 = 4 copyKind;
        /// `CUpti_ActivityMemoryKind` of the source.
        src_kind: u8 = 5 srcKind;
        /// `CUpti_ActivityMemoryKind` of the destination.
        dst_kind: u8 = 6 dstKind;
        /// `CUpti_ActivityFlag`; 1 is an asynchronous copy.
        flags: u8 = 7 flags;
        /// Bytes copied.
        bytes: u64 = 8 bytes;
        /// Start on the device.
        start: u64 = 16 start;
        /// End on the device.
        end: u64 = 24 end;
        /// Device.
        device_id: u32 = 32 deviceId;
        /// Context.
        context_id: u32 = 36 contextId;
        /// Stream.
        stream_id: u32 = 40 streamId;
        /// Correlation id of the API call.
        correlation_id: u32 = 44 correlationId;
        /// Node of the graph that ran it; 0 if none.
        graph_node_id: u64 = 64 graphNodeId;
        /// Graph that ran it; 0 if none.
        graph_id: u32 = 72 graphId;
        /// Hardware channel.
        channel_id: u32 = 76 channelID;
        /// `CUpti_ChannelType`.
        channel_type: u32 = 80 channelType;
        /// Whether a graph launched from the device ran it. Since 12.8.
        is_device_launched: Option<u8> = 84 isDeviceLaunched since 96;
        /// Copies in this record, where it is a batch. Since 12.8.
        copy_count: Option<u64> = 88 copyCount;
        /// The graph that `graph_id` was made from. Since 13.4.
        source_graph_id: Option<u32> = 96 sourceGraphId;
        /// The node that `graph_node_id` was made from. Since 13.4.
        source_graph_node_id: Option<u64> = 104 sourceGraphNodeId;
    }

    /// One copy between devices (kind `MEMCPY2`).
    MemcpyPeer = (CUpti_ActivityMemcpyPtoP4, 96) {
        /// `CUpti_ActivityMemcpyKind`.
        copy_kind: u8 = 4 copyKind;
        /// `CUpti_ActivityMemoryKind` of the source.
        src_kind: u8 = 5 srcKind;
        /// `CUpti_ActivityMemoryKind` of the destination.
        dst_kind: u8 = 6 dstKind;
        /// `CUpti_ActivityFlag`; 1 is an asynchronous copy.
        flags: u8 = 7 flags;
        /// Bytes copied.
        bytes: u64 = 8 bytes;
        /// Start on the device.
        start: u64 = 16 start;
        /// End on the device.
        end: u64 = 24 end;
        /// Device that copies.
        device_id: u32 = 32 deviceId;
        /// Context that copies.
        context_id: u32 = 36 contextId;
        /// Stream.
        stream_id: u32 = 40 streamId;
        /// Device of the source.
        src_device_id: u32 = 44 srcDeviceId;
        /// Context of the source.
        src_context_id: u32 = 48 srcContextId;
        /// Device of the destination.
        dst_device_id: u32 = 52 dstDeviceId;
        /// Context of the destination.
        dst_context_id: u32 = 56 dstContextId;
        /// Correlation id of the API call.
        correlation_id: u32 = 60 correlationId;
        /// Node of the graph that ran it; 0 if none.
        graph_node_id: u64 = 72 graphNodeId;
        /// Graph that ran it; 0 if none.
        graph_id: u32 = 80 graphId;
        /// Hardware channel.
        channel_id: u32 = 84 channelID;
        /// `CUpti_ChannelType`.
        channel_type: u32 = 88 channelType;
    }

    /// One memory set (kind `MEMSET`).
    Memset = (CUpti_ActivityMemset5, 88) {
        /// What memory was set to.
        value: u32 = 4 value;
        /// Bytes set.
        bytes: u64 = 8 bytes;
        /// Start on the device.
        start: u64 = 16 start;
        /// End on the device.
        end: u64 = 24 end;
        /// Device.
        device_id: u32 = 32 deviceId;
        /// Context.
        context_id: u32 = 36 contextId;
        /// Stream.
        stream_id: u32 = 40 streamId;
        /// Correlation id of the API call.
        correlation_id: u32 = 44 correlationId;
        /// `CUpti_ActivityFlag`; 1 is an asynchronous set.
        flags: u16 = 48 flags;
        /// `CUpti_ActivityMemoryKind`.
        memory_kind: u16 = 50 memoryKind;
        /// Node of the graph that ran it; 0 if none.
        graph_node_id: u64 = 64 graphNodeId;
        /// Graph that ran it; 0 if none.
        graph_id: u32 = 72 graphId;
        /// Hardware channel.
        channel_id: u32 = 76 channelID;
        /// `CUpti_ChannelType`.
        channel_type: u32 = 80 channelType;
        /// Whether a graph launched from the device ran it. CUPTI writes it since 13.0, but until 13.4 such a record
        /// looks like one whose padding is here: it is read since 13.4.
        is_device_launched: Option<u8> = 84 isDeviceLaunched since 104;
        /// The graph that `graph_id` was made from. Since 13.4.
        source_graph_id: Option<u32> = 88 sourceGraphId since 104;
        /// The node that `graph_node_id` was made from. Since 13.4.
        source_graph_node_id: Option<u64> = 96 sourceGraphNodeId;
    }

    /// One call of the runtime or the driver (kinds `RUNTIME`, `DRIVER` and `INTERNAL_LAUNCH_API`).
    ApiCall = (CUpti_ActivityAPI, 40) {
        /// The interface that was called.
        domain: ApiDomain = 0 kind;
        /// Which function of it: `CUpti_runtime_api_trace_cbid` or `CUpti_driver_api_trace_cbid`.
        cbid: u32 = 4 cbid;
        /// Start on the host.
        start: u64 = 8 start;
        /// End on the host.
        end: u64 = 16 end;
        /// Calling process.
        process_id: u32 = 24 processId;
        /// Calling thread.
        thread_id: u32 = 28 threadId;
        /// Number of this call, which the work it causes carries.
        correlation_id: u32 = 32 correlationId;
        /// What it returned: `cudaError_t` or `CUresult`.
        return_value: u32 = 36 returnValue;
    }

    /// One synchronisation (kind `SYNCHRONIZATION`). Ids that do not apply are [`super::NOT_APPLICABLE`].
    Synchronization = (CUpti_ActivitySynchronization2, 40) {
        /// `CUpti_ActivitySynchronizationType`.
        sync_type: u32 = 4 type_;
        /// Start on the host.
        start: u64 = 8 start;
        /// End on the host.
        end: u64 = 16 end;
        /// Correlation id of the API call.
        correlation_id: u32 = 24 correlationId;
        /// Context.
        context_id: u32 = 28 contextId;
        /// Stream that is waited for, or that waits for an event.
        stream_id: u32 = 32 streamId;
        /// Event that is waited for.
        cuda_event_id: u32 = 36 cudaEventId;
        /// Which record of that event: [`CudaEvent::cuda_event_sync_id`]. Since 12.8.
        cuda_event_sync_id: Option<u64> = 40 cudaEventSyncId;
        /// What the call returned. Since 12.8.
        return_value: Option<u32> = 48 returnValue;
    }

    /// One record of an event in a stream (kind `CUDA_EVENT`).
    CudaEvent = (CUpti_ActivityCudaEvent3, 24) {
        /// Correlation id of the API call.
        correlation_id: u32 = 4 correlationId;
        /// Context.
        context_id: u32 = 8 contextId;
        /// Stream.
        stream_id: u32 = 12 streamId;
        /// Event.
        event_id: u32 = 16 eventId;
        /// Device. Since 12.8.
        device_id: Option<u32> = 24 deviceId;
        /// When the device reached it; 0 unless device timestamps of events are on. Since 12.8.
        device_timestamp: Option<u64> = 40 deviceTimestamp;
        /// Number of this record of the event, which a wait for it carries. Since 12.8.
        cuda_event_sync_id: Option<u64> = 48 cudaEventSyncId;
        /// Node of the graph that recorded it; 0 if none. Since 13.5.
        graph_node_id: Option<u64> = 56 graphNodeId;
        /// Graph that recorded it; 0 if none. Since 13.5.
        graph_id: Option<u32> = 64 graphId;
    }

    /// One launch of a graph as a whole (kind `GRAPH_TRACE`).
    GraphTrace = (CUpti_ActivityGraphTrace2, 48) {
        /// Correlation id of the API call.
        correlation_id: u32 = 4 correlationId;
        /// Start on the device.
        start: u64 = 8 start;
        /// End on the device.
        end: u64 = 16 end;
        /// Device of the first node; `INT_MAX` if that runs on the host.
        device_id: u32 = 24 deviceId;
        /// Graph.
        graph_id: u32 = 28 graphId;
        /// Context of the first node; `INT_MAX` if that runs on the host.
        context_id: u32 = 32 contextId;
        /// Stream.
        stream_id: u32 = 36 streamId;
        /// Device of the last node; `INT_MAX` if that runs on the host. Since 12.3.
        end_device_id: Option<u32> = 48 endDeviceId;
        /// Context of the last node; `INT_MAX` if that runs on the host. Since 12.3.
        end_context_id: Option<u32> = 52 endContextId;
    }

    /// One launch of a graph by the device itself (kind `DEVICE_GRAPH_TRACE`, since 12.8).
    DeviceGraphTrace = (CUpti_ActivityDeviceGraphTrace, 56) {
        /// Device.
        device_id: u32 = 4 deviceId;
        /// Start on the device.
        start: u64 = 8 start;
        /// End on the device.
        end: u64 = 16 end;
        /// Graph.
        graph_id: u32 = 24 graphId;
        /// Graph that launched it.
        launcher_graph_id: u32 = 28 launcherGraphId;
        /// `CUpti_DeviceGraphLaunchMode`.
        device_launch_mode: u32 = 32 deviceLaunchMode;
        /// Context.
        context_id: u32 = 36 contextId;
        /// Stream.
        stream_id: u64 = 40 streamId;
    }

    /// Host time that CUPTI or the driver took for itself (kind `OVERHEAD`).
    Overhead = (CUpti_ActivityOverhead3, 40) {
        /// `CUpti_ActivityOverheadKind`.
        overhead_kind: u32 = 4 overheadKind;
        /// `CUpti_ActivityObjectKind` of `object_id`.
        object_kind: u32 = 8 objectKind;
        /// What it happened to, mostly a thread.
        object_id: ObjectId = 12 objectId;
        /// Start on the host.
        start: u64 = 24 start;
        /// End on the host.
        end: u64 = 32 end;
        /// Correlation id of the API call inside which it happened; 0 if none. Since 12.3.
        correlation_id: Option<u32> = 40 correlationId;
        /// Pointer to more, depending on the kind; whoever took the buffer from CUPTI frees it. Since 12.4.
        overhead_data: Option<u64> = 48 overheadData;
    }

    /// A context (kind `CONTEXT`).
    Context = (CUpti_ActivityContext4, 16) {
        /// Context.
        context_id: u32 = 4 contextId;
        /// Its device.
        device_id: u32 = 8 deviceId;
        /// `CUpti_ActivityComputeApiKind`.
        compute_api_kind: u16 = 12 computeApiKind;
        /// Its default stream.
        null_stream_id: u16 = 14 nullStreamId;
        /// Context that a green context belongs to. Since 12.4.
        parent_context_id: Option<u32> = 16 parentContextId;
        /// Whether it is a green context. Since 12.4.
        is_green_context: Option<u8> = 20 isGreenContext;
        /// Multiprocessors of a green context. Since 12.4.
        num_multiprocessors: Option<u16> = 22 numMultiprocessors;
        /// Process. Since 13.1.
        process_id: Option<u64> = 32 processId;
    }

    /// A stream (kind `STREAM`).
    Stream = (CUpti_ActivityStream, 24) {
        /// Its context.
        context_id: u32 = 4 contextId;
        /// Stream, unique within its context.
        stream_id: u32 = 8 streamId;
        /// Priority.
        priority: u32 = 12 priority;
        /// `CUpti_ActivityStreamFlag`: 1 default, 2 non-blocking, 3 the null stream.
        flag: u32 = 16 flag;
        /// Correlation id of the API call.
        correlation_id: u32 = 20 correlationId;
    }

    /// A device (kind `DEVICE`).
    Device = (CUpti_ActivityDevice6, 176) {
        /// Memory bandwidth in kB/s.
        global_memory_bandwidth: u64 = 8 globalMemoryBandwidth;
        /// Bytes of memory.
        global_memory_size: u64 = 16 globalMemorySize;
        /// Clock in kHz.
        core_clock_rate: u32 = 36 coreClockRate;
        /// Copy engines.
        num_memcpy_engines: u32 = 40 numMemcpyEngines;
        /// Multiprocessors.
        num_multiprocessors: u32 = 44 numMultiprocessors;
        /// Compute capability before the dot.
        compute_capability_major: u32 = 104 computeCapabilityMajor;
        /// Compute capability after the dot.
        compute_capability_minor: u32 = 108 computeCapabilityMinor;
        /// Device, as other records name it.
        id: u32 = 112 id;
        /// UUID.
        uuid: [u8; 16] = 120 uuid;
        /// Name; whoever took the buffer from CUPTI frees it.
        name: StringPtr = 136 name;
        /// Whether the process can use it.
        is_cuda_visible: u8 = 144 isCudaVisible;
        /// Whether it is divided into instances.
        is_mig_enabled: u8 = 145 isMigEnabled;
        /// GPU instance of a divided device.
        gpu_instance_id: u32 = 152 gpuInstanceId;
        /// Compute instance of a divided device.
        compute_instance_id: u32 = 156 computeInstanceId;
        /// UUID of the instance of a divided device.
        mig_uuid: [u8; 16] = 160 migUuid;
    }

    /// One allocation or release of memory (kind `MEMORY2`).
    Memory = (CUpti_ActivityMemory4, 120) {
        /// `CUpti_ActivityMemoryOperationType`.
        memory_operation_type: u32 = 4 memoryOperationType;
        /// `CUpti_ActivityMemoryKind`.
        memory_kind: u32 = 8 memoryKind;
        /// Correlation id of the API call.
        correlation_id: u32 = 12 correlationId;
        /// Virtual address.
        address: u64 = 16 address;
        /// Bytes.
        bytes: u64 = 24 bytes;
        /// When, on the host.
        timestamp: u64 = 32 timestamp;
        /// Program counter of the call.
        pc: u64 = 40 PC;
        /// Process.
        process_id: u32 = 48 processId;
        /// Device.
        device_id: u32 = 52 deviceId;
        /// Context.
        context_id: u32 = 56 contextId;
        /// Stream of a stream-ordered operation.
        stream_id: u32 = 60 streamId;
        /// Name of a variable in device memory.
        name: StringPtr = 64 name;
        /// Whether it is stream-ordered.
        is_async: u32 = 72 isAsync;
        /// Shared object the call came from. Since 12.6.
        source: Option<StringPtr> = 120 source;
    }

    /// One end of an NVTX range, or an instant (kind `MARKER`).
    Marker = (CUpti_ActivityMarker2, 56) {
        /// `CUpti_ActivityFlag`: 1 an instant, 2 a start, 4 an end.
        flags: u32 = 4 flags;
        /// When, on the host.
        timestamp: u64 = 8 timestamp;
        /// The same for both ends of a range.
        id: u32 = 16 id;
        /// `CUpti_ActivityObjectKind` of `object_id`.
        object_kind: u32 = 20 objectKind;
        /// The thread.
        object_id: ObjectId = 24 objectId;
        /// Message; null at the end of a range.
        name: StringPtr = 40 name;
        /// NVTX domain; null for the default domain.
        domain: StringPtr = 48 domain;
    }

    /// Attributes of an NVTX range or instant (kind `MARKER_DATA`).
    MarkerData = (CUpti_ActivityMarkerData2, 32) {
        /// `CUpti_ActivityFlag`.
        flags: u32 = 4 flags;
        /// Which marker: [`Marker::id`].
        id: u32 = 8 id;
        /// `CUpti_MetricValueKind` of `payload`.
        payload_kind: u32 = 12 payloadKind;
        /// Payload; a double, an integer of 4 or 8 bytes, …
        payload: u64 = 16 payload;
        /// Colour.
        color: u32 = 24 color;
        /// Category.
        category: u32 = 28 category;
        /// NVTX domain. Since 13.0.
        cupti_domain_id: Option<u32> = 32 cuptiDomainId;
    }

    /// Ties a number of another tool to an API call (kind `EXTERNAL_CORRELATION`).
    ExternalCorrelation = (CUpti_ActivityExternalCorrelation, 24) {
        /// `CUpti_ExternalCorrelationKind`.
        external_kind: u32 = 4 externalKind;
        /// The other tool's number.
        external_id: u64 = 8 externalId;
        /// Correlation id of the API call.
        correlation_id: u32 = 16 correlationId;
    }

    /// One compilation of device code at run time (kind `JIT`).
    Jit = (CUpti_ActivityJit2, 64) {
        /// `CUpti_ActivityJitEntryType`.
        jit_entry_type: u32 = 4 jitEntryType;
        /// `CUpti_ActivityJitOperationType`.
        jit_operation_type: u32 = 8 jitOperationType;
        /// Device.
        device_id: u32 = 12 deviceId;
        /// Start on the host.
        start: u64 = 16 start;
        /// End on the host.
        end: u64 = 24 end;
        /// Correlation id of the API call.
        correlation_id: u32 = 32 correlationId;
        /// The same for the records of one compilation.
        jit_operation_correlation_id: u64 = 40 jitOperationCorrelationId;
        /// Bytes of the cache entry.
        cache_size: u64 = 48 cacheSize;
        /// File of the cache entry.
        cache_path: StringPtr = 56 cachePath;
        /// Process. Since 12.4.
        process_id: Option<u32> = 64 processId;
        /// Thread. Since 12.4.
        thread_id: Option<u32> = 68 threadId;
    }

    /// One run of a host function in a stream (kind `HOST_LAUNCH`, since 13.1).
    HostLaunch = (CUpti_ActivityHostLaunch, 48) {
        /// Stream.
        stream_id: u32 = 4 streamId;
        /// Context.
        context_id: u32 = 8 contextId;
        /// Device.
        device_id: u32 = 12 deviceId;
        /// Correlation id of the API call.
        correlation_id: u32 = 16 correlationId;
        /// Process.
        process_id: u32 = 20 processId;
        /// Thread that ran the function.
        thread_id: u32 = 24 threadId;
        /// Start on the host.
        start: u64 = 32 start;
        /// End on the host.
        end: u64 = 40 end;
    }

    /// One run of a host node of a graph (kind `GRAPH_HOST_NODE`, since 13.1).
    GraphHostNode = (CUpti_ActivityGraphHostNode, 56) {
        /// Stream.
        stream_id: u32 = 4 streamId;
        /// Context.
        context_id: u32 = 8 contextId;
        /// Device.
        device_id: u32 = 12 deviceId;
        /// Correlation id of the API call that launched the graph.
        correlation_id: u32 = 16 correlationId;
        /// Graph.
        graph_id: u32 = 20 graphId;
        /// Node.
        graph_node_id: u64 = 24 graphNodeId;
        /// Process.
        process_id: u32 = 32 processId;
        /// Thread that ran the function.
        thread_id: u32 = 36 threadId;
        /// Start on the host.
        start: u64 = 40 start;
        /// End on the host.
        end: u64 = 48 end;
    }

    /// The name a program gave to a thread, stream, … (kind `NAME`).
    Name = (CUpti_ActivityName, 32) {
        /// `CUpti_ActivityObjectKind` of `object_id`.
        object_kind: u32 = 4 objectKind;
        /// What is named.
        object_id: ObjectId = 8 objectId;
        /// Its name.
        name: StringPtr = 24 name;
    }
}
