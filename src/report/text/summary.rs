//! What a recording holds, in one line.

use super::units;
use crate::trace::{Ns, OpKind, Trace};

/// Processes, device work and seconds: `2 processes, 12,345 kernels and 40 copies over 3.21 s`.
pub fn contents(trace: &Trace) -> String {
    let count = |kind| trace.ops.kind.iter().filter(|&&known| known == kind).count() as u64;
    let processes = units::counted(trace.processes.len() as u64, "process", "processes");
    let mut work: Vec<String> = [
        (OpKind::Kernel, "kernel", "kernels"),
        (OpKind::Graph, "graph launch", "graph launches"),
        (OpKind::Copy, "copy", "copies"),
        (OpKind::Memset, "memset", "memsets"),
    ]
    .into_iter()
    .map(|(kind, one, many)| (count(kind), one, many))
    .filter(|&(number, ..)| number > 0)
    .map(|(number, one, many)| units::counted(number, one, many))
    .collect();
    let last = work.pop().map_or_else(|| "no GPU activity".to_owned(), |last| joined(&work, last));
    format!("{processes}, {last} over {}", units::time(trace.end - Ns(0)))
}

fn joined(first: &[String], last: String) -> String {
    if first.is_empty() { last } else { format!("{} and {last}", first.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{CorrelationId, Detail, GraphId, OpInput, TraceBuilder};

    fn trace(kinds: &[OpKind]) -> Trace {
        let mut builder = TraceBuilder::new();
        let process = builder.process(1);
        let device = builder.device(0);
        let context = builder.context(process, 1, device);
        let stream = builder.stream(context, 7);
        let name = builder.name("x");
        for (at, &kind) in kinds.iter().enumerate() {
            let start = 1_000 * at as i64 + 1;
            builder.push_op(OpInput {
                start,
                end: start + 1_000,
                stream,
                kind,
                name,
                correlation: CorrelationId::NONE,
                bytes: 0,
                graph: GraphId::NONE,
                graph_node: 0,
                detail: Detail::None,
            });
        }
        builder.finish().unwrap()
    }

    #[test]
    fn what_is_there_is_counted_and_nothing_else() {
        use OpKind::{Copy, Graph, Kernel};
        assert_eq!(contents(&trace(&[Kernel, Copy, Kernel])), "1 process, 2 kernels and 1 copy over 3.00 µs");
        assert_eq!(
            contents(&trace(&[Kernel, Copy, Graph])),
            "1 process, 1 kernel, 1 graph launch and 1 copy over 3.00 µs"
        );
        assert_eq!(contents(&trace(&[Copy])), "1 process, 1 copy over 1.00 µs");
        assert_eq!(contents(&trace(&[])), "1 process, no GPU activity over 0 ns");
    }
}
