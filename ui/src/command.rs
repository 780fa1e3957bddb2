//! Everything that a key or a menu can do, in one table: help, menus and keys are made from it.

use eframe::egui::{Event, Key, Modifiers};

/// Something the user can ask for without saying more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Choose a file.
    Open,
    /// Read the files again.
    Reload,
    /// Zoom in at the pointer.
    ZoomIn,
    /// Zoom out at the pointer.
    ZoomOut,
    /// Move to earlier times.
    PanLeft,
    /// Move to later times.
    PanRight,
    /// Show the selection, or the measured interval.
    FitSelection,
    /// Show everything.
    FitAll,
    /// Select the next bubble.
    NextBubble,
    /// Select the previous bubble.
    PreviousBubble,
    /// Select the longest bubble.
    LongestBubble,
    /// Select the next thing of the lane.
    NextInLane,
    /// Select the previous thing of the lane.
    PreviousInLane,
    /// Select the launch of an op, or the first op of a launch.
    FollowLaunch,
    /// The view before.
    Back,
    /// The view that was left by going back.
    Forward,
    /// Drop selection and measurement.
    Deselect,
    /// Search names.
    Search,
    /// Show or hide the panel below.
    ToggleTables,
    /// Show or hide the details.
    ToggleDetails,
    /// Light or dark.
    ToggleTheme,
    /// List the keys.
    Help,
}

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
        /// All commands.
        pub const COMMANDS: &[Entry] = &[$($(
            Entry { command: Command::$command, title: $title, group: $group, keys: &[$($key),*] },
        )*)*];
    };
}

commands! {
    "Files" {
        Open, "Open…", [with(Modifiers::COMMAND, Key::O)];
        Reload, "Reload", [with(Modifiers::COMMAND, Key::R), key(Key::F5)];
    }
    "Moving" {
        ZoomIn, "Zoom in at the pointer", [place(Key::W)];
        ZoomOut, "Zoom out at the pointer", [place(Key::S)];
        PanLeft, "Earlier", [place(Key::A)];
        PanRight, "Later", [place(Key::D)];
        FitSelection, "Show the selection", [key(Key::F)];
        FitAll, "Show everything", [key(Key::Num0), key(Key::Home)];
        Back, "Previous view", [with(Modifiers::ALT, Key::ArrowLeft), key(Key::Backspace)];
        Forward, "Next view", [with(Modifiers::ALT, Key::ArrowRight)];
    }
    "Bubbles and ops" {
        NextBubble, "Next bubble", [key(Key::CloseBracket), key(Key::N)];
        PreviousBubble, "Previous bubble", [key(Key::OpenBracket), key(Key::P)];
        LongestBubble, "Longest bubble", [key(Key::B)];
        NextInLane, "Next in the lane", [key(Key::ArrowRight), key(Key::Period)];
        PreviousInLane, "Previous in the lane", [key(Key::ArrowLeft), key(Key::Comma)];
        FollowLaunch, "From op to launch and back", [key(Key::L)];
        Deselect, "Deselect", [key(Key::Escape)];
    }
    "Window" {
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
        // A test makes sure that every command has a row.
        COMMANDS.iter().find(|entry| entry.command == self).unwrap_or(&COMMANDS[0])
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
    fn every_command_is_listed_once_and_has_a_key() {
        for (at, entry) in COMMANDS.iter().enumerate() {
            assert!(!entry.keys.is_empty(), "{:?}", entry.command);
            assert!(COMMANDS[..at].iter().all(|other| other.command != entry.command));
        }
        // The exhaustive match makes the compiler ask for this line when a command is added.
        let listed = |command: Command| match command {
            Command::Open | Command::Reload | Command::ZoomIn | Command::ZoomOut | Command::PanLeft => true,
            Command::PanRight | Command::FitSelection | Command::FitAll | Command::NextBubble => true,
            Command::PreviousBubble | Command::LongestBubble | Command::NextInLane => true,
            Command::PreviousInLane | Command::FollowLaunch | Command::Back | Command::Forward => true,
            Command::Deselect | Command::Search | Command::ToggleTables | Command::ToggleDetails => true,
            Command::ToggleTheme | Command::Help => true,
        };
        assert_eq!(COMMANDS.iter().filter(|entry| listed(entry.command)).count(), 22);
    }
}
