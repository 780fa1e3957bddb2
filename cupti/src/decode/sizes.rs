//! How many bytes a record of each kind has, by CUPTI version.

use cupti_sys::bindings as c;

/// The values of `cuptiGetVersion` whose record sizes are known, from CUDA 12.0 (18, which is also the answer of 11.8
/// and 12.1) to 13.5.
const VERSIONS: [u32; 16] =
    [18, 20, 21, 22, 23, 24, 26, 27, 28, 130_000, 130_001, 130_101, 130_202, 130_301, 130_401, 130_500];

/// For each kind: from which version on a record of it has how many bytes.
///
/// Source: `sizeof` of the newest struct of each kind in the headers of all versions above. Up to 13.1 the strides of
/// `cuptiActivityGetNextRecord` in the libraries themselves are the same.
#[rustfmt::skip]
const SIZES: &[(c::CUpti_ActivityKind, &[(u32, u16)])] = &[
    (c::CUPTI_ACTIVITY_KIND_MEMCPY, &[(18, 88), (26, 96), (130_401, 112)]),
    (c::CUPTI_ACTIVITY_KIND_MEMSET, &[(18, 88), (130_401, 104)]),
    (c::CUPTI_ACTIVITY_KIND_KERNEL, KERNEL),
    (c::CUPTI_ACTIVITY_KIND_DRIVER, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_RUNTIME, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_DEVICE, &[(18, 176), (20, 184), (130_202, 192)]),
    (c::CUPTI_ACTIVITY_KIND_CONTEXT, &[(18, 16), (22, 24), (23, 32), (130_101, 40)]),
    (c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, KERNEL),
    (c::CUPTI_ACTIVITY_KIND_NAME, &[(18, 32)]),
    (c::CUPTI_ACTIVITY_KIND_MARKER, &[(18, 56)]),
    (c::CUPTI_ACTIVITY_KIND_MARKER_DATA, &[(18, 32), (130_000, 40)]),
    (c::CUPTI_ACTIVITY_KIND_OVERHEAD, &[(18, 40), (21, 48), (22, 56)]),
    (c::CUPTI_ACTIVITY_KIND_CDP_KERNEL, &[(18, 144)]),
    (c::CUPTI_ACTIVITY_KIND_PREEMPTION, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_ENVIRONMENT, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_MEMCPY2, &[(18, 96)]),
    (c::CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, &[(18, 64), (26, 104)]),
    (c::CUPTI_ACTIVITY_KIND_FUNCTION, &[(18, 32)]),
    (c::CUPTI_ACTIVITY_KIND_MODULE, &[(18, 24)]),
    (c::CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE, &[(18, 24)]),
    (c::CUPTI_ACTIVITY_KIND_OPENACC_DATA, &[(18, 152)]),
    (c::CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH, &[(18, 152)]),
    (c::CUPTI_ACTIVITY_KIND_OPENACC_OTHER, &[(18, 120)]),
    (c::CUPTI_ACTIVITY_KIND_CUDA_EVENT, &[(18, 24), (26, 56), (130_500, 80)]),
    (c::CUPTI_ACTIVITY_KIND_STREAM, &[(18, 24)]),
    (c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, &[(18, 40), (26, 56)]),
    (c::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, &[(18, 24)]),
    (c::CUPTI_ACTIVITY_KIND_NVLINK, &[(18, 136), (130_202, 88)]),
    (c::CUPTI_ACTIVITY_KIND_MEMORY, &[(18, 80)]),
    (c::CUPTI_ACTIVITY_KIND_PCIE, &[(18, 168)]),
    (c::CUPTI_ACTIVITY_KIND_OPENMP, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, &[(18, 40)]),
    (c::CUPTI_ACTIVITY_KIND_MEMORY2, &[(18, 120), (24, 128)]),
    (c::CUPTI_ACTIVITY_KIND_MEMORY_POOL, &[(18, 72), (130_000, 80)]),
    (c::CUPTI_ACTIVITY_KIND_GRAPH_TRACE, &[(18, 48), (21, 56)]),
    (c::CUPTI_ACTIVITY_KIND_JIT, &[(18, 64), (22, 72)]),
    (c::CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE, &[(26, 56)]),
    (c::CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS, &[(26, 64)]),
    (c::CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION, &[(27, 32)]),
    (c::CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE, &[(130_101, 56)]),
    (c::CUPTI_ACTIVITY_KIND_COMPUTE_ENGINE_CTX_SWITCH, &[(130_101, 24)]),
    (c::CUPTI_ACTIVITY_KIND_HOST_LAUNCH, &[(130_101, 48)]),
    (c::CUPTI_ACTIVITY_KIND_GREEN_CONTEXT, &[(130_202, 168), (130_401, 304)]),
];

