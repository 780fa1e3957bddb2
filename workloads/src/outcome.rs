//! What a run gives back.

use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::arithmetic::first_difference;
use crate::gpu::{DeviceBuffer, Gpu, Measured};

/// What one run of a workload did and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Iterations of the measured part, as the device counted them where it can.
    pub iterations: u64,
    /// Iterations before the measured part.
    pub warmup: u64,
    /// Nanoseconds from the first call of the measured part until the device had finished all of its work, by the
    /// monotonic clock.
    pub wall_ns: u64,
    /// Start and end of the measured part, in nanoseconds since the epoch by the real-time clock.
    pub measured_realtime_ns: (i64, i64),
    /// The bits of the answer, in a short form that is equal exactly when the answers are (a 64-bit hash stands for
    /// long ones). Equal for all variants with the same options.
    pub answer: String,
    /// The device's name as the driver gives it.
    pub device_name: String,
    /// The CUDA version of the driver, as `cuDriverGetVersion` gives it: 13000 is 13.0.
    pub driver_version: i32,
}

impl Outcome {
    pub(crate) fn new(gpu: &Gpu, iterations: u64, warmup: u64, measured: Measured, answer: String) -> Self {
        Self {
            iterations,
            warmup,
            wall_ns: measured.wall_ns,
            measured_realtime_ns: measured.realtime_ns,
            answer,
            device_name: gpu.name().to_owned(),
            driver_version: gpu.driver_version(),
        }
    }
}

/// An answer that is the bits of some numbers.
pub(crate) fn hash_floats(numbers: &[f32]) -> String {
    format!("{:016x}", hash_words(numbers.iter().map(|number| number.to_bits())))
}

/// The answer of a workload whose `size` numbers must be the expected ones, again and again.
///
/// # Errors
/// When they cannot be read, or one is not what is expected.
pub(crate) fn checked_answer(
    numbers: &DeviceBuffer<'_, f32>,
    size: u32,
    expected: &[f32],
) -> Result<String, WorkloadError> {
    let mut found = vec![0.0; size as usize];
    numbers.read(&mut found)?;
    match first_difference(&found, expected) {
        Some(difference) => Err(WorkloadError::WrongAnswer(difference)),
        None => Ok(hash_floats(&found)),
    }
}

/// FNV-1a, 64 bit, over the little-endian bytes of some words.
fn hash_words(words: impl IntoIterator<Item = u32>) -> u64 {
    hash_bytes(words.into_iter().flat_map(u32::to_le_bytes))
}

fn hash_bytes(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_gives_the_published_values_of_fnv_1a() {
        assert_eq!(hash_bytes([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash_bytes(*b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash_bytes(*b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_word_and_its_place_count() {
        assert_ne!(hash_words([1, 2]), hash_words([2, 1]));
        assert_ne!(hash_words([0]), hash_words([0, 0]));
        assert_eq!(hash_words([u32::from_le_bytes(*b"foob")]), hash_bytes(*b"foob"));
    }
}
