//! How fast a trace of PyTorch's profiler is read.
//!
//! `cargo bench --bench import` generates the text of a training loop, laid out as torch.profiler lays it out, and reads
//! it sound and with damage in every 100th and in every name of an operator, kernel or Python function, half of the events. Times count the trace that comes out, sorted and linked.
//!
//! `cargo bench --bench import -- --write FILE MEGABYTES` only writes such a text, for `scripts/measure/import_speed.py`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use bubblescope::import::kineto;
use divan::counter::BytesCount;

/// Bytes of the generated text.
const BYTES: usize = 200_000_000;

static SOUND: LazyLock<String> = LazyLock::new(|| training_loop(BYTES, 0));
static SOME_DAMAGED: LazyLock<String> = LazyLock::new(|| training_loop(BYTES, 100));
static ALL_DAMAGED: LazyLock<String> = LazyLock::new(|| training_loop(BYTES, 1));

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--write") {
        let megabytes: usize = arguments[at + 2].parse().expect("a number of megabytes");
        std::fs::write(&arguments[at + 1], training_loop(megabytes * 1_000_000, 0)).expect("the file can be written");
        return;
    }
    divan::main();
}

fn read(bencher: divan::Bencher<'_, '_>, text: &str) {
    bencher.counter(BytesCount::of_str(text)).bench(|| kineto::read(text.as_bytes()).expect("it is a trace"));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn read_sound(bencher: divan::Bencher<'_, '_>) {
    read(bencher, &SOUND);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn read_one_name_in_100_damaged(bencher: divan::Bencher<'_, '_>) {
    read(bencher, &SOME_DAMAGED);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn read_every_name_damaged(bencher: divan::Bencher<'_, '_>) {
    read(bencher, &ALL_DAMAGED);
}

/// A training loop: operators of two calls each, with their kernels, flow arrows and Python functions. Every
/// `damage`th name holds quotation marks that are not escaped; 0 for none.
fn training_loop(bytes: usize, damage: u64) -> String {
    const OPERATORS: [&str; 4] = ["aten::linear", "aten::relu", "aten::add_", "aten::_foreach_mul_"];
    const KERNELS: [&str; 3] = [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> \
         >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x",
        "ampere_sgemm_128x64_nn",
    ];
    let mut text = String::with_capacity(bytes + 4_096);
    text.push_str(
        "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": \"NVIDIA H200\", \
         \"numSms\": 132, \"computeMajor\": 9, \"computeMinor\": 0\n    }\n  ],\n  \"baseTimeNanoseconds\": \
         1751410836000000000,\n  \"traceEvents\": [\n",
    );
    // Thousandths of a microsecond.
    let (mut host, mut free, mut correlation, mut event) = (5_125_839_531_158_765u64, 0u64, 1u64, 0u64);
    let us = |ns: u64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
    let mut name = |plain: &str| {
        event += 1;
        let damaged = damage > 0 && event.is_multiple_of(damage);
        if damaged { plain.replacen(['t', 'r'], "\"", 1) } else { plain.to_owned() }
    };
    while text.len() < bytes {
        let operator = OPERATORS[correlation as usize % OPERATORS.len()];
        let _ = write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": 652, \"tid\": 652,\n    \"ts\": {}, \
             \"dur\": {},\n    \"args\": {{\n      \"External id\": {correlation},\"Record function id\": 0, \"Concrete \
             Inputs\": [\"\", \"0\", \"[16, 16]\"], \"Input type\": [\"float\", \"Scalar\", \"ScalarList\"], \"Input \
             Dims\": [[128, 512], [], []], \"Ev Idx\": {correlation}\n    }}\n  }},\n",
            name(operator),
            us(host),
            us(21_000),
        );
        for _ in 0..2 {
            let start = host + 2_000;
            let begin = (start + 6_500).max(free);
            free = begin + 1_700 + correlation % 7 * 900;
            let _ = write!(
                text,
                "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 652, \
                 \"tid\": 652,\n    \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      \"External id\": \
                 {correlation},\"cbid\": 211, \"correlation\": {correlation}\n    }}\n  }},\n  {{\n    \"ph\": \"s\", \
                 \"id\": {correlation}, \"pid\": 652, \"tid\": 652, \"ts\": {},\n    \"cat\": \"ac2g\", \"name\": \
                 \"ac2g\"\n  }},\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": \
                 7,\n    \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      \"External id\": {correlation},\"queued\": 0, \
                 \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {correlation},\n      \
                 \"registers per thread\": 32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 4.272727,\n      \
                 \"warps per SM\": 17.09091,\n      \"grid\": [564, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. \
                 achieved occupancy %\": 60\n    }}\n  }},\n  {{\n    \"ph\": \"f\", \"id\": {correlation}, \"pid\": 0, \
                 \"tid\": 7, \"ts\": {},\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }},\n",
                us(start),
                us(4_321),
                us(start),
                name(KERNELS[correlation as usize % KERNELS.len()]),
                us(begin),
                us(free - begin),
                us(begin),
            );
            host += 10_000;
            correlation += 1;
        }
        let _ = write!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"{}\", \"pid\": 652, \"tid\": 652,\n    \
             \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      \"Python parent id\": 7, \"Python id\": {correlation}, \
             \"Ev Idx\": {correlation}\n    }}\n  }},\n",
            name("torch/nn/modules/module.py(1751): _wrapped_call_impl"),
            us(host - 21_000),
            us(22_000),
        );
        host += 4_000;
    }
    text.truncate(text.len() - 2);
    text.push_str("\n  ],\n  \"traceName\": \"trace.json\"\n}\n");
    text
}
