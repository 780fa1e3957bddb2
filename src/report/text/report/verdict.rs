//! The answer in a few lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::names::harmless;
use super::quality::sentence;
use super::table::paragraph;
use super::units::{counted, fraction, moment, percent, percent_of, time};
use super::{Style, negligible};
use crate::analysis::{self, Because, Cause, FindingId, HostTime, beyond_idle};
use crate::report::contract::{Bubble, Device, Quality, Report};
use crate::trace::Ns;

/// The answer in one sentence; a warning before it when it cannot be relied on.
pub(super) fn verdict(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let quality = &report.quality;
    if quality.gpu_not_captured {
        let text = "NO GPU ACTIVITY WAS CAPTURED. Work was launched, and none of it was recorded on a GPU: this says \
                    nothing about idle time.";
        paragraph(out, style, style.alarm(), "", text)?;
        return reasons(quality, out, style);
    }
    if report.devices.is_empty() {
        return paragraph(out, style, style.alarm(), "", "NOTHING TO ANALYSE: no GPU activity in this window.");
    }
    if !quality.idle_reliable {
        paragraph(out, style, style.alarm(), "", "THE IDLE TIME BELOW IS NOT RELIABLE.")?;
        reasons(quality, out, style)?;
        writeln!(out)?;
    }
    let Some(worst) = report.devices.iter().max_by_key(|device| (device.idle_ns, std::cmp::Reverse(device.device)))
    else {
        return Ok(());
    };
    paragraph(out, style, style.heading(), "", &headline(report, worst))?;
    if negligible(report) {
        return Ok(());
    }
    if let Some((cause, part)) = largest(&worst.idle_by_root) {
        let whose = blamed(worst, cause, part);
        let share = if part == worst.idle_ns { "All".to_owned() } else { percent_of(part, worst.idle_ns) };
        let once = longest_of(report, worst).map_or_else(String::new, |bubble| {
            let within = if whose.is_empty() { within(bubble) } else { String::new() };
            format!("; {} of it once, at {}{within}", time(bubble.dur_ns), moment(bubble.start_ns))
        });
        let because = because([worst], cause, part);
        let text = format!("{share} of that: {because}{whose}{once}.");
        paragraph(out, style, anstyle::Style::new(), "", &text)?;
    }
    // What rests on idle time that is not reliable is no promise.
    if let Some(replay) = report.replay.as_ref().filter(|replay| !replay.withheld && quality.idle_reliable) {
        // A question that was asked, as after a faster host, is answered further below: it is no remedy that was found.
        if let Some(gain) = replay.remedies_together.as_ref().filter(|gain| gain.gain_ns > Ns::ZERO) {
            let set_up = report.findings.iter().flatten().find(|finding| finding.id == FindingId::OneTimeSetup);
            let set_up = set_up.map_or_else(String::new, |finding| {
                let part = match finding.recoverable_ns >= gain.gain_ns {
                    true => "all".to_owned(),
                    false => time(finding.recoverable_ns),
                };
                format!(", {part} of it from set-up that is done once")
            });
            let beyond = replay.idle_ns.map_or("", |idle| beyond_idle(gain.gain_ns, idle, report.devices.len()));
            // Of some the least is known, of others the most.
            let bound = match (gain.at_least, replay.what_if.iter().any(|what| what.at_least)) {
                (true, _) => "At least",
                (false, true) => "About",
                (false, false) => "Up to",
            };
            let (gain, share) = (time(gain.gain_ns), percent(gain.gain_fraction));
            let text = format!("{bound} {gain} ({share}) can be recovered{set_up}{beyond}.");
            paragraph(out, style, anstyle::Style::new(), "", &text)?;
        }
    }
    Ok(())
}

/// Why idle time is not reliable.
fn reasons(quality: &Quality, out: &mut dyn Write, style: Style) -> io::Result<()> {
    for reason in &quality.reasons {
        paragraph(out, style, style.alarm(), "  - ", &sentence(reason))?;
    }
    Ok(())
}

