//! Compression of chunks.

use super::frame::Encoding;
use std::io;

/// Puts the compressed bytes into `packed`, whose capacity is used again; gives how many there are.
pub(super) fn compress(encoding: Encoding, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<usize> {
    match encoding {
        Encoding::Plain => Err(io::ErrorKind::InvalidInput.into()),
        Encoding::Zstd => zstd_compress(plain, packed),
        Encoding::Lz4 => {
            // Longer than anything written before only at first: memory that was touched once stays.
            packed.resize(packed.len().max(lz4_flex::block::get_maximum_output_size(plain.len())), 0);
            lz4_flex::block::compress_into(plain, packed).map_err(io::Error::other)
        }
    }
}

/// The plain bytes, which are `length` long if the packed ones are whole.
pub(super) fn decompress(encoding: Encoding, packed: &[u8], length: u32) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Plain => Err(io::ErrorKind::InvalidInput.into()),
        Encoding::Zstd => zstd_decompress(packed, u64::from(length) + 1),
        Encoding::Lz4 => lz4_flex::block::decompress(packed, length as usize).map_err(io::Error::other),
    }
}

#[cfg(feature = "compression")]
fn zstd_compress(plain: &[u8], packed: &mut Vec<u8>) -> io::Result<usize> {
    const LEVEL: i32 = 19;
    *packed = zstd::bulk::compress(plain, LEVEL)?;
    Ok(packed.len())
}

#[cfg(feature = "compression")]
fn zstd_decompress(packed: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut plain = Vec::new();
    zstd::stream::read::Decoder::with_buffer(packed)?.take(limit).read_to_end(&mut plain)?;
    Ok(plain)
}

#[cfg(not(feature = "compression"))]
fn zstd_compress(_: &[u8], _: &mut Vec<u8>) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(feature = "compression"))]
fn zstd_decompress(_: &[u8], _: u64) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}
