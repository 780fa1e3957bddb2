//! What the window says is what the analysis knows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bubblescope::analysis::{Cause, Rule};
use bubblescope::trace::{Interval, Ns};
use bubblescope_ui::App;
use bubblescope_ui::describe::{Description, describe, is_to_blame};
use bubblescope_ui::document::{Document, Item, Pick};
use bubblescope_ui::format;
use bubblescope_ui::panels::Tab;
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::looks::texts;
use crate::{planted, replayed, settle};

/// The window with a recording of the ten that have one cause of idle time each.
fn window(name: &str) -> Harness<'static, App> {
    let builder = Harness::builder().with_size([1700.0, 1300.0]);
    let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &[planted(name)]));
    settle(&mut harness);
    replayed(&mut harness);
    harness
}

/// The description of the longest bubble of the finding, and that of the op after it.
fn longest_bubble(harness: &Harness<'_, App>) -> [Description; 2] {
    let doc = &harness.state().docs[0];
    let full = doc.full().expect("it is replayed");
    let device = &full.analysis.devices[0];
    let found = full.findings.found.first();
    let ours = doc.bubbles().filter(|(_, bubble)| found.is_none_or(|finding| finding.concerns(device, bubble)));
    let (at, bubble) = ours.max_by_key(|(_, bubble)| bubble.interval.len()).expect("there are bubbles");
    [Item::Bubble(at), Item::Op(bubble.after)].map(|item| describe(doc, item).expect("it is of this trace"))
}

fn fact<'d>(of: &'d Description, name: &str) -> Option<&'d str> {
    of.facts.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value.as_str())
}

#[test]
fn a_bubble_says_why_and_names_its_finding() {
    for (name, why, finding, call) in [
        ("allocation", "the host was allocating or freeing memory", "allocation-in-loop", "Call"),
        ("blocking-copy", "a copy held the host up", "scalar-readback", "Call"),
        (
            "default-stream",
            "queued work waited for another stream or event, through the legacy default stream",
            "default-stream",
            "Default stream",
        ),
        ("dependency", "queued work waited for another stream or event", "no-overlap", "Wait by"),
        (
            "host-bound",
            "the host ran its own code between CUDA calls, for 272 µs of it; which code the recording does not tell: \
             `bubble-report record --nvtx` names ranges",
            "host-bound-step",
            "Next launch",
        ),
        ("launch-bound", "the GPU was faster than the host could launch", "tiny-launches", "Next launch"),
        ("module-load", "GPU code was being loaded or compiled", "lazy-loading", "Call"),
        (
            "pageable-copy",
            "a copy held the host up: the GPU waited for the copy itself, whose call was still at work",
            "pageable-async-copy",
            "Call",
        ),
        ("sync", "the host waited for the GPU before launching more", "sync-after-launch", "Call"),
    ] {
        let harness = window(name);
        let [bubble, _] = longest_bubble(&harness);
        assert_eq!(fact(&bubble, "Why"), Some(why), "{name}");
        let named = fact(&bubble, "Finding").unwrap();
        assert!(named.ends_with(&format!(" ({finding})")), "{name}: {named}");
        let call = fact(&bubble, call).unwrap_or_else(|| panic!("{name}: {bubble:?}"));
        let said = bubble.facts.iter().filter(|(fact, value)| value == call && *fact != "Drained by").count();
        assert_eq!(said, 1, "{name}: {bubble:?}");
        // A rule that speaks of the call that drained the device speaks of one that is named.
        let judged = fact(&bubble, "Judged by").unwrap();
        let drains = judged.starts_with("the call that was open when the device ran dry");
        assert!(!drains || fact(&bubble, "Drained by").is_some(), "{name}: {bubble:?}");
    }
}

#[test]
fn a_launch_latency_is_no_time_in_a_queue() {
    for (name, latency, queued, then) in [
        ("sync", Some("9.26 µs, from the call's start"), None, None),
        (
            "default-stream",
            None,
            Some("10.6 ms, from its call's end, behind earlier work of its stream"),
            Some("34.5 µs after that work, when stir_all on stream 16 was over"),
        ),
        // Their calls were open when the work before was over: nothing was queued.
        ("pageable-copy", Some("129 µs, from the call's start; its stream had work for the first 46.6 µs"), None, None),
        ("launch-bound", Some("10.5 µs, from the call's start"), None, None),
    ] {
        let [_, op] = longest_bubble(&window(name));
        let facts = ["Launch to start", "Queued for", "Then started"].map(|name| fact(&op, name));
        assert_eq!(facts, [latency, queued, then], "{name}");
    }
}

