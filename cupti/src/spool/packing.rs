//! Compression of chunks. A recorder inside another process needs none, so it can be left out.

use std::io;

/// The compressed bytes.
#[cfg(feature = "compression")]
pub(super) fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    const LEVEL: i32 = 19;
    zstd::bulk::compress(plain, LEVEL)
}

/// The plain bytes, `limit` at most.
#[cfg(feature = "compression")]
pub(super) fn decompress(packed: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut plain = Vec::new();
    zstd::stream::read::Decoder::with_buffer(packed)?.take(limit).read_to_end(&mut plain)?;
    Ok(plain)
}

#[cfg(not(feature = "compression"))]
pub(super) fn compress(_: &[u8]) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(feature = "compression"))]
pub(super) fn decompress(_: &[u8], _: u64) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}