const KERNEL: &[(u32, u16)] = &[(18, 208), (130_000, 216), (130_101, 224), (130_301, 232), (130_401, 248)];

/// The smallest record: a kind, padded to CUPTI's record alignment of 8 bytes.
const SMALLEST: u32 = 8;
/// Kinds from here on are taken for garbage; CUPTI 13.5 numbers them up to 59.
const KINDS: u32 = 1024;

/// Bytes per record of each kind, for the CUPTI that wrote a buffer.
///
/// A buffer can only be walked with the sizes of the library that filled it: newer versions append fields, and the
/// next record stands behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeTable {
    version: u32,
    exact: bool,
    /// By kind; 0 where the size is unknown.
    sizes: Vec<u16>,
}

impl SizeTable {
    /// The sizes of the CUPTI whose `cuptiGetVersion` is `version`.
    ///
    /// For a version that is not known these are the sizes of the highest known version below it (or of the lowest),
    /// and [`Self::is_exact`] is false: check them against the library with [`Self::set`].
    pub fn for_version(version: u32) -> Self {
        let known = VERSIONS.iter().rev().find(|&&known| known <= version).unwrap_or(&VERSIONS[0]);
        let mut table = Self { version, exact: *known == version, sizes: Vec::new() };
        for &(kind, steps) in SIZES {
            if let Some(&(_, size)) = steps.iter().rev().find(|(from, _)| from <= known) {
                table.set(kind, u32::from(size));
            }
        }
        table
    }

    /// The version that was asked for.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether the sizes of this very version were known.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Sets the size of `kind` to what the library itself says (`cuptiActivityGetNextRecord`,
    /// `cuptiActivityGetStructSize`) or a recording has stored; that is better than the table's own.
    ///
    /// Returns false, and changes nothing, if no record can be like that: kind 0, a kind from 1024 on, or a size that
    /// is not a multiple of 8 from 8 to 65528.
    pub fn set(&mut self, kind: u32, size: u32) -> bool {
        let Ok(bytes) = u16::try_from(size) else { return false };
        if kind == 0 || kind >= KINDS || size < SMALLEST || !size.is_multiple_of(8) {
            return false;
        }
        let index = kind as usize;
        if index >= self.sizes.len() {
            self.sizes.resize(index + 1, 0);
        }
        self.sizes[index] = bytes;
        true
    }

    /// Bytes per record of `kind`, if known; then never 0.
    pub fn get(&self, kind: u32) -> Option<usize> {
        self.sizes.get(kind as usize).filter(|&&size| size != 0).map(|&size| usize::from(size))
    }

    /// Every known kind with its size, by kind.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(&self.sizes).filter(|&(_, &size)| size != 0).map(|(kind, &size)| (kind, u32::from(size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_versions_are_exact_and_others_take_the_row_below() {
        for version in VERSIONS {
            let table = SizeTable::for_version(version);
            assert!(table.is_exact());
            assert_eq!(table.version(), version);
        }
        for (asked, known) in [(0, 18), (19, 18), (25, 24), (99, 28), (130_102, 130_101), (140_000, 130_500)] {
            let table = SizeTable::for_version(asked);
            assert!(!table.is_exact());
            assert_eq!(table.version(), asked);
            assert!(table.iter().eq(SizeTable::for_version(known).iter()), "{asked}");
        }
    }

    #[test]
    fn steps_are_in_order_and_start_at_known_versions() {
        for (kind, steps) in SIZES {
            assert!(steps.is_sorted_by(|a, b| a.0 < b.0), "kind {kind}");
            for (version, size) in *steps {
                assert!(VERSIONS.contains(version), "kind {kind} from {version}");
                assert!(SizeTable::for_version(130_500).set(*kind, u32::from(*size)), "kind {kind}: {size}");
            }
        }
    }

    #[test]
    fn a_newer_kind_is_unknown_to_an_older_version() {
        let kind = c::CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE;
        assert_eq!(SizeTable::for_version(24).get(kind), None);
        assert_eq!(SizeTable::for_version(26).get(kind), Some(56));
    }

    #[test]
    fn learned_sizes_win_and_impossible_ones_are_refused() {
        let mut table = SizeTable::for_version(18);
        assert!(table.set(3, 256));
        assert_eq!(table.get(3), Some(256));
        assert!(table.set(1000, 16));
        assert_eq!(table.get(1000), Some(16));
        let before = table.clone();
        for (kind, size) in [(0, 8), (1024, 8), (u32::MAX, 8), (3, 0), (3, 4), (3, 12), (3, 65536), (3, u32::MAX)] {
            assert!(!table.set(kind, size), "{kind}: {size}");
        }
        assert_eq!(table, before);
    }
}
