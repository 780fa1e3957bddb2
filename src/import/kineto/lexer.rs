//! Walks JSON text without building values of it.
//!
//! Valid JSON reads as any parser would read it. What profilers are known to write wrong is read all the same and
//! remembered as an [`Oddity`]: control characters and unknown escapes in strings, bytes that are no UTF-8, `NaN` and
//! `Infinity`. Quotation marks that should have been escaped are read in [`Lexer::loose`] mode only.

use std::borrow::Cow;

use super::event::begins_with_key;

/// Values nested deeper than this are taken for damage. A kept event nests three deep.
const MAX_DEPTH: u32 = 64;

/// Why no value can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The text ends before the value does.
    More,
    /// No JSON stands at this position.
    Syntax(usize),
}

/// Something that is no JSON and was read all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A control character inside a string.
    Control,
    /// A backslash before a character that needs none.
    Escape,
    /// Bytes that are no UTF-8.
    Utf8,
    /// `NaN` or `Infinity` in the place of a number.
    NotANumber,
    /// A quotation mark inside a string that is not escaped.
    Quote,
}

impl Oddity {
    pub(super) const ALL: [Self; 5] = [Self::Control, Self::Escape, Self::Utf8, Self::NotANumber, Self::Quote];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The oddities met since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Oddities(u8);

impl Oddities {
    pub(super) fn note(&mut self, oddity: Oddity) {
        self.0 |= oddity.bit();
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Oddity> {
        Oddity::ALL.into_iter().filter(move |oddity| self.0 & oddity.bit() != 0)
    }
}

/// A string as it stands in the text, without its quotation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<'a> {
    pub(super) raw: &'a [u8],
    /// Whether it holds backslashes.
    escaped: bool,
}

impl<'a> Text<'a> {
    pub(super) const EMPTY: Text<'static> = Text { raw: &[], escaped: false };

    /// The string itself, and whether its bytes were UTF-8. Others become U+FFFD.
    pub(super) fn decode(self) -> (Cow<'a, str>, bool) {
        if self.escaped {
            let unescaped = unescape(self.raw);
            return match String::from_utf8(unescaped) {
                Ok(text) => (text.into(), true),
                Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned().into(), false),
            };
        }
        match std::str::from_utf8(self.raw) {
            Ok(text) => (text.into(), true),
            Err(_) => (String::from_utf8_lossy(self.raw), false),
        }
    }
}

/// The bytes that a string's escapes stand for. An unknown escape stands for itself.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&escape, after)) = rest.split_first() else {
            bytes.push(b'\\');
            return bytes;
        };
        let plain = match escape {
            b'"' | b'\\' | b'/' => Some(escape),
            b'b' => Some(8),
            b'f' => Some(12),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            _ => None,
        };
        if let Some(byte) = plain {
            bytes.push(byte);
            rest = after;
        } else if let Some((character, after)) = (escape == b'u').then(|| unicode(after)).flatten() {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after;
        } else {
            bytes.push(b'\\');
        }
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// The character of `\u....`, a surrogate pair taken as one, and what follows it. Half a pair becomes U+FFFD.
fn unicode(text: &[u8]) -> Option<(char, &[u8])> {
    let unit = |text: &[u8]| -> Option<u32> {
        let digits = std::str::from_utf8(text.get(..4)?).ok()?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let first = unit(text)?;
    let rest = &text[4..];
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = rest.strip_prefix(b"\\u").and_then(unit)
        && (0xdc00..0xe000).contains(&second)
    {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Some((char::from_u32(code)?, &rest[6..]));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), rest))
}

/// A value, as far as it is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A string.
    Text(Text<'a>),
    /// A number, or one of the words that JSON knows, or `NaN` and its kin.
    Word(&'a [u8]),
    /// An object or an array, which was skipped.
    Nested,
}

/// What a byte may be outside of strings: white space, a part of a number, what ends a number, or anything else.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let sets: [(&[u8], u8); 3] = [(b" \n\t\r", SPACE), (b"0123456789+-.eE", NUMERIC), (b",}]:\"", END)];
    let mut set = 0;
    while set < sets.len() {
        let mut at = 0;
        while at < sets[set].0.len() {
            classes[sets[set].0[at] as usize] = sets[set].1;
            at += 1;
        }
        set += 1;
    }
    classes
};
const SPACE: u8 = 1;
const NUMERIC: u8 = 2;
const END: u8 = 3;

