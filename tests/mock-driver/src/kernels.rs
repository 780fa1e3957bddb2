//! The kernels, told apart by their names, as the sources in `workloads/kernels` describe them.

use std::ffi::c_void;

/// Places in the state of the solver.
const RESIDUAL: usize = 0;
const TOLERANCE: usize = 1;
const ITERATIONS: usize = 2;
const DONE: usize = 3;

/// What a kernel's parameter is: how many bytes.
type Sizes = &'static [usize];

const ADDRESS: usize = 8;
const WORD: usize = 4;

/// The kernels and their parameters. A handle is a place in this list, from 1 on.
const KERNELS: &[(&str, Sizes)] = &[
    ("stir_all", &[ADDRESS, ADDRESS, WORD, WORD, WORD]),
    ("begin", &[ADDRESS, ADDRESS, ADDRESS, ADDRESS, WORD, WORD, WORD]),
    ("branch", &[ADDRESS, ADDRESS, WORD, WORD, WORD]),
    ("finish", &[ADDRESS, ADDRESS, ADDRESS, WORD, WORD]),
    ("fused", &[ADDRESS, WORD, WORD, WORD, WORD]),
    ("sweep", &[ADDRESS, ADDRESS, ADDRESS, WORD, WORD, WORD, WORD, WORD]),
    ("sweep_and_check", &[ADDRESS, ADDRESS, ADDRESS, WORD, WORD, WORD, WORD, ADDRESS]),
    ("solve_persistent", &[ADDRESS, ADDRESS, ADDRESS, WORD, WORD, WORD, WORD, WORD]),
    ("keep_going", &[ADDRESS, ADDRESS, WORD]),
];

/// The handle of a kernel.
pub(crate) fn find(name: &str) -> Option<usize> {
    KERNELS.iter().position(|(known, _)| *known == name).map(|place| place + 1)
}

/// A kernel with its arguments, copied when it was launched.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    name: &'static str,
    threads: u64,
    arguments: Vec<u64>,
}

impl Launch {
    pub(crate) unsafe fn new(kernel: usize, blocks: u32, threads: u32, arguments: *mut *mut c_void) -> Self {
        let (name, sizes) = KERNELS[kernel - 1];
        let read = |(place, size): (usize, &usize)| unsafe {
            let value = *arguments.add(place);
            if *size == ADDRESS {
                value.cast::<u64>().read_unaligned()
            } else {
                value.cast::<u32>().read_unaligned().into()
            }
        };
        let arguments = sizes.iter().enumerate().map(read).collect();
        Self { name, threads: u64::from(blocks) * u64::from(threads), arguments }
    }

    pub(crate) fn is_of_the_same_kernel(&self, other: &Self) -> bool {
        self.name == other.name
    }

