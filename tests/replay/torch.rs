//! Reads the little of a torch.profiler trace that the replay needs: ops, calls and which belong together.

use std::path::Path;

use bubblescope::trace::{CallInput, CorrelationId, Detail, GraphId, OpInput, OpKind, Trace, TraceBuilder};
use serde_json::Value;

pub(crate) fn read(path: &Path) -> Trace {
    let file = flate2::read::MultiGzDecoder::new(std::fs::File::open(path).unwrap());
    let json: Value = serde_json::from_reader(std::io::BufReader::new(file)).unwrap();
    let mut builder = TraceBuilder::new();
    for event in json["traceEvents"].as_array().unwrap() {
        let kind = match event["cat"].as_str() {
            Some("kernel") => Some(OpKind::Kernel),
            Some("gpu_memcpy") => Some(OpKind::Copy),
            Some("gpu_memset") => Some(OpKind::Memset),
            Some("cuda_runtime" | "cuda_driver") => None,
            _ => continue,
        };
        let number = |key: &str| event["args"][key].as_u64().unwrap() as u32;
        let ns = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as i64;
        let (start, end) = (ns("ts"), ns("ts") + ns("dur"));
        let correlation = CorrelationId(number("correlation").into());
        let name = builder.name(event["name"].as_str().unwrap());
        // All belongs to the one process that the recordings are of.
        let process = builder.process(1);
        if let Some(kind) = kind {
            let device = builder.device(number("device"));
            let context = builder.context(process, number("context"), device);
            let stream = builder.stream(context, number("stream"));
            let (graph, detail) = (GraphId::NONE, Detail::None);
            builder.push_op(OpInput {
                start,
                end,
                stream,
                kind,
                name,
                correlation,
                bytes: 0,
                graph,
                graph_node: 0,
                detail,
            });
        } else {
            let thread = builder.thread(process, event["tid"].as_u64().unwrap());
            builder.push_call(CallInput { start, end, thread, name, correlation, result: 0 });
        }
    }
    builder.finish().unwrap()
}