/// A position in a piece of JSON text.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    loose: bool,
    pub(super) oddities: Oddities,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, loose: false, oddities: Oddities::default() }
    }

    /// Reads values in which quotation marks were not escaped: one ends a value only if what follows can stand behind
    /// one. A text must then be known to hold one event and little else, for such a string may run on.
    pub(super) fn loose(text: &'a [u8], at: usize) -> Self {
        Self { loose: true, ..Self::new(text, at) }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Steps over one byte that [`Lexer::peek`] has shown.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// The next byte that is no white space.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, Trouble> {
        while let Some(&byte) = self.text.get(self.at) {
            if CLASSES[byte as usize] != SPACE {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Trouble::More)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Trouble> {
        if self.peek()? != byte {
            return Err(Trouble::Syntax(self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// Steps into an object.
    pub(super) fn enter(&mut self) -> Result<(), Trouble> {
        self.expect(b'{')
    }

    /// The next key of the object that is being read, its colon stepped over; `None` behind the object. `first` says
    /// that no key was read yet.
    #[inline]
    pub(super) fn key(&mut self, first: bool) -> Result<Option<&'a [u8]>, Trouble> {
        match self.peek()? {
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            b',' if !first => {
                self.at += 1;
                self.peek()?;
            }
            _ if first => {}
            _ => return Err(Trouble::Syntax(self.at)),
        }
        let key = self.quoted(true)?;
        self.expect(b':')?;
        Ok(Some(key.raw))
    }

    /// Reads a string that is a value.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'a>, Trouble> {
        self.quoted(false)
    }

    #[inline]
    fn quoted(&mut self, key: bool) -> Result<Text<'a>, Trouble> {
        self.expect(b'"')?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at += special(self.text.get(self.at..).unwrap_or(&[]));
            match self.text.get(self.at) {
                None => return Err(Trouble::More),
                Some(b'"') if key || !self.loose || self.ends() => {
                    let raw = &self.text[from..self.at];
                    self.at += 1;
                    return Ok(Text { raw, escaped });
                }
                // The mark that should have closed it is missing, and it would swallow what the event says of itself.
                Some(b'"')
                    if self.text[from..self.at].trim_ascii_end().ends_with(b",")
                        && begins_with_key(&self.text[self.at..]) =>
                {
                    return Err(Trouble::Syntax(self.at));
                }
                Some(b'"') => {
                    self.oddities.note(Oddity::Quote);
                    self.at += 1;
                }
                Some(b'\\') => {
                    escaped = true;
                    let Some(escape) = self.text.get(self.at + 1) else { return Err(Trouble::More) };
                    if matches!(escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u') {
                        self.at += 2;
                    } else {
                        self.oddities.note(Oddity::Escape);
                        self.at += 1;
                    }
                }
                Some(_) => {
                    self.oddities.note(Oddity::Control);
                    self.at += 1;
                }
            }
        }
    }

    /// Whether the quotation mark here ends a value, by what stands behind it.
    fn ends(&self) -> bool {
        let behind = self.text[self.at + 1..].trim_ascii_start();
        match behind.split_first() {
            None | Some((b'}' | b']', _)) => true,
            Some((b',', behind)) => {
                let next = behind.trim_ascii_start().first();
                next.is_none_or(|byte| matches!(byte, b'"' | b'{' | b'[' | b'-' | b'0'..=b'9'))
            }
            Some(_) => false,
        }
    }

    /// Reads a number or a word.
    #[inline]
    fn word(&mut self) -> Result<&'a [u8], Trouble> {
        let from = self.at;
        let rest = self.text.get(from..).unwrap_or(&[]);
        let mut numeric = true;
        let mut len = 0;
        loop {
            match rest.get(len).map(|&byte| CLASSES[byte as usize]) {
                Some(NUMERIC) => {}
                Some(SPACE | END) => break,
                Some(_) => numeric = false,
                None => return Err(Trouble::More),
            }
            len += 1;
        }
        let word = &rest[..len];
        let known = match word.first() {
            Some(b'0'..=b'9' | b'-') if numeric => true,
            _ => matches!(word, b"true" | b"false" | b"null") || self.not_a_number(word),
        };
        if !known {
            return Err(Trouble::Syntax(from));
        }
        self.at += len;
        Ok(word)
    }

    /// Whether a word stands for no number, as floating point is printed; notes it.
    fn not_a_number(&mut self, word: &[u8]) -> bool {
        let sign = word.strip_prefix(b"-").unwrap_or(word);
        let known = [&b"nan"[..], b"inf", b"infinity"].iter().any(|name| sign.eq_ignore_ascii_case(name));
        if known {
            self.oddities.note(Oddity::NotANumber);
        }
        known
    }

    /// Reads a string or a word, skips anything else.
    #[inline]
    pub(super) fn value(&mut self) -> Result<Value<'a>, Trouble> {
        match self.peek()? {
            b'"' => self.string().map(Value::Text),
            b'{' | b'[' => self.skip().map(|()| Value::Nested),
            _ => self.word().map(Value::Word),
        }
    }

    /// Steps into an array of numbers and reads the first of them into `numbers`, as they stand.
    pub(super) fn words<const N: usize>(&mut self) -> Result<[&'a [u8]; N], Trouble> {
        let mut words = [&b""[..]; N];
        if self.peek()? != b'[' {
            self.skip()?;
            return Ok(words);
        }
        self.at += 1;
        let mut count = 0;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(words);
        }
        loop {
            if let Value::Word(word) = self.value()?
                && let Some(slot) = words.get_mut(count)
            {
                *slot = word;
            }
            count += 1;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(words);
                }
                _ => return Err(Trouble::Syntax(self.at)),
            }
        }
    }

    /// Steps over a value of any kind.
    pub(super) fn skip(&mut self) -> Result<(), Trouble> {
        // One bit for each level: whether it is an object.
        let mut levels: u64 = 0;
        let mut depth: u32 = 0;
        let mut opened = false;
        loop {
            // A value, or the end of an empty object or array, or a key and then a value.
            let mut byte = self.peek()?;
            let closes = depth > 0 && opened && byte == if levels & 1 == 1 { b'}' } else { b']' };
            if !closes && depth > 0 && levels & 1 == 1 {
                self.quoted(true)?;
                self.expect(b':')?;
                byte = self.peek()?;
            }
            opened = false;
            match byte {
                _ if closes => {}
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    if depth == MAX_DEPTH {
                        return Err(Trouble::Syntax(self.at));
                    }
                    self.at += 1;
                    levels = levels << 1 | u64::from(byte == b'{');
                    depth += 1;
                    opened = true;
                    continue;
                }
                _ => {
                    self.word()?;
                }
            }
            // What follows a value.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        break;
                    }
                    b'}' if levels & 1 == 1 => {}
                    b']' if levels & 1 == 0 => {}
                    _ => return Err(Trouble::Syntax(self.at)),
                }
                self.at += 1;
                levels >>= 1;
                depth -= 1;
            }
        }
    }
}