/// What the rules say of the call that launched the next op.
#[test]
fn a_launch_that_is_called_late_was_not_over() {
    let mut looked = 0;
    for name in ["launch-bound", "sync", "pageable-copy", "allocation", "host-bound"] {
        let harness = window(name);
        let doc = &harness.state().docs[0];
        for (_, bubble) in doc.bubbles() {
            if matches!(bubble.root.rule, Rule::LaunchLate | Rule::OwnLaunchFillsHalf) {
                let launch = bubble.launch.unwrap();
                assert!(doc.trace.calls.end[launch.index()] > bubble.interval.start, "{name}: {:?}", bubble.interval);
                looked += 1;
            }
        }
    }
    assert!(looked > 500, "{looked}");
}

/// The first word after a lone `1` that has the ending of many things.
fn one_of_many(text: &str) -> Option<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let units = ["ns", "µs", "ms", "s", "is", "was", "has"];
    let many = |word: &&str| word.ends_with('s') && !units.contains(word);
    words
        .windows(2)
        .filter(|pair| pair[0] == "1")
        .map(|pair| pair[1].trim_matches(|c: char| !c.is_alphabetic()))
        .find(many)
}

#[test]
fn one_thing_is_never_said_to_be_many() {
    assert_eq!((one_of_many("all 1 findings."), one_of_many("1 ms, 11 findings")), (Some("findings"), None));
    for name in ["pageable-copy", "graph-internal", "sync"] {
        let mut harness = window(name);
        for (tab, title) in Tab::ALL {
            harness.state_mut().panels.tab = tab;
            harness.state_mut().panels.search.text = "cuCtxSynchronize".to_owned();
            harness.run_steps(3);
            for (text, _) in texts(&harness) {
                assert_eq!(one_of_many(&text), None, "{name}, {title}: {text}");
            }
        }
    }
}

#[test]
fn an_op_of_a_graph_is_named_by_its_place() {
    let harness = window("graph-internal");
    let doc = &harness.state().docs[0];
    let op = doc.trace.ops.indices().filter(|op| doc.trace.ops.graph[op.index()].is_some()).nth(1).unwrap();
    assert_eq!(fact(&describe(doc, Item::Op(op)).unwrap(), "Graph"), Some("2, op 2 of 20 of this launch"));
}

/// Whatever is selected, the panel beside the timeline stays as wide as it is: nothing on the timeline moves.
#[test]
fn the_details_of_anything_are_as_wide_as_those_of_anything_else() {
    for name in ["default-stream", "dependency", "graph-internal", "host-bound", "pageable-copy"] {
        let mut harness = Harness::builder()
            .with_size([1300.0, 800.0])
            .build_eframe(|creation| App::new(&creation.egui_ctx, &[planted(name)]));
        settle(&mut harness);
        replayed(&mut harness);
        let whole = harness.get_by_label("timeline").rect();
        let doc = &harness.state().docs[0];
        let bubbles: Vec<Item> = doc.bubbles().step_by(60).map(|(at, _)| Item::Bubble(at)).collect();
        let ops = doc.trace.ops.indices().step_by(70).map(Item::Op);
        let calls = doc.trace.calls.indices().step_by(70).map(Item::Call);
        for item in bubbles.into_iter().chain(ops).chain(calls).collect::<Vec<Item>>() {
            harness.state_mut().timeline.selected = Some(Pick { doc: 0, item });
            harness.run_steps(3);
            assert_eq!(harness.get_by_label("timeline").rect(), whole, "{name}: {item:?}");
        }
    }
}

