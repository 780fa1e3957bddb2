//! People open trace files with pandas, Polars or DuckDB, without any help from this project.

use std::process::{Command, ExitStatus};

use bubblescope::trace::{
    CallInput, CorrelationId, Detail, EventInput, GraphId, OpInput, OpKind, SyncInput, SyncKind, Trace, TraceBuilder,
    file,
};

/// Prints one line of JSON: the reader, and what it sees in the file. Exits with 77 when no reader is installed.
const SCRIPT: &str = r#"
import json, sys
path = sys.argv[1]

def pandas():
    import pandas, pyarrow.parquet
    table = pyarrow.parquet.read_table(path)
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    frame = pandas.read_parquet(path)
    kernels = frame[frame.kind == "kernel"]
    return dict(
        rows=len(frame), columns=list(frame.columns), kinds=sorted(frame.kind.unique()),
        kernel_ns=int(kernels.dur_ns.sum()), bytes=int(frame.bytes.sum()), names=sorted(set(kernels.name)),
        calls_of_ops=int(frame[frame.kind == "call"].merge(frame[frame.kind.isin(["kernel", "copy"])], on=["pid", "correlation"]).shape[0]),
        schema=metadata["bubblescope.schema"], epoch_ns=json.loads(metadata["bubblescope.meta"])["epoch_ns"])

def polars():
    import polars as pl
    frame = pl.read_parquet(path)
    metadata = pl.read_parquet_metadata(path)
    kernels = frame.filter(pl.col("kind") == "kernel")
    calls = frame.filter(pl.col("kind") == "call")
    ops = frame.filter(pl.col("kind").is_in(["kernel", "copy"]))
    return dict(
        rows=frame.height, columns=frame.columns, kinds=sorted(frame["kind"].unique()),
        kernel_ns=int(kernels["dur_ns"].sum()), bytes=int(frame["bytes"].sum()), names=sorted(set(kernels["name"])),
        calls_of_ops=calls.join(ops, on=["pid", "correlation"]).height,
        schema=metadata["bubblescope.schema"], epoch_ns=json.loads(metadata["bubblescope.meta"])["epoch_ns"])

def duckdb():
    import duckdb
    one = lambda query: duckdb.execute(query, [path]).fetchall()
    metadata = {bytes(key).decode(): bytes(value).decode() for key, value in one("select key, value from parquet_kv_metadata(?)")}
    return dict(
        rows=one("select count(*) from read_parquet(?)")[0][0],
        columns=[row[0] for row in one("describe select * from read_parquet(?)")],
        kinds=[row[0] for row in one("select distinct kind from read_parquet(?) order by kind")],
        kernel_ns=int(one("select sum(dur_ns) from read_parquet(?) where kind = 'kernel'")[0][0]),
        bytes=int(one("select sum(bytes) from read_parquet(?)")[0][0]),
        names=[row[0] for row in one("select distinct name from read_parquet(?) where kind = 'kernel' order by name")],
        calls_of_ops=one("with t as (from read_parquet(?)) select count(*) from t c join t o using (pid, correlation) where c.kind = 'call' and o.kind in ('kernel', 'copy')")[0][0],
        schema=metadata["bubblescope.schema"], epoch_ns=json.loads(metadata["bubblescope.meta"])["epoch_ns"])

found = 0
for reader in pandas, polars, duckdb:
    try:
        seen = reader()
    except ImportError:
        continue
    found += 1
    print(json.dumps(dict(reader=reader.__name__, seen=seen)))
sys.exit(0 if found else 77)
"#;

const EPOCH: i64 = 1_764_000_000_000_000_000;

fn trace() -> Trace {
    let mut builder = TraceBuilder::new();
    let process = builder.process(4_000_000_000);
    let device = builder.device(0);
    let context = builder.context(process, 1, device);
    let stream = builder.stream(context, 7);
    let thread = builder.thread(process, u64::MAX);
    let (launch, solve, dot) = (builder.name("cuLaunchKernel"), builder.name("solve"), builder.name("dot"));
    for at in 0..1_000i64 {
        let start = EPOCH + at * 10_000;
        let correlation = CorrelationId(at as u64 + 1);
        builder.push_call(CallInput { start, end: start + 2_000, thread, name: launch, correlation, result: 0 });
        let copies = at % 10 == 9;
        builder.push_op(OpInput {
            start: start + 5_000,
            end: start + 5_000 + at,
            stream,
            kind: if copies { OpKind::Copy } else { OpKind::Kernel },
            name: if at % 2 == 0 { solve } else { dot },
            correlation,
            bytes: if copies { 1 << 33 } else { 0 },
            graph: GraphId::NONE,
            graph_node: 0,
            detail: Detail::None,
        });
    }
    let (context, stream) = (Some(context), Some(stream));
    builder.push_sync(SyncInput {
        start: EPOCH,
        end: EPOCH + 10,
        kind: SyncKind::Stream,
        process,
        context,
        stream,
        event: None,
        event_sync: None,
        awaited_record: CorrelationId::NONE,
        correlation: CorrelationId::NONE,
    });
    let correlation = CorrelationId::NONE;
    builder.push_event(EventInput {
        process,
        context,
        stream,
        event: 1,
        event_sync: None,
        device_time: 0,
        correlation,
    });
    builder.finish().expect("the trace is small")
}

#[test]
fn python_sees_what_was_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.bubbles.parquet");
    file::write_path(&trace(), &path).expect("the trace can be written");
    let python = Command::new("python3").arg("-c").arg(SCRIPT).arg(&path).output();
    let Ok(output) = python else {
        println!("skipped: no python3");
        return;
    };
    if output.status.code() == Some(77) {
        println!("skipped: python3 has neither pandas with pyarrow, nor polars, nor duckdb");
        return;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(ExitStatus::success(&output.status), "{errors}");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let seen: serde_json::Value = serde_json::from_str(line).expect("the script prints JSON");
        let expected = serde_json::json!({
            "rows": 2_002,
            "columns": [
                "kind", "start_ns", "dur_ns", "name", "category", "device", "pid", "context", "stream", "tid",
                "correlation", "bytes", "graph", "node", "detail", "result", "event", "event_sync",
                "awaited_correlation",
            ],
            "kinds": ["call", "copy", "event", "kernel", "sync"],
            "kernel_ns": (0..1_000).filter(|at| at % 10 != 9).sum::<i64>(),
            "bytes": 100 * (1i64 << 33),
            "names": ["dot", "solve"],
            "calls_of_ops": 1_000,
            "schema": "bubblescope.trace/1",
            "epoch_ns": EPOCH,
        });
        assert_eq!(seen["seen"], expected, "{}", seen["reader"]);
        println!("{} agrees", seen["reader"]);
    }
}
