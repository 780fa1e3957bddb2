//! Figures that take a while, made by a thread of their own while the window stays alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bubblescope::progress::Watch;
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use eframe::egui::Context;

/// Whether an answer is still wanted. Work that takes long looks now and then, and gives up with any answer.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Whether to give up.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watch for Wanted {
    fn progress(&self, _done: u64, _total: u64) {}

    fn is_cancelled(&self) -> bool {
        self.is_over()
    }
}

/// Frees something by a thread of its own: a trace takes longer than a frame may.
pub fn release<T: Send + 'static>(old: T) {
    // Without a thread it is freed here.
    drop(std::thread::Builder::new().name("release".to_owned()).spawn(move || drop(old)));
}

#[derive(Debug)]
struct Running<K, R> {
    question: K,
    wanted: Wanted,
    answers: Receiver<R>,
}

/// The latest answer to a question, and the question that is being worked on.
#[derive(Debug)]
pub struct Background<K, R> {
    running: Option<Running<K, R>>,
    done: Option<(K, R)>,
}

impl<K, R> Default for Background<K, R> {
    fn default() -> Self {
        Self { running: None, done: None }
    }
}

impl<K, R> Drop for Background<K, R> {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.wanted.end();
        }
    }
}

impl<K: PartialEq, R: Send + 'static> Background<K, R> {
    /// The answer to `question` if it is ready. If not, `make` starts to work on it as soon as nothing else runs, and
    /// wakes the window when it is done. Work on another question is told to give up.
    pub fn get<M>(&mut self, ctx: &Context, question: K, make: impl FnOnce() -> M) -> Option<&R>
    where
        M: FnOnce(&Wanted) -> R + Send + 'static,
    {
        if let Some(running) = self.running.take() {
            match running.answers.try_recv() {
                Ok(answer) if !running.wanted.is_over() => self.done = Some((running.question, answer)),
                Ok(_) | Err(TryRecvError::Disconnected) => {}
                Err(TryRecvError::Empty) => {
                    if running.question != question {
                        running.wanted.end();
                    }
                    self.running = Some(running);
                }
            }
        }
        if self.has(&question) {
            return self.done.as_ref().map(|(_, answer)| answer);
        }
        if self.running.is_none() {
            let (work, wanted) = (make(), Wanted::default());
            let (send, answers) = bounded(1);
            let (ctx, until) = (ctx.clone(), wanted.clone());
            let thread = move || {
                // Nobody listens any more when the window was closed.
                drop(send.send(work(&until)));
                ctx.request_repaint();
            };
            if std::thread::Builder::new().name("figures".to_owned()).spawn(thread).is_ok() {
                self.running = Some(Running { question, wanted, answers });
            }
        }
        None
    }

    /// The answer to `question`, made at once if it is not there: for work that takes no longer than a moment.
    pub fn get_now(&mut self, question: K, make: impl FnOnce() -> R) -> &R {
        if !self.has(&question) {
            self.done = None;
        }
        &self.done.get_or_insert_with(|| (question, make())).1
    }

    fn has(&self, question: &K) -> bool {
        self.done.as_ref().is_some_and(|(of, _)| of == question)
    }

    /// The last answer and its question.
    pub fn last(&self) -> Option<&(K, R)> {
        self.done.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Tells which thread freed it.
    struct Told(crossbeam_channel::Sender<std::thread::ThreadId>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().id());
        }
    }

    #[test]
    fn what_is_released_is_freed_by_another_thread() {
        let (send, freed) = bounded(1);
        release(Told(send));
        let by = freed.recv_timeout(Duration::from_secs(120)).unwrap();
        assert_ne!(by, std::thread::current().id());
    }

    #[test]
    fn work_that_is_no_longer_wanted_gives_up_and_is_not_taken_for_an_answer() {
        let ctx = Context::default();
        let mut background: Background<u32, u32> = Background::default();
        let endless = || {
            |wanted: &Wanted| {
                while !wanted.is_over() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                1
            }
        };
        assert_eq!(background.get(&ctx, 1, endless), None);
        assert_eq!(background.get(&ctx, 1, endless), None, "it is still at work");
        let start = Instant::now();
        while background.get(&ctx, 2, || |_: &Wanted| 20).is_none() {
            assert!(start.elapsed() < Duration::from_secs(120), "the second question is never answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(background.last(), Some(&(2, 20)));
        assert_eq!(background.get_now(3, || 30), &30);
        assert_eq!(background.get_now(3, || 31), &30, "it is known");
    }
}
