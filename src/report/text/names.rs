//! Names as people read them: harmless on a terminal, short enough for a table.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text without characters that a terminal would obey: each of them is shown as `�`. Names come from files.
pub(super) fn harmless(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// A name in at most `width` columns. What C++ writes around a kernel's name goes first: its parameters, then its
/// template arguments; then the middle.
pub(super) fn short(name: &str, width: usize) -> String {
    let name = harmless(name);
    if name.width() <= width {
        return name;
    }
    let name = name.strip_prefix("void ").unwrap_or(&name);
    for depth in [Brackets::Round, Brackets::Angle] {
        let shorter = collapse(name, depth);
        if shorter.width() <= width {
            return shorter;
        }
    }
    elide(&collapse(name, Brackets::Angle), width)
}

/// A kernel's or copy's name without its parameters, in at most `width` columns.
pub(super) fn op(name: &str, width: usize) -> String {
    short(&collapse(&harmless(name), Brackets::Round), width)
}

#[derive(Clone, Copy, PartialEq)]
enum Brackets {
    /// Parameters only.
    Round,
    /// Parameters and template arguments.
    Angle,
}

/// Replaces what outermost brackets hold by `…`.
fn collapse(name: &str, brackets: Brackets) -> String {
    let name = name.replace("(anonymous namespace)", "{anonymous}");
    let opens = |c| c == '(' || (c == '<' && brackets == Brackets::Angle);
    let closes = |c| c == ')' || (c == '>' && brackets == Brackets::Angle);
    let mut text = String::new();
    let mut depth = 0usize;
    for c in name.chars() {
        if closes(c) && depth > 0 {
            depth -= 1;
            if depth == 0 {
                text.push('…');
            }
        }
        if depth == 0 {
            text.push(c);
        }
        if opens(c) {
            depth += 1;
        }
    }
    if depth == 0 { text.replace("(…)", "").trim_end().to_owned() } else { name }
}

/// Text in at most `width` columns, its middle replaced by `…`.
pub(super) fn elide(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head = take(text.chars(), room - room / 3);
    let tail: String = take(text.chars().rev(), room / 3).chars().rev().collect();
    format!("{head}…{tail}")
}

/// Text in at most `width` columns, its end replaced by `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    format!("{}…", take(text.chars(), room).trim_end())
}

/// The first characters that fit into `width` columns.
fn take(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_kernel_names_lose_parameters_then_arguments_then_their_middle() {
        let name = "void cub::detail::reduce_kernel<float, cub::Sum<int>>(float const*, float*, int)";
        assert_eq!(short(name, 100), name);
        assert_eq!(short(name, 70), "cub::detail::reduce_kernel<float, cub::Sum<int>>");
        assert_eq!(short(name, 40), "cub::detail::reduce_kernel<…>");
        assert_eq!(short(name, 20), "cub::detail::…nel<…>");
        assert_eq!(short("a::(anonymous namespace)::step(float*)", 30), "a::{anonymous}::step");
    }

    #[test]
    fn ops_are_named_without_parameters() {
        assert_eq!(op("work(float*, int, int)", 20), "work");
        assert_eq!(op("Memcpy DtoH (Device -> Pinned)", 40), "Memcpy DtoH");
        assert_eq!(op("void reduce<4>((anonymous namespace)::Sum)", 20), "void reduce<4>");
        assert_eq!(op("(unbalanced", 20), "(unbalanced");
    }

    #[test]
    fn a_name_cannot_talk_to_the_terminal() {
        assert_eq!(harmless("a\x1b[2Jb\nc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d");
    }

    proptest! {
        #[test]
        fn any_name_is_harmless_and_fits(name in ".{0,80}", width in 0usize..40) {
            let text = short(&name, width);
            prop_assert!(text.width() <= width);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