/// How many bytes stand before the first that ends a piece of string: a quotation mark, a backslash or a control
/// character. Eight bytes at a time; in each sum the lowest marked byte is a true one.
#[inline]
fn special(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (chunks, rest) = text.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = zero(word ^ (ONES * b'"' as u64)) | zero(word ^ (ONES * b'\\' as u64)) | control;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    chunks.len() * 8 + in_rest.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            any::<String>().prop_map(Json::from),
            "[\"\\\\{}\\[\\],:a-c\u{e4}\u{1f600}\n]{0,20}".prop_map(Json::from),
        ];
        leaf.prop_recursive(6, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::vec(("[a-c\"\\\\]{0,4}", inner), 0..6)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_stepped_over_to_its_last_byte(value in json(), pretty: bool, behind in "[ \n]{0,3}[,\\]}]") {
            let value = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = value.unwrap();
            let whole = format!("{text}{behind}");
            let mut lexer = Lexer::new(whole.as_bytes(), 0);
            prop_assert_eq!(lexer.skip(), Ok(()));
            prop_assert_eq!(lexer.at(), text.len());
            prop_assert!(lexer.oddities.is_empty());
            // Cut anywhere it is never taken for another value, unless that value is a word.
            for cut in 0..text.len() {
                let mut lexer = Lexer::new(&whole.as_bytes()[..cut], 0);
                prop_assert_eq!(lexer.skip(), Err(Trouble::More));
            }
        }

        #[test]
        fn strings_are_what_any_parser_makes_of_them(string: String, loose: bool) {
            let text = serde_json::to_string(&string).unwrap() + "}";
            let mut lexer = if loose { Lexer::loose(text.as_bytes(), 0) } else { Lexer::new(text.as_bytes(), 0) };
            let read = lexer.string().unwrap();
            let (decoded, whole) = read.decode();
            prop_assert_eq!(&*decoded, &*string);
            prop_assert!(whole && lexer.oddities.is_empty());
            prop_assert_eq!(lexer.at(), text.len() - 1);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>, loose: bool) {
            let mut lexer = if loose { Lexer::loose(&bytes, 0) } else { Lexer::new(&bytes, 0) };
            if lexer.skip().is_ok() {
                prop_assert!(lexer.at() <= bytes.len());
            }
            let mut quoted = vec![b'"'];
            quoted.extend(bytes);
            if let Ok(text) = Lexer::new(&quoted, 0).string() {
                let _ = text.decode();
            }
        }
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        for (raw, text) in [
            (r#"a\u0041\n\/\""#, "aA\n/\""),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83dx\ude00", "\u{fffd}x\u{fffd}"),
            (r"C:\cuda\q", "C:\\cuda\\q"),
            (r"\u12", "\\u12"),
            (r"\u+123", "\\u+123"),
        ] {
            let decoded = String::from_utf8(unescape(raw.as_bytes())).unwrap();
            assert_eq!(decoded, text, "{raw}");
        }
    }

    #[test]
    fn other_text_is_no_json() {
        for text in [
            "}",
            "[1 2]",
            "{1: 2}",
            "{\"a\" 1}",
            "{\"a\": }",
            "[}",
            "{]",
            "[1,,2]",
            "tru ",
            "abc ",
            "[,]",
            "{,}",
            "1x ",
            "{\"a\":1]",
        ] {
            assert!(matches!(Lexer::new(text.as_bytes(), 0).skip(), Err(Trouble::Syntax(_))), "{text}");
        }
    }
}
