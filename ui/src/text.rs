//! Text that fits: cut before it is laid out, because laying out what is not shown costs most.

use std::borrow::Cow;

use eframe::egui::{FontId, Painter};

/// Widths of the letters of a font, to know how much of a name fits into a box.
#[derive(Debug)]
pub struct Widths {
    font: FontId,
    ascii: [f32; 128],
    other: f32,
}

impl Widths {
    /// Reads the widths of a font.
    pub fn of(painter: &Painter, font: &FontId) -> Self {
        painter.fonts_mut(|fonts| {
            let mut ascii = [0.0; 128];
            for letter in ' '..='~' {
                ascii[letter as usize] = fonts.glyph_width(font, letter);
            }
            Self { font: font.clone(), ascii, other: fonts.glyph_width(font, 'm') }
        })
    }

    /// The font.
    pub fn font(&self) -> &FontId {
        &self.font
    }

    /// The width of a letter; for letters beyond ASCII at least it.
    fn letter(&self, letter: char) -> f32 {
        self.ascii.get(letter as usize).copied().unwrap_or(self.other)
    }

    /// The width of a text.
    pub fn width(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.letter(letter)).sum()
    }

    /// As much of `text` as fits into `width`, with an ellipsis if it was cut; `None` if that would say nothing.
    pub fn fit<'a>(&self, text: &'a str, width: f32) -> Option<Cow<'a, str>> {
        let ellipsis = self.other;
        let mut used = 0.0;
        let mut cut = None;
        for (at, (byte, letter)) in text.char_indices().enumerate() {
            if used + ellipsis <= width {
                cut = Some((at, byte));
            }
            used += self.letter(letter);
            if used > width {
                let (letters, byte) = cut?;
                return (letters >= 3).then(|| Cow::Owned(format!("{}…", &text[..byte])));
            }
        }
        (!text.is_empty()).then_some(Cow::Borrowed(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_box() {
        let widths = Widths { font: FontId::default(), ascii: [6.0; 128], other: 10.0 };
        assert_eq!(widths.fit("kernel", 36.0).as_deref(), Some("kernel"));
        assert_eq!(widths.fit("kernel", 35.0).as_deref(), Some("kern…"));
        assert_eq!(widths.fit("kernel", 20.0), None);
        assert_eq!(widths.fit("", 100.0), None);
        for width in 0..200 {
            if let Some(text) = widths.fit("größer als gedacht", width as f32) {
                let shown: f32 = text.chars().map(|letter| widths.letter(letter)).sum();
                assert!(shown <= width as f32);
            }
        }
    }
}
