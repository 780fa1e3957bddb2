//! A program that plays a CUDA program: it does what its arguments say, one after the other, and returns from `main`.
//!
//! | step | meaning |
//! |---|---|
//! | `inject:R` | starts CUDA: loads the library as libcuda does; its entry must return R |
//! | `nvtx:R` | the first NVTX call, in the same way |
//! | `load:PATH` | loads a library |
//! | `launch:THREADS:N`, `unfinished`, `call:DOMAIN:ID` | work of the mock |
//! | `push:TEXT`, `pop` | an NVTX range |
//! | `stream:THREADS:MS:MB_PER_S:PERIOD_MS` | work of the mock for a time; 0 MB/s is as fast as it goes, 0 ms no bursts |
//! | `repeat:N:STEP` | one step of the mock so many times |
//! | `count:NAME:N` | the mock must have counted so many |
//! | `until:NAME:N` | waits until the mock has counted so many |
//! | `settled` | waits until all that came before, and how things stand then, is in the spool of this process |
//! | `touch:PATH`, `await:PATH` | makes a file; waits until there is one |
//! | `sleep:MS`, `say` | waits; prints a line to each output |
//! | `fork` … `end` | a forked child does what stands between, and must end well |
//! | `exec` | starts itself anew with the steps that follow |
//! | `limit:BYTES` | no file may grow beyond that |
//! | `close` | closes every descriptor above 2 and opens `/dev/null` instead |
//! | `close-standard`, `print` | closes those up to 2; writes to them without regard to what they are |
//! | `exit:N`, `exit-elsewhere:N`, `_exit:N`, `abort`, `kill:SIGNAL` | an end |
//!
//! `TARGET_MOCK` names the mock.

#![expect(unsafe_code, reason = "plays a C program")]
#![expect(clippy::unwrap_used, reason = "it is a test's program")]

mod spool;

use libloading::os::unix::{Library, RTLD_NOW};
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn main() {
    let steps: Vec<String> = std::env::args().skip(1).collect();
    let mut at = 0;
    while at < steps.len() {
        let step = &steps[at];
        at += 1;
        let (name, rest) = step.split_once(':').unwrap_or((step, ""));
        let number = || rest.parse::<i32>().unwrap();
        match name {
            "inject" => initialize("CUDA_INJECTION64_PATH", number()),
            "nvtx" => initialize("NVTX_INJECTION64_PATH", number()),
            "load" => {
                open(rest);
            }
            "launch" | "stream" | "unfinished" | "call" => work(name, rest),
            "repeat" => {
                let (times, step) = rest.split_once(':').unwrap();
                let (name, rest) = step.split_once(':').unwrap_or((step, ""));
                (0..times.parse().unwrap()).for_each(|_| work(name, rest));
            }
            "push" => {
                let text = CString::new(rest).unwrap();
                nvtx(8, &[text.as_ptr() as usize]);
            }
            "pop" => nvtx(11, &[0]),
            "count" => {
                let (name, expected) = rest.split_once(':').unwrap();
                assert_eq!(counted(name), expected.parse::<i64>().unwrap(), "{step}");
            }
            "until" => {
                let (name, expected) = rest.split_once(':').unwrap();
                let expected = expected.parse::<i64>().unwrap();
                until(step, || counted(name) == expected);
            }
            "settled" => {
                let since = spool::monotonic_ns();
                until(step, || spool::is_settled(since));
            }
            "touch" => std::fs::write(rest, "").unwrap(),
            "await" => until(step, || Path::new(rest).exists()),
            "sleep" => std::thread::sleep(Duration::from_millis(rest.parse().unwrap())),
            "say" => {
                println!("out");
                eprintln!("err");
            }
            "fork" => {
                // SAFETY: the child does only what is under test.
                let child = unsafe { libc::fork() };
                if child != 0 {
                    let mut status = 0;
                    // SAFETY: waits for our own child.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    assert_eq!(status, 0, "the forked child");
                    at += steps[at..].iter().position(|step| step == "end").unwrap() + 1;
                }
            }
            // SAFETY: runs the exit handlers, as any program may.
            "end" => unsafe { libc::exit(0) },
            "exec" => panic!("{}", Command::new(std::env::current_exe().unwrap()).args(&steps[at..]).exec()),
            "limit" => {
                let limit = rest.parse().unwrap();
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                // SAFETY: the pointer is valid.
                assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
            }
            "close" => close(),
            "close-standard" => (0..3).for_each(|fd| {
                // SAFETY: nothing is printed from then on but by the next step.
                unsafe { libc::close(fd) };
            }),
            "print" => (0..3).for_each(|fd| {
                // SAFETY: the pointer and the length are those of the text.
                unsafe { libc::write(fd, c"words\n".as_ptr().cast(), 6) };
            }),
            // SAFETY: as above.
            "exit" => unsafe { libc::exit(number()) },
            "exit-elsewhere" => {
                let code = number();
                // SAFETY: as above.
                std::thread::spawn(move || unsafe { libc::exit(code) });
                std::thread::sleep(Duration::from_secs(600));
            }
            // SAFETY: ends the process.
            "_exit" => unsafe { libc::_exit(number()) },
            "abort" => std::process::abort(),
            // SAFETY: ends the process.
            "kill" => unsafe {
                libc::kill(libc::getpid(), number());
            },
            _ => panic!("unknown step {step}"),
        }
    }
}

