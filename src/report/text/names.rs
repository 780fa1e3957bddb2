//! Names as people read them: harmless on a terminal, short enough for a table.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text without characters that a terminal would obey: each of them is shown as `�`. Names come from files.
pub(super) fn harmless(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// How demanglers write the namespace without a name.
const ANONYMOUS: &str = "(anonymous namespace)";

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

/// A kernel's or copy's name without its parameters and namespaces, in at most `width` columns. Where that is too long,
/// template arguments lose their end: kernels of one template differ in the first ones.
pub(super) fn op(name: &str, width: usize) -> String {
    let name = bare(harmless(name).trim_start_matches("void "));
    if name.width() <= width {
        return name;
    }
    let (base, arguments) = name.split_at(name.find('<').unwrap_or(name.len()));
    let for_base = base.width().min((width * 3 / 5).max(width.saturating_sub(arguments.width())));
    format!("{}{}", elide(base, for_base), cut(arguments, width - for_base))
}

/// A C++ name without its parameters, without the namespaces and classes before its parts, and without what functions
/// among its template arguments take and hold.
fn bare(name: &str) -> String {
    let name = name.replace(ANONYMOUS, "{anonymous}");
    let mut text = String::new();
    // Where the part begins that is being read, here and in each enclosing list of arguments.
    let mut begins = 0;
    let mut around: Vec<usize> = Vec::new();
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ':' if rest.next_if_eq(&':').is_some() => text.truncate(begins),
            '<' => {
                around.push(begins);
                text.push(c);
                begins = text.len();
            }
            '>' => {
                begins = around.pop().unwrap_or(begins);
                text.push(c);
            }
            '(' if around.is_empty() && !text.is_empty() => break,
            '(' if !around.is_empty() => {
                let mut depth = 1usize;
                while let Some(&next) = rest.peek() {
                    match next {
                        ',' | '>' if depth == 0 => break,
                        '(' | '<' | '{' | '[' => depth += 1,
                        ')' | '>' | '}' | ']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    rest.next();
                }
            }
            ',' | ' ' => {
                text.push(c);
                begins = text.len();
            }
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
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
    let name = name.replace(ANONYMOUS, "{anonymous}");
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
        assert_eq!(op("void reduce<4>((anonymous namespace)::Sum)", 20), "reduce<4>");
        assert_eq!(op("(unbalanced", 20), "(unbalanced");
    }

    /// What a list of PyTorch's kernels reads like: one template, many functors.
    #[test]
    fn kernels_of_one_template_can_be_told_apart() {
        let kernel = |functor: &str| {
            format!(
                "void at::native::vectorized_elementwise_kernel<4, {functor}, std::array<char*, 3ul> >(int, {functor}, \
                 std::array<char*, 3ul>)"
            )
        };
        let names = [
            kernel("at::native::FillFunctor<float>"),
            kernel("at::native::CUDAFunctor_add<float>"),
            kernel("at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"),
            kernel("at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}::operator()() const::{lambda(float)#2}"),
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >(x)".to_owned(),
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MaxNanFunctor<float> > >(x)".to_owned(),
        ];
        let shown = names.map(|name| op(&name, 45));
        assert_eq!(
            shown,
            [
                "vectorized_element…e_kernel<4, FillFunctor<f…",
                "vectorized_element…e_kernel<4, CUDAFunctor_a…",
                "vectorized_element…e_kernel<4, BinaryFunctor…",
                "vectorized_element…e_kernel<4, launch_clamp_…",
                "reduce_kernel<512, 1, ReduceOp<float, MeanOp…",
                "reduce_kernel<512, 1, ReduceOp<float, MaxNan…",
            ]
        );
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