/// How idle the devices were, in one line.
fn headline(report: &Report, worst: &Device) -> String {
    let highest = report.devices.iter().map(|device| device.idle_fraction).fold(0.0, f64::max);
    let lowest = report.devices.iter().map(|device| device.idle_fraction).fold(1.0, f64::min);
    let many = report.devices.len();
    if negligible(report) {
        let who = if many > 1 { format!("Each of {many} GPUs was") } else { gpu(worst, "was") };
        let at_least = if many > 1 { "at least " } else { "" };
        let copying = copying(report).map_or_else(String::new, |copying| format!(", but {copying}"));
        return format!(
            "{who} busy {at_least}{} of the time: there is no idle time worth removing{copying}.",
            percent(1.0 - highest)
        );
    }
    let idle = format!(
        "{} of {}, in {}",
        time(worst.idle_ns),
        time(worst.span_ns),
        counted(worst.bubbles.count, "bubble", "bubbles")
    );
    if many > 1 {
        let range = format!("{} to {}", percent(lowest), percent(highest));
        format!("{many} GPUs were idle {range} of the time, GPU {} longest: {idle}.", worst.device)
    } else {
        format!("{} idle {} of the time: {idle}.", gpu(worst, "was"), percent(worst.idle_fraction))
    }
}

/// That a device which is busy computes little, if half of its time is copies alone.
fn copying(report: &Report) -> Option<String> {
    let share = |device: &Device| fraction(device.exposed_copy_ns, device.span_ns);
    let most = report.devices.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
    let who = if report.devices.len() > 1 { format!(" on GPU {}", most.device) } else { String::new() };
    (share(most) >= 0.5)
        .then(|| format!("{} of the time{who} is copies without a kernel beside them", percent(share(most))))
}

fn gpu(device: &Device, was: &str) -> String {
    if device.name.is_empty() {
        format!("GPU {} {was}", device.device)
    } else {
        format!("GPU {} ({}) {was}", device.device, harmless(&device.name))
    }
}

/// The calls that most of a cause's part is to blame on, as the end of a sentence on that part.
fn blamed(device: &Device, cause: Cause, part: Ns) -> String {
    let Some(most) = device.blamed.iter().find(|blamed| blamed.cause == cause) else { return String::new() };
    // Not all of that need be time in these calls.
    let share =
        if most.idle_ns == part { String::new() } else { format!(" for {} of it", percent_of(most.idle_ns, part)) };
    format!("; {} is to blame{share}", harmless(&most.api))
}

/// Why some devices were idle for `part`, which is what bubbles of `cause` took, as a clause.
pub(super) fn because<'r>(devices: impl IntoIterator<Item = &'r Device>, cause: Cause, part: Ns) -> Because {
    let rows = devices.into_iter().flat_map(|device| &device.host_time).map(|row| HostTime {
        cause: row.cause,
        kind: row.kind,
        api: row.api.as_deref().map(harmless),
        calls: row.calls,
        time: row.idle_ns,
    });
    analysis::because(cause, part, &rows.collect::<Vec<_>>())
}

/// The longest bubble, if it is most of what a device's largest cause takes: then the cause is one event, not a pattern.
pub(super) fn longest_of<'r>(report: &'r Report, device: &Device) -> Option<&'r Bubble> {
    let (cause, part) = largest(&device.idle_by_root)?;
    let bubble = report.bubbles.first()?;
    let is_most = bubble.dur_ns.0 > part.0 / 2 && device.bubbles.count > 1;
    (bubble.device == device.device && bubble.root.cause == cause && is_most).then_some(bubble)
}

/// The range or the call that a bubble's root cause names, as the end of a sentence.
pub(super) fn within(bubble: &Bubble) -> String {
    let root = &bubble.root;
    let call = root.api.as_ref().filter(|_| root.cause.blames_call());
    root.site.as_ref().or(call).map_or_else(String::new, |place| format!(", in {}", harmless(place)))
}

/// The entry with the most time, if any has some.
pub(super) fn largest<K: Copy + Ord>(parts: &BTreeMap<K, Ns>) -> Option<(K, Ns)> {
    let most = parts.iter().max_by_key(|&(&key, &part)| (part, std::cmp::Reverse(key)));
    most.map(|(&key, &part)| (key, part)).filter(|&(_, part)| part > Ns::ZERO)
}
