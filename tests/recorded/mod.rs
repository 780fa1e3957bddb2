//! Recordings made on a real GPU, analysed.

use std::path::Path;

use bubblescope::analysis::{Analysis, DeviceAnalysis, Options, analyze};
use bubblescope::open::open;
use bubblescope::trace::{Ns, Trace};

/// A recording of a bundled workload and what the analysis finds in its measured part.
pub(crate) struct Recorded {
    pub(crate) trace: Trace,
    pub(crate) analysis: Analysis,
}

impl Recorded {
    /// Reads a file of `tests/fixtures`.
    pub(crate) fn new(fixture: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        let trace = open(&path).unwrap_or_else(|error| panic!("{fixture}: {error}"));
        let measured = trace.meta.workload.as_ref().and_then(|run| run.measured);
        let measured = measured.unwrap_or_else(|| panic!("{fixture} does not tell its measured part"));
        let analysis = analyze(&trace, &Options { window: Some(measured), ..Options::default() });
        let recorded = Self { trace, analysis };
        let device = recorded.device();
        assert_eq!(device.partition.span(), device.span.len(), "{fixture}");
        assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), device.idle_ns(), "{fixture}");
        recorded
    }

    /// Its only device.
    pub(crate) fn device(&self) -> &DeviceAnalysis {
        assert_eq!(self.analysis.devices.len(), 1);
        &self.analysis.devices[0]
    }
}
