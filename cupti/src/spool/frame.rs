//! How a chunk stands in the file.

/// Eight bytes no text file starts with; the line ends show a transfer that changed them.
pub const MAGIC: [u8; 8] = *b"\x89BCAP\r\n\x1a";

/// Bytes before the first chunk: the magic and the format version.
pub(super) const PREAMBLE: usize = 12;

/// Bytes before a chunk's payload.
pub(super) const HEAD: usize = 16;

/// No chunk is longer, stored or plain.
pub(super) const MAX_PAYLOAD: u32 = 256 << 20;

/// How much larger the chunks of a spool may be than what is stored of them. A reader refuses what grows more, so that
/// no small file can make it fill the memory, and a writer compresses no more than a reader takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    stored: u64,
    plain: u64,
}

impl Growth {
    /// Recordings shrink to a twentieth.
    const RATIO: u64 = 128;
    /// What a spool of any size may grow to.
    const FREE: u64 = 8 << 20;

    /// These totals with one more chunk; `None` if it would be too much. A chunk that is stored as it is never is.
    pub(super) fn with(self, stored: u32, plain: u32) -> Option<Self> {
        let (stored, plain) = (self.stored.saturating_add(stored.into()), self.plain.saturating_add(plain.into()));
        (plain <= stored.saturating_mul(Self::RATIO).saturating_add(Self::FREE)).then_some(Self { stored, plain })
    }
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Header = 1,
    Sizes = 2,
    Strings = 3,
    Buffer = 4,
    CallbackNames = 5,
    Anchor = 6,
    Drops = 7,
    Note = 8,
    End = 9,
    Status = 10,
    Beside = 11,
}

impl Tag {
    /// The longest plain payload. A list takes several times its payload in memory, so lists are kept short.
    pub(super) const fn longest(self) -> u32 {
        match self {
            Self::Buffer => MAX_PAYLOAD,
            Self::Strings | Self::Note => 16 << 20,
            Self::Header => 8 << 20,
            Self::CallbackNames | Self::Beside => 4 << 20,
            Self::Sizes | Self::Anchor | Self::Drops | Self::End | Self::Status => 64 << 10,
        }
    }

    pub(super) fn from_u8(tag: u8) -> Option<Self> {
        Some(match tag {
            1 => Self::Header,
            2 => Self::Sizes,
            3 => Self::Strings,
            4 => Self::Buffer,
            5 => Self::CallbackNames,
            6 => Self::Anchor,
            7 => Self::Drops,
            8 => Self::Note,
            9 => Self::End,
            10 => Self::Status,
            11 => Self::Beside,
            _ => return None,
        })
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Encoding {
    Plain = 0,
    /// Small, and slow to make: for spools that are kept.
    Zstd = 1,
    /// One LZ4 block, quick to make: for a recorder, which writes an eighth of what it is given at the highest rates.
    Lz4 = 2,
}

impl Encoding {
    pub(super) fn from_u8(encoding: u8) -> Option<Self> {
        [Self::Plain, Self::Zstd, Self::Lz4].into_iter().find(|&known| known as u8 == encoding)
    }
}

/// The sixteen bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) tag: u8,
    pub(super) encoding: u8,
    /// Written as 0; kept as read, so that the checksum covers it.
    pub(super) zero: u16,
    pub(super) stored: u32,
    pub(super) plain: u32,
    pub(super) crc: u32,
}

impl Head {
    /// The head of a chunk whose payload is stored as `parts`, one after the other.
    pub(super) fn new(tag: Tag, encoding: Encoding, plain: u32, stored: u32, parts: &[&[u8]]) -> Self {
        let mut head = Self { tag: tag as u8, encoding: encoding as u8, zero: 0, stored, plain, crc: 0 };
        head.crc = head.checksum(parts);
        head
    }

    pub(super) fn checksum(&self, parts: &[&[u8]]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.to_bytes()[..12]);
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    }

    pub(super) fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.tag;
        bytes[1] = self.encoding;
        bytes[2..4].copy_from_slice(&self.zero.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stored.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.plain.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(b: &[u8; HEAD]) -> Self {
        Self {
            tag: b[0],
            encoding: b[1],
            zero: u16::from_le_bytes([b[2], b[3]]),
            stored: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
            plain: u32::from_le_bytes([b[8], b[9], b[10], b[11]]),
            crc: u32::from_le_bytes([b[12], b[13], b[14], b[15]]),
        }
    }
}
