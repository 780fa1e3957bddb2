//! `demo`: the main job on recordings that come with the program.

use anyhow::Context as _;
use bubblescope::capture::campaign::Campaign;
use bubblescope::capture::convert;
use bubblescope::report::{Compare, Report, text};
use bubblescope::trace::Trace;
use serde::Serialize;

use crate::analyze::{Window, report_on};
use crate::args::{DemoArgs, Format};
use crate::compare::of_campaign;
use crate::exit::{Failure, Outcome};
use crate::output;

/// One bundled campaign: its file, its spools, and where it was made.
struct Bundle {
    title: &'static str,
    campaign: &'static [u8],
    spools: &'static [(&'static str, &'static [u8])],
}

/// Embeds one campaign of `tests/fixtures/scalar-readback`.
macro_rules! bundle {
    ($folder:literal, $title:literal, [$($spool:literal),*]) => {
        Bundle {
            title: $title,
            campaign: include_bytes!(concat!("../../../tests/fixtures/scalar-readback/", $folder, "/campaign.json")),
            spools: &[$((
                $spool,
                include_bytes!(concat!("../../../tests/fixtures/scalar-readback/", $folder, "/", $spool)),
            )),*],
        }
    };
}

/// The machine, versions and command of the bundled recordings.
const ORIGIN: &str = include_str!("../../../tests/fixtures/scalar-readback/ORIGIN.txt");

const BUNDLES: [Bundle; 3] = [
    bundle!("kernels-1", "1 kernel per iteration", ["sync.bubcap", "async.bubcap", "graph.bubcap"]),
    bundle!("kernels-4", "4 kernels per iteration", ["sync.bubcap", "async.bubcap", "graph.bubcap"]),
    bundle!("kernels-12", "12 kernels per iteration", ["sync.bubcap", "async.bubcap", "graph.bubcap"]),
];

/// The variants that are shown.
const SHOWN: [&str; 3] = ["sync", "async", "graph"];

/// The bundle and the spool that the report at the end is about.
const REPORTED: (usize, &str) = (1, "sync.bubcap");

/// What `demo --format json` prints.
#[derive(Serialize)]
struct Demo {
    origin: &'static str,
    comparisons: Vec<Compare>,
    report: Report,
}

/// Compares the bundled recordings and reports on one of them.
pub(crate) fn demo(args: &DemoArgs) -> Outcome {
    let comparisons = BUNDLES
        .iter()
        .map(|bundle| {
            let mut campaign = Campaign::parse(bundle.campaign).context("a bundled campaign is damaged")?;
            campaign.keep_variants(&SHOWN);
            of_campaign(&campaign, |spool| bundle.trace(spool))
        })
        .collect::<Result<Vec<Compare>, Failure>>()?;
    let (index, spool) = REPORTED;
    let trace = BUNDLES[index].trace(spool)?;
    let path = format!("{spool} (bundled, {})", BUNDLES[index].title);
    let report = report_on(&trace, &path, Window::Measured, 5)?;
    match args.format.format {
        Format::Json => output::json(&Demo { origin: ORIGIN, comparisons, report })?,
        Format::Text => output::page(|out, style| {
            use std::io::Write as _;
            let bold = anstyle::Style::new().bold();
            writeln!(out, "This replays recordings that come with the program; nothing runs on a GPU now.")?;
            writeln!(out, "{}", ORIGIN.trim_end())?;
            if let Some(info) = workloads::catalogue().iter().find(|info| info.name == "scalar-readback") {
                writeln!(out, "\n{bold}{}{bold:#}: {}. The shapes compared:", info.name, info.summary)?;
                for variant in SHOWN.iter().filter_map(|name| info.variant(name)) {
                    writeln!(out, "  {:6} {}", variant.name, variant.summary)?;
                }
            }
            for (bundle, compare) in BUNDLES.iter().zip(&comparisons) {
                writeln!(out, "\n{bold}== {}{bold:#}\n", bundle.title)?;
                text::render_compare(compare, out, style)?;
            }
            writeln!(out, "\n{bold}== Why `sync` is slow, with {}{bold:#}\n", BUNDLES[index].title)?;
            text::render(&report, out, style)?;
            writeln!(out, "\nOn a machine with a GPU, measure it there: bubble-report compare scalar-readback")
        })?,
    }
    Ok(())
}

impl Bundle {
    /// The trace of one of its spools.
    fn trace(&self, name: &str) -> anyhow::Result<Trace> {
        let (_, spool) = self
            .spools
            .iter()
            .find(|(spool, _)| *spool == name)
            .with_context(|| format!("the recording {name} is not bundled"))?;
        convert::trace_from_bytes(&[spool]).with_context(|| format!("the bundled recording {name} is damaged"))
    }
}
