//! The patterns that can be fixed.

use std::io::{self, Write};

use super::table::paragraph;
use super::units::{count, counted, moment, percent_of, time};
use super::verdict::{because, largest, longest_of, within};
use super::{Style, negligible};
use crate::analysis::Severity;
use crate::report::contract::{Finding, Report};
use crate::trace::Ns;

/// Each with what shows it and what to do; where there is none, the largest cause all the same.
pub(super) fn findings(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(findings) = &report.findings else {
        let Some(reason) = &report.findings_withheld else { return Ok(()) };
        style.section(out, "Findings")?;
        return paragraph(out, style, style.alarm(), "  ", &format!("Withheld: {reason}."));
    };
    style.section(out, "Findings")?;
    if findings.is_empty() {
        let (paint, text) = none(report, style);
        return paragraph(out, style, paint, "  ", &text);
    }
    let span = report.devices.iter().map(|device| device.span_ns).max().unwrap_or_default();
    for (index, finding) in findings.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        one_finding(finding, index + 1, span, out, style)?;
    }
    Ok(())
}

/// What there is to say without a finding. Idle time without a pattern has a cause too.
fn none(report: &Report, style: Style) -> (anstyle::Style, String) {
    let nothing = "None: no known pattern here would recover enough to be worth changing.";
    let worst = report.devices.iter().max_by_key(|device| device.idle_ns);
    let Some((device, (cause, part))) =
        worst.filter(|_| !negligible(report)).and_then(|device| Some((device, largest(&device.idle_by_root)?)))
    else {
        return (style.good(), nothing.to_owned());
    };
    if !report.has_host_calls() {
        let text = "Not known: no host call was recorded, and it is calls that patterns are told by.";
        return (anstyle::Style::new(), text.to_owned());
    }
    let cause = format!("{cause} ({}), {}", because([device], cause, part), percent_of(part, device.idle_ns));
    let cause = format!("The largest cause of idle time is {cause} of it");
    let Some(bubble) = longest_of(report, device) else {
        let how = match device.bubbles.count {
            1 => ", in the only bubble".to_owned(),
            many => format!("; of {} bubbles the longest lasts {}", count(many), time(device.bubbles.max_ns)),
        };
        return (anstyle::Style::new(), format!("{nothing} {cause}{how}."));
    };
    let text = format!(
        "No pattern that repeats would recover enough to be worth changing. {cause}: {} of that once, at {}{}.",
        time(bubble.dur_ns),
        moment(bubble.start_ns),
        within(bubble)
    );
    (anstyle::Style::new(), text)
}

fn one_finding(finding: &Finding, number: usize, span: Ns, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let paint = match finding.severity {
        Severity::High => style.alarm(),
        Severity::Medium => style.costly(),
        Severity::Low => style.heading(),
    };
    let first = format!("  {number}. ");
    let indent = " ".repeat(first.len());
    paragraph(out, style, paint, &first, &finding.title)?;
    let worth = format!(
        "{} severity: {}{} recoverable ({} of the span), {} ({})",
        finding.severity,
        if finding.at_least { "at least " } else { "" },
        time(finding.recoverable_ns),
        percent_of(finding.recoverable_ns, span),
        counted(finding.count, "occurrence", "occurrences"),
        finding.id
    );
    paragraph(out, style, anstyle::Style::new(), &indent, &worth)?;
    for evidence in &finding.evidence {
        let mut text = evidence.text.clone();
        if !evidence.at_ns.is_empty() {
            let at: Vec<String> = evidence.at_ns.iter().take(3).copied().map(moment).collect();
            text.push_str(&format!(" (for example at {})", at.join(", ")));
        }
        paragraph(out, style, style.faint(), &format!("{indent}- "), &text)?;
    }
    paragraph(out, style, anstyle::Style::new(), &format!("{indent}Remedy: "), &finding.remedy)
}
