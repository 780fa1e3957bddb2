//! Signals kept from a thread for a while.

use std::mem::MaybeUninit;

/// Keeps signals from this thread for as long as it lives, also when that ends in a panic.
#[derive(Debug)]
pub struct Masked {
    before: libc::sigset_t,
    /// Signals that are thrown away if they have come meanwhile.
    swallowed: Option<libc::sigset_t>,
}

impl Masked {
    /// From every signal: a thread that is started meanwhile never gets one.
    pub fn all() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: the set is written before it is read.
        let all = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            all.assume_init()
        };
        Self::keeping(&all, None)
    }

    /// From `SIGXFSZ`, which ends a program that makes a file longer than it may: writing gives an error instead.
    pub fn against_long_files() -> Self {
        let mut set = MaybeUninit::uninit();
        let mut pending = MaybeUninit::uninit();
        // SAFETY: both sets are written before they are read.
        let (set, was_pending) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
            libc::sigemptyset(pending.as_mut_ptr());
            libc::sigpending(pending.as_mut_ptr());
            (set.assume_init(), libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1)
        };
        // One that was waiting already is the program's own.
        Self::keeping(&set, (!was_pending).then_some(set))
    }

    fn keeping(set: &libc::sigset_t, swallowed: Option<libc::sigset_t>) -> Self {
        let mut before = MaybeUninit::uninit();
        // SAFETY: both pointers are valid; the old set is cleared first, so that it is initialised in any case.
        let before = unsafe {
            libc::sigemptyset(before.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, set, before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, swallowed }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the sets are initialised and the pointers valid.
        unsafe {
            if let Some(set) = &self.swallowed {
                libc::sigtimedwait(set, std::ptr::null_mut(), &raw const now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_masked(signal: i32) -> bool {
        let mut set = MaybeUninit::uninit();
        // SAFETY: with no new set the mask is only read.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn the_mask_comes_back_also_after_a_panic() {
        for take in [Masked::all, Masked::against_long_files] {
            assert!(!is_masked(libc::SIGXFSZ));
            let panicked = std::panic::catch_unwind(|| {
                let _masked = take();
                assert!(is_masked(libc::SIGXFSZ));
                // Not printed: the hook is for panics that nobody expects.
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(panicked.is_err() && !is_masked(libc::SIGXFSZ));
        }
        let masked = Masked::against_long_files();
        // SAFETY: the signal is masked here, and is for this thread.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ) };
        drop(masked);
        assert!(!is_masked(libc::SIGXFSZ), "and the signal has not ended this process");
    }
}