#[test]
fn an_op_that_waited_through_the_default_stream_names_what_it_waited_for() {
    let [bubble, op] = longest_bubble(&window("default-stream"));
    let (before, after) = (fact(&bubble, "Before").unwrap(), fact(&bubble, "After").unwrap());
    assert!(before.contains(" on stream ") && after.contains(" on stream ") && before != after, "{bubble:?}");
    for described in [&bubble, &op] {
        let waits = fact(described, "Waits for").unwrap();
        assert_eq!(waits, format!("{before}, through the legacy default stream"), "{described:?}");
    }
    let [same, _] = longest_bubble(&window("sync"));
    assert_eq!(fact(&same, "Before"), Some("stir_all"), "on one stream it goes without saying");
}

/// An op says the same of what it waited for, whether or not it ended a bubble and the analysis says it.
/// The launch into the default stream may be that of the op before the bubble or of the one after it.
#[test]
fn the_launch_into_the_default_stream_is_named_once() {
    let harness = window("default-stream");
    let doc = &harness.state().docs[0];
    let mut cases = [0_u32; 2];
    for (at, bubble) in doc.bubbles().filter(|(_, bubble)| bubble.root.rule == Rule::LegacyDefaultStream) {
        let found = describe(doc, Item::Bubble(at)).expect("it is of this trace");
        let calls: Vec<Item> =
            found.links.iter().map(|&(_, item)| item).filter(|item| matches!(item, Item::Call(_))).collect();
        let of = |op| doc.trace.ops.launch(op).map(Item::Call).expect("it was launched");
        let (before, after) = (of(bubble.before), of(bubble.after));
        let into = found.facts.iter().position(|(name, _)| *name == "Default stream").expect("it says who");
        let linked = found.links.iter().find(|&&(fact, _)| fact == into).map(|&(_, item)| item);
        let is_after = linked == Some(after);
        assert_eq!(calls, if is_after { vec![after] } else { vec![before, after] }, "{found:?}");
        assert_eq!(found.facts[into].1.contains(", called "), is_after, "{found:?}");
        assert_eq!(fact(&found, "Next op's launch").is_some(), !is_after, "{found:?}");
        cases[usize::from(is_after)] += 1;
    }
    assert!(cases.iter().all(|&count| count > 50), "{cases:?}");
}

