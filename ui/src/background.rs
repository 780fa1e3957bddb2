//! Figures that take a while, made by a thread of their own while the window stays alive.

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use eframe::egui::Context;

/// The latest answer to a question, and the question that is being worked on.
#[derive(Debug)]
pub struct Background<K, R> {
    running: Option<(K, Receiver<R>)>,
    done: Option<(K, R)>,
}

impl<K, R> Default for Background<K, R> {
    fn default() -> Self {
        Self { running: None, done: None }
    }
}

impl<K: PartialEq, R: Send + 'static> Background<K, R> {
    /// The answer to `question` if it is ready. If not, `make` starts to work on it as soon as nothing else runs, and
    /// wakes the window when it is done.
    pub fn get<M>(&mut self, ctx: &Context, question: K, make: impl FnOnce() -> M) -> Option<&R>
    where
        M: FnOnce() -> R + Send + 'static,
    {
        let mut busy = false;
        if let Some((of, answers)) = self.running.take() {
            match answers.try_recv() {
                Ok(answer) => self.done = Some((of, answer)),
                Err(TryRecvError::Empty) => {
                    busy = true;
                    self.running = Some((of, answers));
                }
                Err(TryRecvError::Disconnected) => {}
            }
        }
        if self.done.as_ref().is_some_and(|(of, _)| *of == question) {
            return self.done.as_ref().map(|(_, answer)| answer);
        }
        if !busy {
            let work = make();
            let (send, answers) = bounded(1);
            let ctx = ctx.clone();
            let thread = move || {
                // Nobody listens any more when the window was closed.
                drop(send.send(work()));
                ctx.request_repaint();
            };
            if std::thread::Builder::new().name("figures".to_owned()).spawn(thread).is_ok() {
                self.running = Some((question, answers));
            }
        }
        None
    }

    /// The last answer and its question.
    pub fn last(&self) -> Option<&(K, R)> {
        self.done.as_ref()
    }
}