/// Waits for something that comes, however slow the machine is.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn open(path: &str) -> ManuallyDrop<Library> {
    // SAFETY: the libraries are the mock and the one under test.
    ManuallyDrop::new(unsafe { Library::open(Some(path), RTLD_NOW) }.unwrap())
}

fn initialize(variable: &str, expected: c_int) {
    let library = open(&std::env::var(variable).unwrap());
    // SAFETY: these are the signatures of the two entries.
    let result = unsafe {
        if variable.starts_with("CUDA") {
            let entry = library.get::<unsafe extern "C" fn() -> c_int>(b"InitializeInjection\0").unwrap();
            entry()
        } else {
            let entry =
                library.get::<unsafe extern "C" fn(*mut c_void) -> c_int>(b"InitializeInjectionNvtx2\0").unwrap();
            entry(std::ptr::null_mut())
        }
    };
    assert_eq!(result, expected, "{variable}");
}

fn function<T: Copy>(name: &str) -> T {
    let mock = open(&std::env::var("TARGET_MOCK").unwrap());
    // SAFETY: the callers name functions of the mock with their signatures.
    *unsafe { mock.get::<T>(name.as_bytes()) }.unwrap()
}

fn counted(name: &str) -> i64 {
    let name = CString::new(name).unwrap();
    function::<extern "C" fn(*const c_char) -> i64>("mock_counter")(name.as_ptr())
}

/// Work of the mock.
fn work(name: &str, rest: &str) {
    let numbers: Vec<u32> = rest.split(':').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap()).collect();
    match (name, &numbers[..]) {
        ("launch", &[threads, launches]) => function::<extern "C" fn(u32, u32)>("mock_launch")(threads, launches),
        ("stream", &[threads, milliseconds, megabytes, period]) => {
            let stream = function::<extern "C" fn(u32, u32, u64, u32)>("mock_stream");
            stream(threads, milliseconds, u64::from(megabytes) * 1_000_000, period);
        }
        ("unfinished", []) => function::<extern "C" fn()>("mock_unfinished")(),
        ("call", &[domain, id]) => function::<extern "C" fn(u32, u32)>("mock_call")(domain, id),
        _ => panic!("unknown work {name}:{rest}"),
    }
}

fn nvtx(id: u32, arguments: &[usize]) {
    let call = function::<extern "C" fn(u32, *const c_void, *const c_void)>("mock_nvtx");
    call(id, arguments.as_ptr().cast(), std::ptr::null());
}

fn close() {
    for fd in 3..64 {
        // SAFETY: this program does not use them any more; that others do is what is tested.
        unsafe { libc::close(fd) };
    }
    for _ in 3..64 {
        // SAFETY: the path is a terminated text.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
}