    /// The addresses among the arguments.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        let sizes = KERNELS.iter().find(|(name, _)| *name == self.name).map_or([].as_slice(), |(_, sizes)| sizes);
        // The first argument of `keep_going` is a handle, and nothing may be mirrored to no address.
        let handles = usize::from(self.name == "keep_going");
        let addresses = self.arguments.iter().zip(sizes).skip(handles).filter(|(_, size)| **size == ADDRESS);
        addresses.map(|(argument, _)| *argument).filter(|address| *address != 0)
    }

    fn word(&self, place: usize) -> u32 {
        u32::try_from(self.arguments[place]).unwrap_or(u32::MAX)
    }

    fn float(&self, place: usize) -> f32 {
        f32::from_bits(self.word(place))
    }

    /// Number `i` of those that an argument points at.
    fn get(&self, place: usize, i: usize) -> f32 {
        unsafe { (self.arguments[place] as *const f32).add(i).read() }
    }

    fn set(&self, place: usize, i: usize, number: f32) {
        unsafe { (self.arguments[place] as *mut f32).add(i).write(number) };
    }

    /// Word `i` of those that an argument points at.
    fn get_word(&self, place: usize, i: usize) -> u32 {
        unsafe { (self.arguments[place] as *const u32).add(i).read() }
    }

    fn set_word(&self, place: usize, i: usize, word: u32) {
        unsafe { (self.arguments[place] as *mut u32).add(i).write(word) };
    }

    /// Runs the kernel. Gives whether the loop that it is in goes round again, if it says so.
    pub(crate) fn run(&self) -> Option<bool> {
        match self.name {
            "stir_all" => self.stir_all(),
            "begin" => self.begin(),
            "branch" => self.branch(),
            "finish" => self.finish(),
            "fused" => self.fused(),
            "sweep" => self.sweep(self.word(6), self.word(7), false),
            "sweep_and_check" => self.sweep(self.word(6) - 1, self.word(6), true),
            "solve_persistent" => self.solve_persistent(),
            _ => return Some(self.get_word(1, DONE) == 0 && self.get_word(1, ITERATIONS) < self.word(2)),
        }
        None
    }

    /// Changes a bit of what the kernel has written.
    pub(crate) fn spoil(&self) {
        let written = match self.name {
            "stir_all" => 1,
            "keep_going" => return,
            // The residual, which is no number of the ring but is compared too.
            "sweep" | "sweep_and_check" | "solve_persistent" => 2,
            _ => 0,
        };
        self.set_word(written, 0, self.get_word(written, 0) ^ 1);
    }

    /// The numbers that have a thread, in a kernel with a thread per number.
    fn covered(&self, size: u32) -> std::ops::Range<usize> {
        0..usize::try_from(self.threads.min(size.into())).unwrap_or(usize::MAX)
    }

    fn stir_all(&self) {
        let (size, rate, steps) = (self.word(2), self.float(3), self.word(4));
        self.covered(size).for_each(|i| self.set(1, i, stir(self.get(0, i), rate, steps)));
    }

    fn begin(&self) {
        let (told, size, steps) = (self.word(4), self.word(5), self.word(6));
        self.set_word(3, 0, if told == 0 { self.get_word(3, 0) + 1 } else { told });
        for i in self.covered(size) {
            let x = self.get(0, i);
            self.set(1, i, stir(x, 3.9, steps));
            self.set(2, i, stir(1.0 - 0.5 * x, 3.8, steps));
        }
    }

    fn branch(&self) {
        let (position, size, steps) = (self.word(2), self.word(3), self.word(4));
        let rate = rate_of(self.get_word(1, 0), position);
        self.covered(size).for_each(|i| self.set(0, i, stir(self.get(0, i), rate, steps)));
    }

    fn finish(&self) {
        let (size, steps) = (self.word(3), self.word(4));
        self.covered(size).for_each(|i| self.set(0, i, stir(0.5 * (self.get(1, i) + self.get(2, i)), 3.7, steps)));
    }

    fn fused(&self) {
        let (round, kernels, size, steps) = (self.word(1), self.word(2), self.word(3), self.word(4));
        for i in self.covered(size) {
            let c = self.get(0, i);
            let (mut a, mut b) = (stir(c, 3.9, steps), stir(1.0 - 0.5 * c, 3.8, steps));
            for position in 0..kernels {
                a = stir(a, rate_of(round, position), steps);
                b = stir(b, rate_of(round, kernels + position), steps);
            }
            self.set(0, i, stir(0.5 * (a + b), 3.7, steps));
        }
    }

    fn sweep(&self, sweep: u32, sweeps: u32, check: bool) {
        let (size, steps, coupling) = (self.word(3), self.word(4), self.float(5));
        if self.get_word(2, DONE) != 0 {
            return;
        }
        let iterations = self.get_word(2, ITERATIONS);
        let odd = iterations.wrapping_mul(sweeps).wrapping_add(sweep) % 2 == 1;
        let (from, to) = if odd { (1, 0) } else { (0, 1) };
        let last = size as usize - 1;
        let mut largest = 0.0_f32;
        for i in self.covered(size) {
            let left = self.get(from, if i == 0 { last } else { i - 1 });
            let right = self.get(from, if i == last { 0 } else { i + 1 });
            let x = relax(self.get(from, i), coupling * (left + right), steps);
            self.set(to, i, x);
            largest = largest.max(x.abs());
        }
        if check {
            self.set(2, RESIDUAL, largest);
            self.set_word(2, ITERATIONS, iterations + 1);
            self.set_word(2, DONE, u32::from(largest <= self.get(2, TOLERANCE)));
            if self.name == "sweep_and_check" && self.arguments[7] != 0 {
                let word = u64::from(iterations + 1) << 32 | u64::from(largest.to_bits());
                unsafe { (self.arguments[7] as *mut u64).write_volatile(word) };
            }
        }
    }

    fn solve_persistent(&self) {
        // Its threads go over the ring in strides, so a small grid covers it too.
        let whole = Self { threads: u64::MAX, ..self.clone() };
        let (sweeps, most) = (self.word(6), self.word(7));
        for _ in 0..most {
            (0..sweeps).for_each(|sweep| whole.sweep(sweep, sweeps, sweep == sweeps - 1));
        }
    }
}

fn relax(mut x: f32, target: f32, steps: u32) -> f32 {
    for _ in 0..steps {
        x = x + 0.5 * (target - x);
    }
    x
}

fn stir(x: f32, rate: f32, steps: u32) -> f32 {
    relax(x, rate * x * (1.0 - x), steps)
}

fn rate_of(round: u32, position: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "numbers below 8")]
    let place = ((round + position) % 8) as f32;
    3.6 + 0.05 * place
}