/// What kept the host from launching is named where it was no launch.
#[test]
fn a_bubble_that_other_calls_filled_names_them() {
    let builder = Harness::builder().with_size([1700.0, 1300.0]);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/nccl/nccl-late-1-2.bubcap");
    let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &[path]));
    settle(&mut harness);
    let doc = &harness.state().docs[0];
    let is = |bubble: &&bubblescope::analysis::Bubble| bubble.root.cause == Cause::LaunchBound;
    let longest = doc.bubbles().filter(|(_, bubble)| is(bubble)).max_by_key(|(_, bubble)| bubble.interval.len());
    let found = describe(doc, Item::Bubble(longest.expect("there is one").0)).expect("it is of this trace");
    let why = fact(&found, "Why").expect("it has a reason");
    let expected = "other CUDA calls kept the host from launching more, 4.30 ms of 7.06 ms in \
                    cudaStreamCreateWithPriority (128 calls), ";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn what_an_op_waited_for_is_known_without_a_bubble() {
    let harness = window("default-stream");
    let analysed = &harness.state().docs[0];
    let plain = Document::new(&planted("default-stream"), Arc::clone(&analysed.trace));
    let held = analysed.bubbles().filter(|(_, bubble)| bubble.root.rule == Rule::LegacyDefaultStream);
    let mut seen = 0;
    for (_, bubble) in held {
        let waits = |doc: &Document| doc.handovers_of(Item::Op(bubble.after)).collect::<Vec<_>>();
        assert_eq!(waits(&plain), waits(analysed), "{bubble:?}");
        assert_eq!(waits(&plain)[0].first, Some(bubble.before));
        seen += 1;
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn no_call_is_named_as_to_blame_that_only_came_next() {
    for (name, blames) in [
        ("host-bound", false),
        ("launch-bound", false),
        ("default-stream", false),
        ("graph-internal", false),
        ("sync", true),
        ("dependency", true),
    ] {
        let mut harness = window(name);
        harness.state_mut().panels.tab = Tab::Bubbles;
        harness.run_steps(3);
        let named = harness.state().docs[0].bubbles().filter(|(_, bubble)| is_to_blame(&bubble.root)).count();
        assert_eq!(named > 100, blames, "{name}: {named}");
    }
}

#[test]
fn the_call_that_holds_most_of_a_bubble_is_named_and_led_to() {
    let mut harness = window("launch-bound");
    let [bubble, _] = longest_bubble(&harness);
    let held = fact(&bubble, "Mostly in").unwrap();
    assert!(held.starts_with("cuLaunchKernel: 14.9 µs of its 24.7 µs, 57.5 % of the bubble"), "{held}");
    let names: Vec<&str> = bubble.facts.iter().map(|(name, _)| *name).collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let launch = if names.contains(&"Next launch") { "Next launch" } else { "Next op's launch" };
    assert!(at("Mostly in") < at(launch), "{names:?}");
    let (at, found) = {
        let doc = &harness.state().docs[0];
        let (at, bubble) = doc.bubbles().max_by_key(|(_, bubble)| bubble.interval.len()).unwrap();
        let (device, _) = doc.bubble(at).unwrap();
        let first = device.segments_of(bubble).iter().find_map(bubblescope::analysis::Segment::call).unwrap();
        (at, Item::Call(first))
    };
    harness.state_mut().timeline.selected = Some(Pick { doc: 0, item: Item::Bubble(at) });
    harness.run_steps(3);
    // Links of the facts hold more than the name.
    harness.get_all_by_role_and_label(Role::Link, "cuLaunchKernel").next().unwrap().click();
    harness.run_steps(3);
    assert_eq!(harness.state().timeline.selected.unwrap().item, found);
}

/// Marks an interval and shows its figures once they are there.
fn measure(harness: &mut Harness<'_, App>, interval: Interval) {
    harness.state_mut().panels.tab = Tab::Measure;
    harness.state_mut().timeline.measured = Some(interval);
    let start = Instant::now();
    while harness.state().panels.measured.figures().is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "the figures never come");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(2);
}

#[test]
fn a_marked_interval_is_told_about_as_a_whole() {
    let mut harness = window("module-load");
    let (interval, idle) = {
        let doc = &harness.state().docs[0];
        let (_, bubble) = doc.bubbles().max_by_key(|(_, bubble)| bubble.interval.len()).unwrap();
        let middle = Ns(bubble.interval.start.0.midpoint(bubble.interval.end.0));
        let interval = Interval::new(middle, doc.trace.ops.end[bubble.after.index()]);
        (doc.shifted(interval), bubble.interval.end - middle)
    };
    measure(&mut harness, interval);
    let (whole, idle) = (interval.len().0, idle.0);
    let share = format::percent(idle, whole);
    let said = format!("stands idle for {share} of {}: {}", format::duration(whole), format::duration(idle));
    harness.get_by_label_contains(&said);
}

/// What lies outside the measured part counts where it is marked, though no lane has it.
#[test]
fn a_marked_interval_beyond_what_was_analysed_says_so() {
    let mut harness = window("sync");
    let (inside, beyond) = {
        let doc = &harness.state().docs[0];
        let span = doc.analysis().unwrap().devices[0].span;
        let inside = Interval::new(Ns(span.end.0 - 100_000), span.end);
        (doc.shifted(inside), doc.shifted(Interval::new(inside.start, doc.trace.end)))
    };
    measure(&mut harness, beyond);
    harness.get_by_label_contains("are not drawn in the timeline");
    let mut harness = window("sync");
    measure(&mut harness, inside);
    assert!(harness.query_by_label_contains("are not drawn in the timeline").is_none());
}

/// What a replay can only tell the least of is said to be the least, wherever its figure stands.
#[test]
fn the_least_to_expect_is_never_said_to_be_the_gain() {
    for (name, least) in [("pageable-copy", true), ("sync", false)] {
        let mut harness = window(name);
        let full = harness.state().docs[0].full().unwrap().clone();
        let gain = format::duration(full.findings.found[0].recoverable.0);
        let api = full.findings.found[0].evidence[0].api.clone().unwrap();
        let row = full.analysis.sync_calls.iter().find(|row| row.api == api).unwrap();
        let recoverable = format::duration(row.recoverable.unwrap().0);
        for (tab, figure) in [(Tab::Overview, &gain), (Tab::Findings, &gain), (Tab::SyncCalls, &recoverable)] {
            harness.state_mut().panels.tab = tab;
            harness.run_steps(3);
            let said: Vec<String> =
                texts(&harness).into_iter().map(|(text, _)| text).filter(|text| text.contains(figure)).collect();
            assert!(!said.is_empty(), "{name}, {tab:?}: {figure}");
            // The same digits may be another figure's, which is none of a gain.
            let bound = said.iter().filter(|text| text.contains(&format!("at least {figure}"))).count();
            assert_eq!(bound > 0, least, "{name}, {tab:?}: {said:?}");
        }
    }
}

/// A bubble that a marked interval cuts counts with its part inside, and that is said.
#[test]
fn a_cut_bubble_is_told_with_its_whole_length() {
    let mut harness = window("allocation");
    let (interval, whole, inside) = {
        let doc = &harness.state().docs[0];
        let (_, bubble) = doc.bubbles().max_by_key(|(_, bubble)| bubble.interval.len()).unwrap();
        let from = Ns(bubble.interval.start.0 + 50_000);
        let interval = Interval::new(from, doc.trace.ops.end[bubble.after.index()]);
        (doc.shifted(interval), bubble.interval.len(), bubble.interval.end - from)
    };
    measure(&mut harness, interval);
    let (whole, inside) = (format::duration(whole.0), format::duration(inside.0));
    harness
        .get_by_label_contains(&format!("Of a bubble of {whole}, which reaches beyond the interval, {inside} count."));
}

#[test]
fn a_call_leads_to_the_bubbles_that_exist_because_of_it() {
    let mut seen = 0;
    for name in ["allocation", "sync", "dependency", "launch-bound"] {
        let harness = window(name);
        let doc = &harness.state().docs[0];
        for call in doc.trace.calls.indices().step_by(7) {
            let ours = doc.bubbles().filter(|(_, bubble)| bubble.root.call == Some(call) && is_to_blame(&bubble.root));
            let ours: Vec<_> = ours.collect();
            let described = describe(doc, Item::Call(call)).unwrap();
            let told = fact(&described, "Caused");
            let Some((at, first)) = ours.iter().min_by_key(|(_, bubble)| bubble.interval.start) else {
                assert_eq!(told, None, "{name}: {described:?}");
                continue;
            };
            seen += 1;
            let told = told.unwrap_or_else(|| panic!("{name}: {described:?}"));
            assert!(told.contains(&format::duration(first.interval.len().0)), "{told}");
            assert_eq!(ours.len() > 1, told.starts_with(&format!("{} bubbles", ours.len())), "{told}");
            let led: Vec<Item> = described.links.iter().map(|(_, item)| *item).collect();
            let longest = ours.iter().map(|(_, bubble)| bubble.interval.len()).max();
            let is_longest = |item: &Item| {
                let Item::Bubble(at) = item else { return false };
                doc.bubble(*at).map(|(_, bubble)| bubble.interval.len()) == longest
            };
            assert!(led.contains(&Item::Bubble(*at)) && led.iter().any(is_longest), "{name}: {described:?}");
        }
    }
    assert!(seen > 50, "{seen}");
}

/// A launch comes next only where it was called after the device had run dry.
#[test]
fn a_launch_made_before_the_bubble_is_not_said_to_come_next() {
    let mut seen = [0; 2];
    for name in ["default-stream", "launch-bound", "host-bound", "graph-internal"] {
        let harness = window(name);
        let doc = &harness.state().docs[0];
        for (at, bubble) in doc.bubbles().filter(|(_, bubble)| !is_to_blame(&bubble.root)).step_by(5) {
            let Some(call) = bubble.root.call else { continue };
            let before = doc.trace.calls.start[call.index()] < bubble.interval.start;
            let described = describe(doc, Item::Bubble(at)).unwrap();
            assert_eq!(fact(&described, "Next launch").is_some(), !before, "{name}: {described:?}");
            // The one into the default stream is named as that.
            let launches = ["Next op's launch", "Default stream"].into_iter().filter_map(|name| fact(&described, name));
            let ahead = launches.filter(|launch| launch.ends_with(" before the bubble")).count();
            assert_eq!(ahead, usize::from(before), "{described:?}");
            seen[usize::from(before)] += 1;
        }
    }
    assert!(seen[0] > 10 && seen[1] > 10, "{seen:?}");
}

/// What is said of several waits stands together for each, in one order.
#[test]
fn each_of_several_waits_is_told_by_itself() {
    let harness = window("dependency");
    let doc = &harness.state().docs[0];
    let order = ["Waits for", "Event by", "Wait by", "Holds back"];
    let mut several = 0;
    for op in doc.trace.ops.indices().step_by(3) {
        let described = describe(doc, Item::Op(op)).unwrap();
        let names: Vec<&str> = described.facts.iter().map(|(name, _)| *name).collect();
        let Some(first) = names.iter().position(|name| *name == "Dependency") else {
            assert!(names.iter().filter(|name| **name == "Wait by").count() <= 1, "{names:?}");
            continue;
        };
        several += 1;
        for group in names[first..].split(|name| *name == "Dependency").skip(1) {
            let places: Vec<_> = group.iter().map(|name| order.iter().position(|other| other == name)).collect();
            assert!(places.iter().all(Option::is_some), "{names:?}");
            assert!(places.is_sorted_by(|a, b| a < b), "{names:?}");
        }
    }
    assert!(several > 10, "{several}");
}

/// A search looks through the whole recording, of which findings count a part.
#[test]
fn a_search_says_how_much_lies_in_the_measured_part() {
    let mut harness = window("module-load");
    harness.state_mut().panels.tab = Tab::Search;
    harness.state_mut().panels.search.text = "cuModuleGetFunction".to_owned();
    harness.run_steps(4);
    let doc = &harness.state().docs[0];
    let (trace, window) = (&doc.trace, doc.analysis().unwrap().window);
    let ours = trace.calls.indices().filter(|&call| trace.call_name(call) == "cuModuleGetFunction");
    let starts: Vec<Ns> = ours.map(|call| trace.calls.start[call.index()]).collect();
    let inside = starts.iter().filter(|&&start| window.contains(start)).count();
    assert!(inside > 100 && inside < starts.len(), "{inside} of {}", starts.len());
    harness.get_by_label_contains(&format!("{} in all; {inside} in the measured part.", starts.len()));
    let cells: Vec<String> = texts(&harness).into_iter().map(|(text, _)| text).collect();
    for count in [starts.len(), inside] {
        assert!(cells.contains(&count.to_string()), "{count}: {cells:?}");
    }
}

#[test]
fn where_nothing_would_gain_enough_both_panels_say_so_and_what_was_looked_at_stands_above() {
    let mut harness = window("graph-internal");
    assert!(harness.state().docs[0].full().unwrap().findings.found.is_empty());
    let nothing = "nothing was found that would gain enough";
    let scope = harness.get_by_label_contains("set-up and warm-up are left out").rect();
    let fix = harness.get_by_label(&format!("{nothing}.")).rect();
    assert!(scope.bottom() <= fix.top(), "{scope} {fix}");
    // It still leads somewhere: to the longest bubble of what idle time there is.
    let longest = harness.state().docs[0].longest_bubble(|bubble| bubble.root.cause == Cause::GraphInternal);
    for tab in [Tab::Overview, Tab::Findings] {
        harness.state_mut().panels.tab = tab;
        harness.state_mut().timeline.selected = None;
        harness.run_steps(3);
        harness.get_by_label_contains(nothing);
        harness.get_by_label_contains("Most idle time:");
        let doc = &harness.state().docs[0];
        let at = doc.longest_of_all().unwrap();
        let other = doc.bubble(at).unwrap().1.root.cause;
        assert_ne!(other, Cause::GraphInternal, "`B` leads to another cause");
        harness.get_by_label_contains("the longest bubble has another cause:");
        harness.get_by_role_and_label(Role::Link, other.as_str()).click();
        harness.run_steps(3);
        assert_eq!(harness.state().timeline.selected.map(|pick| pick.item), Some(Item::Bubble(at)), "{tab:?}");
        harness.get_by_role_and_label(Role::Link, "graph-internal").click();
        harness.run_steps(3);
        let selected = harness.state().timeline.selected.map(|pick| pick.item);
        assert_eq!(selected, longest.map(Item::Bubble), "{tab:?}");
    }
}
