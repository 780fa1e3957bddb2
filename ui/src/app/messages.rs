//! What is told above the timeline, until it is dismissed or holds no longer.

use eframe::egui::{self, RichText, Ui};

use crate::format;
use crate::theme::{ALERT, blend};

/// Height that messages take at most; more of them scroll.
const MOST_HEIGHT: f32 = 130.0;
/// Share of the window that they take at most.
const MOST_SHARE: f32 = 0.2;

/// What a message is about, which says when it holds no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Something that was asked for, by its number among all that were. It holds until something else is opened.
    Opening(u64),
    /// The open trace that was asked for with this number. It holds while that is open.
    Trace(u64),
    /// A file to write. It holds until one is written.
    Saving,
    /// A recording. It holds until there is another.
    Recording,
}

#[derive(Debug)]
struct Message {
    about: About,
    text: String,
}

/// Messages to the user.
#[derive(Debug, Default)]
pub struct Messages {
    /// The newest last.
    list: Vec<Message>,
}

impl Messages {
    /// Tells something. What was told before is told anew, and not twice.
    pub fn push(&mut self, about: About, text: String) {
        self.list.retain(|message| message.text != text);
        self.list.push(Message { about, text });
    }

    /// Takes away what holds no longer.
    pub fn forget(&mut self, over: impl Fn(About) -> bool) {
        self.list.retain(|message| !over(message.about));
    }

    /// Takes all of them away.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What is told, the newest first.
    pub fn texts(&self) -> Vec<&str> {
        self.list.iter().rev().map(|message| message.text.as_str()).collect()
    }

    /// Shows them above what follows.
    pub(super) fn panel_ui(&mut self, ui: &mut Ui) {
        if self.list.is_empty() {
            return;
        }
        let visuals = ui.visuals();
        let fill = blend(visuals.panel_fill, visuals.error_fg_color, ALERT);
        let frame = egui::Frame::side_top_panel(ui.style()).fill(fill);
        egui::Panel::top("messages").frame(frame).show(ui, |ui| self.list_ui(ui));
    }

    fn list_ui(&mut self, ui: &mut Ui) {
        if self.list.len() > 1 {
            ui.horizontal(|ui| {
                if ui.small_button("Dismiss all").on_hover_text("So does Escape").clicked() {
                    self.list.clear();
                }
                let count = format::things(self.list.len() as u64, "message", "messages");
                ui.label(format!("{count}, the newest first"));
            });
        }
        let mut dismissed = None;
        // However many there are, what is open stays in view.
        let most = (ui.ctx().content_rect().height() * MOST_SHARE).min(MOST_HEIGHT);
        let area = egui::ScrollArea::vertical().id_salt("messages").auto_shrink([false, true]);
        area.max_height(most).min_scrolled_height(most).show(ui, |ui| {
            for (at, message) in self.list.iter().enumerate().rev() {
                ui.horizontal(|ui| {
                    if ui.small_button("Dismiss").clicked() {
                        dismissed = Some(at);
                    }
                    let text = RichText::new(&message.text).color(ui.visuals().error_fg_color);
                    ui.add(egui::Label::new(text).wrap());
                });
            }
        });
        if let Some(at) = dismissed {
            self.list.remove(at);
        }
    }
}
