//! Everything that a key or a menu can do, in one table: help, menus and keys are made from it.

use eframe::egui::{Event, Key, Modifiers};

/// A key with modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcut {
    /// Modifiers that must be held.
    pub modifiers: Modifiers,
    /// The key.
    pub key: Key,
    /// Whether the place of the key counts rather than its letter: W A S D are a shape.
    pub by_place: bool,
}

const fn key(key: Key) -> Shortcut {
    Shortcut { modifiers: Modifiers::NONE, key, by_place: false }
}

const fn place(key: Key) -> Shortcut {
    Shortcut { modifiers: Modifiers::NONE, key, by_place: true }
}

const fn with(modifiers: Modifiers, key: Key) -> Shortcut {
    Shortcut { modifiers, key, by_place: false }
}

/// A row of the table of commands.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The command.
    pub command: Command,
    /// What it does, for menus and help.
    pub title: &'static str,
    /// Heading in the help.
    pub group: &'static str,
    /// Its keys.
    pub keys: &'static [Shortcut],
}

macro_rules! commands {
    ($($group:literal { $($command:ident, $title:literal, [$($key:expr),*];)* })*) => {
        /// Something the user can ask for without saying more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $($(#[doc = $title] $command,)*)*
        }

        /// All commands, group by group.
        pub const COMMANDS: &[Entry] = &[$($(
            Entry { command: Command::$command, title: $title, group: $group, keys: &[$($key),*] },
        )*)*];
    };
}

commands! {
    "Files" {
        Open, "Open…", [with(Modifiers::COMMAND, Key::O)];
        Add, "Add to compare…", [with(Modifiers::COMMAND, Key::D)];
        Reload, "Reload", [with(Modifiers::COMMAND, Key::R), key(Key::F5)];
        Record, "Record…", [with(Modifiers::COMMAND, Key::N)];
        SavePng, "Save picture (PNG)…", [with(Modifiers::COMMAND, Key::P)];
        SaveSvg, "Save drawing (SVG)…", [with(Modifiers::COMMAND, Key::G)];
        ReportText, "Export report (text)…", [with(Modifiers::COMMAND, Key::E)];
        ReportJson, "Export report (JSON)…", [with(Modifiers::COMMAND, Key::J)];
        CompareJson, "Export comparison (JSON)…", [with(Modifiers::COMMAND, Key::M)];
        CompareCsv, "Export comparison (CSV)…", [with(Modifiers::COMMAND, Key::K)];
        Close, "Close the trace", [with(Modifiers::COMMAND, Key::W)];
        Quit, "Quit", [with(Modifiers::COMMAND, Key::Q)];
    }
    "Moving" {
        ZoomIn, "Zoom in at the pointer", [place(Key::W)];
        ZoomOut, "Zoom out at the pointer", [place(Key::S)];
        PanLeft, "Earlier", [place(Key::A)];
        PanRight, "Later", [place(Key::D)];
        FitSelection, "Show the selection", [key(Key::F)];
        FitAll, "Show everything", [key(Key::Num0), key(Key::Home)];
        StartView, "Show the measured part", [key(Key::M)];
        Back, "Previous view", [with(Modifiers::ALT, Key::ArrowLeft), key(Key::Backspace)];
        Forward, "Next view", [with(Modifiers::ALT, Key::ArrowRight)];
    }
    "Bubbles and ops" {
        NextBubble, "Next bubble", [key(Key::CloseBracket), key(Key::N)];
        PreviousBubble, "Previous bubble", [key(Key::OpenBracket), key(Key::P)];
        LongestBubble, "Longest bubble of all, or of the selected trace", [key(Key::B)];
        NextInLane, "Next in the lane", [key(Key::ArrowRight), key(Key::Period)];
        PreviousInLane, "Previous in the lane", [key(Key::ArrowLeft), key(Key::Comma)];
        FollowLaunch, "From op to launch and back", [key(Key::L)];
        Deselect, "Close, dismiss, end measuring, deselect", [key(Key::Escape)];
    }
    "Rows" {
        RowAbove, "Row above", [key(Key::ArrowUp)];
        RowBelow, "Row below", [key(Key::ArrowDown)];
        MoveRowUp, "Move up", [with(Modifiers::ALT, Key::ArrowUp)];
        MoveRowDown, "Move down", [with(Modifiers::ALT, Key::ArrowDown)];
        PinRow, "Pin or unpin", [key(Key::K)];
        FoldRow, "Collapse or expand", [key(Key::C)];
        HideRow, "Hide", [key(Key::H)];
        ShowRows, "Show all rows", [key(Key::U)];
    }
    "Window" {
        Findings, "Findings", [key(Key::X)];
        Search, "Search names", [with(Modifiers::COMMAND, Key::F), key(Key::Slash)];
        ToggleTables, "Tables", [key(Key::T)];
        ToggleDetails, "Details", [key(Key::Q)];
        ToggleTheme, "Light or dark", [key(Key::F9)];
        Help, "Keys", [key(Key::Questionmark), key(Key::F1)];
    }
}

impl Command {
    /// Its row in the table.
    pub fn entry(self) -> &'static Entry {
        // Commands and rows are written down together, in one order.
        &COMMANDS[self as usize]
    }
}

impl Shortcut {
    fn matches(&self, event: &Event) -> bool {
        let Event::Key { key, physical_key, pressed: true, modifiers, .. } = event else { return false };
        let key = if self.by_place { physical_key.unwrap_or(*key) } else { *key };
        // Shift is part of how some keyboards type `?` and brackets; other modifiers must be as written.
        let modifiers = Modifiers { shift: false, ..*modifiers };
        key == self.key && modifiers.matches_exact(self.modifiers)
    }

    /// As people write it: `Ctrl+F`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.modifiers.command {
            text.push_str("Ctrl+");
        }
        if self.modifiers.alt {
            text.push_str("Alt+");
        }
        let symbol = self.key.symbol_or_name();
        // Not every font has the arrows.
        text.push_str(if symbol.is_ascii() { symbol } else { self.key.name() });
        text
    }
}

/// The command that a key event asks for.
pub fn of_event(event: &Event) -> Option<Command> {
    COMMANDS.iter().find(|entry| entry.keys.iter().any(|key| key.matches(event))).map(|entry| entry.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let all: Vec<(Command, &Shortcut)> =
            COMMANDS.iter().flat_map(|entry| entry.keys.iter().map(|key| (entry.command, key))).collect();
        for (at, (command, key)) in all.iter().enumerate() {
            for (other, taken) in &all[..at] {
                assert!(
                    key.key != taken.key || key.modifiers != taken.modifiers,
                    "{command:?} and {other:?} have the same key"
                );
            }
        }
    }

    #[test]
    fn every_command_has_its_row_and_a_key() {
        for entry in COMMANDS {
            assert_eq!(entry.command.entry().command, entry.command);
            assert!(!entry.keys.is_empty(), "{:?}", entry.command);
        }
        let groups: Vec<&str> = COMMANDS.chunk_by(|a, b| a.group == b.group).map(|group| group[0].group).collect();
        assert!((1..groups.len()).all(|at| !groups[..at].contains(&groups[at])), "{groups:?}");
    }
}
