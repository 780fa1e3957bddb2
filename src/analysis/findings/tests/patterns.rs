//! Each pattern alone, and what comes close to it.

use super::super::calls::after_launches;
use super::super::{FindingId, Severity};
use super::{US, findings, ids, read_back, steps};
use crate::analysis::replay::Change;
use crate::analysis::scene::Scene;
use crate::analysis::{Options, full};
use crate::trace::MemoryKind::{Array, Device, Pageable, Pinned, Unknown};
use crate::trace::{Detail, Ns, OpKind, OverheadKind, StreamKind, SyncKind, Trace};

#[test]
fn a_value_read_back_in_every_step() {
    let trace = steps(40, |scene, _, id, at| read_back(scene, 4, id, at));
    let findings = findings(&trace);
    let [finding] = findings.found.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.id, finding.severity, finding.count), (FindingId::ScalarReadback, Severity::High, 39));
    let evidence = &finding.evidence[0];
    assert_eq!(evidence.api.as_deref(), Some("cudaMemcpyAsync"));
    let text = "cudaMemcpyAsync of 4 bytes and cudaStreamSynchronize behind it, 39 times; 39 bubbles";
    assert!(evidence.text.starts_with(text), "{}", evidence.text);
    assert_eq!(evidence.at.len(), 3);
}

#[test]
fn the_same_with_an_item_from_pageable_memory_is_one_finding() {
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 17 * US));
        let (call, op) = ((at + 4_200, at + 21 * US), (7, at + 18 * US, at + 19 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 4), (Device, Pageable), id + 1, call, op);
        scene.stream_sync(id + 2, 7, at + 21_200, at + 22 * US);
        at + 23 * US
    });
    assert_eq!(ids(&trace), [FindingId::ScalarReadback]);
}

#[test]
fn a_large_copy_that_is_waited_for_is_no_scalar() {
    let trace = steps(40, |scene, _, id, at| read_back(scene, 1 << 16, id, at));
    assert_eq!(ids(&trace), [FindingId::BlockingCopyInLoop]);
    let blocking = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 17 * US));
        let (call, op) = ((at + 4_200, at + 25 * US), (7, at + 20 * US, at + 22 * US));
        scene.copies(("cudaMemcpy_v3020", 1 << 16), (Device, Pageable), id + 1, call, op);
        at + 26 * US
    });
    assert_eq!(ids(&blocking), [FindingId::BlockingCopyInLoop]);
}

#[test]
fn a_value_looked_at_steps_later_is_no_finding() {
    // The wait is for the copy of the step before, which was done long ago: the device has work all the time.
    let trace = steps(60, |scene, index, id, at| {
        let start = 5 * US + index as i64 * 15 * US;
        scene.launch(id, (at, at + 4 * US), 7, (start, start + 12 * US));
        let (call, op) = ((at + 4_200, at + 6 * US), (7, start + 13 * US, start + 14 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 4), (Device, Pinned), id + 1, call, op);
        scene.record_event(id + 2, at + 6_200, 7, index as u32 + 1, Some(index + 1));
        if index == 0 {
            return at + 7 * US;
        }
        let (from, to) = (at + 6_500, at + 7_500);
        scene.call("cudaEventSynchronize_v3020", id + 3, from, to.max(start + US));
        let event = Some((index as u32, Some(index)));
        scene.sync_record(SyncKind::Event, id + 3, (from, to.max(start + US)), None, event);
        to.max(start + US) + US
    });
    assert_eq!(ids(&trace), []);
}

#[test]
fn a_synchronisation_after_every_launch() {
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
        scene.stream_sync(id + 1, 7, at + 4_200, at + 27 * US);
        at + 28 * US
    });
    let findings = findings(&trace);
    assert_eq!(findings.found.len(), 1);
    assert_eq!(findings.found[0].id, FindingId::SyncAfterLaunch);
    assert_eq!(findings.found[0].title, "The host waits for the GPU after every launch, 39 times");
}

#[test]
fn pageable_memory_in_an_asynchronous_copy() {
    let trace = steps(40, |scene, _, id, at| {
        let (call, op) = ((at, at + 103 * US), (7, at + 102 * US, at + 122 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 1 << 20), (Pageable, Device), id, call, op);
        scene.launch(id + 1, (at + 104 * US, at + 105 * US), 7, (at + 123 * US, at + 153 * US));
        at + 106 * US + 50 * US
    });
    let found = full(&trace, &Options::default());
    let [finding] = found.findings.found.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding.id, FindingId::PageableAsyncCopy);
    let text = &finding.evidence[0].text;
    // Before each copy but the first the GPU is idle for 105 µs; the 1 µs after it is that of the queue. 1 MiB in 20 µs.
    let caused = "cudaMemcpyAsync of 1 MiB, 40 times; 39 bubbles exist because of that, 4.10 ms long together";
    assert!(text.starts_with(caused), "{text}");
    assert!(text.contains("on the GPU they take 800 µs at 52.4 GB/s, none of it beside a kernel"), "{text}");
    assert_eq!(
        finding.evidence.last().unwrap().text,
        "the bubbles that it caused, began or prolonged have the root cause blocking-copy"
    );
    // Nothing comes back to the host, so nothing is assumed of what it does with it.
    let speed = "a copy takes as long on the device from page-locked memory as from pageable memory";
    assert_eq!(finding.assumptions, [speed]);
    // The data has to get there: the row of these calls promises what the finding does, not that no copy is made.
    let row = found.analysis.sync_calls.iter().find(|row| row.api == "cudaMemcpyAsync").unwrap();
    let idle = found.analysis.devices[0].idle_ns();
    let promised = row.recoverable.unwrap();
    assert_eq!(promised, finding.recoverable);
    assert!(promised <= idle, "{promised} of {idle} ns");
}

#[test]
fn what_is_taken_for_granted_fits_the_calls() {
    let results = "the host does the same whether or not it has the results that it waited for";
    let trace = steps(40, |scene, _, id, at| {
        scene.call("cudaMalloc_v3020", id, at, at + 40 * US);
        scene.launch(id + 1, (at + 41 * US, at + 45 * US), 7, (at + 46 * US, at + 66 * US));
        scene.call("cudaFree_v3020", id + 2, at + 46 * US, at + 100 * US);
        at + 101 * US
    });
    let memory =
        "memory is there when it is needed without these calls, kept or from a pool, and getting it takes no time";
    assert_eq!(findings(&trace).found[0].assumptions, [memory], "freeing memory brings no results");
    let trace = steps(40, |scene, _, id, at| read_back(scene, 4, id, at));
    assert_eq!(findings(&trace).found[0].assumptions, [results]);
}

/// Kineto and exports of Nsight Systems may tell which way a copy goes and not which memory of the host it uses.
#[test]
fn what_is_taken_for_granted_of_copies_of_unknown_memory_follows_their_way() {
    let results = "the host does the same whether or not it has the results that it waited for";
    let speed = "a copy takes as long on the device from page-locked memory as from pageable memory";
    for (name, from, to, assumed) in [
        ("Memcpy DtoH", Device, Unknown, results),
        ("Memcpy AtoH", Array, Unknown, results),
        ("Memcpy DtoH (Device -> Unknown)", Device, Unknown, results),
        ("CopyDeviceToHost", Unknown, Unknown, results),
        ("Memcpy DtoH (Device -> Pageable)", Device, Pageable, results),
        ("Memcpy HtoD", Unknown, Device, speed),
        ("CopyHostToDevice", Unknown, Unknown, speed),
        ("Memcpy HtoD (Pageable -> Device)", Pageable, Device, speed),
    ] {
        let trace = steps(40, |scene, _, id, at| {
            scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 17 * US));
            scene.call("cudaMemcpy_v3020", id + 1, at + 4_200, at + 25 * US);
            let detail = Detail::Copy { from, to, asynchronous: false };
            scene.op_named((OpKind::Copy, 1 << 16, name), detail, 7, id + 1, at + 20 * US, at + 22 * US);
            at + 26 * US
        });
        let found = findings(&trace).found;
        assert_eq!((found[0].id, &found[0].assumptions[..]), (FindingId::BlockingCopyInLoop, &[assumed][..]), "{name}");
    }
}

#[test]
fn what_runs_beside_pageable_copies_is_told() {
    let trace = steps(40, |scene, _, id, at| {
        let (call, op) = ((at, at + 103 * US), (7, at + 102 * US, at + 122 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 1 << 20), (Pageable, Device), id, call, op);
        scene.launch(id + 1, (at + 104 * US, at + 105 * US), 8, (at + 106 * US, at + 112 * US));
        scene.launch(id + 2, (at + 105 * US, at + 106 * US), 9, (at + 110 * US, at + 130 * US));
        at + 156 * US
    });
    let findings = findings(&trace);
    let text = &findings.found[0].evidence[0].text;
    assert!(text.contains("on the GPU they take 800 µs at 52.4 GB/s, 640 µs of it beside kernels"), "{text}");
}

#[test]
fn pinned_copies_show_what_pageable_ones_could_be() {
    let trace = steps(40, |scene, _, id, at| {
        let (call, op) = ((at, at + 100 * US), (7, at + 102 * US, at + 122 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 1 << 20), (Pageable, Device), id, call, op);
        scene.launch(id + 1, (at + 101 * US, at + 105 * US), 7, (at + 123 * US, at + 153 * US));
        let (call, op) = ((at + 106 * US, at + 108 * US), (8, at + 125 * US, at + 135 * US));
        scene.copies(("cudaMemcpyAsync_v3020", 1 << 20), (Pinned, Device), id + 2, call, op);
        at + 156 * US
    });
    let findings = findings(&trace);
    let text = &findings.found[0].evidence[0].text;
    assert!(text.ends_with("; copies of pinned memory run at 105 GB/s here"), "{text}");
}

#[test]
fn allocation_in_the_loop() {
    let trace = steps(40, |scene, _, id, at| {
        scene.call("cudaMalloc_v3020", id, at, at + 40 * US);
        scene.launch(id + 1, (at + 41 * US, at + 45 * US), 7, (at + 46 * US, at + 66 * US));
        scene.call("cudaFree_v3020", id + 2, at + 46 * US, at + 100 * US);
        at + 101 * US
    });
    assert_eq!(ids(&trace), [FindingId::AllocationInLoop]);
}

#[test]
fn allocation_while_starting_up_is_no_loop() {
    let trace = steps(200, |scene, index, id, at| {
        let mut at = at;
        if index < 20 {
            scene.call("cudaMalloc_v3020", id, at, at + 40 * US);
            at += 41 * US;
        }
        scene.launch(id + 1, (at, at + 4 * US), 7, (at + 5 * US, at + 24 * US));
        at + 20 * US
    });
    let findings = findings(&trace);
    let [found] = findings.found.as_slice() else { panic!("{findings:?}") };
    assert_eq!((found.id, found.count), (FindingId::OneTimeSetup, 19), "the first lies before the first op");
    assert!(found.evidence[0].text.starts_with("cudaMalloc: memory was allocated"), "{:?}", found.evidence);
}

/// Everything that a program does once, between a few pieces of work.
#[test]
fn set_up_that_is_done_once_is_told_from_loops() {
    let with = |name: &str, launch: bool| {
        steps(6, |scene, index, id, mut at| {
            let once = index == 3;
            if once && !launch {
                scene.call(name, id, at, at + 3_000 * US);
                at += 3_001 * US;
            }
            let length = if once && launch { 3_000 * US } else { 4 * US };
            // No two alike, so that there is no loop to have settled.
            let op = format!("kernel {index}");
            scene.launch_named(&op, id + 1, (at, at + length), 7, (at + length + US, at + length + 20 * US));
            at + length + 16 * US
        })
    };
    for (name, launch, says) in [
        ("cudaMalloc_v3020", false, "cudaMalloc: memory was allocated or freed for 3.00 ms of idle time, in 1 call"),
        ("cudaFree_v3020", false, "cudaFree: memory was allocated or freed for 3.00 ms of idle time, in 1 call"),
        (
            "cuModuleLoadData",
            false,
            "cuModuleLoadData: code was loaded or compiled for 3.00 ms of idle time, in 1 call",
        ),
        ("cudaGraphInstantiate_v12000", false, "cudaGraphInstantiate: a graph was built for 3.00 ms of idle time"),
        ("", true, "cudaLaunchKernel: code was loaded or compiled for 3.00 ms of idle time, in 1 call"),
    ] {
        let trace = with(name, launch);
        let findings = findings(&trace);
        let [found] = findings.found.as_slice() else { panic!("{name}: {findings:?}") };
        assert_eq!((found.id, found.severity, found.count), (FindingId::OneTimeSetup, Severity::High, 1), "{name}");
        let near = (found.recoverable.0 - 3_000 * US).abs() < 30 * US;
        assert!(near, "{name}: {}", found.recoverable);
        assert!(found.evidence[0].text.starts_with(says), "{name}: {}", found.evidence[0].text);
    }
}

/// The first launch of a graph takes it to the device: that is set-up when it happens once, and a loop otherwise.
#[test]
fn first_launches_of_graphs_are_set_up_only_when_they_are_few() {
    let with = |new: fn(u64) -> bool| {
        let mut graph = 0;
        steps(40, |scene, index, id, at| {
            let first = index == 0 || new(index);
            graph += u32::from(first);
            let length = if first { 300 * US } else { 4 * US };
            scene.call("cudaGraphLaunch_v10000", id, at, at + length);
            scene.node(7, id, graph, (at + length + US, at + length + 21 * US));
            at + length + 22 * US
        })
    };
    let once = findings(&with(|index| index == 20));
    let [found] = once.found.as_slice() else { panic!("{once:?}") };
    assert_eq!((found.id, found.count), (FindingId::OneTimeSetup, 1));
    let says = "cudaGraphLaunch: a graph was launched for the first time for ";
    assert!(found.evidence[0].text.starts_with(says), "{}", found.evidence[0].text);
    let often = ids(&with(|index| index % 2 == 0));
    assert!(!often.contains(&FindingId::OneTimeSetup), "{often:?}");
}

/// A bubble longer than all others together is no step, and the rest is judged without it.
#[test]
fn one_long_pause_is_no_step() {
    let with = |usual: i64, pauses: &[(u64, i64)]| {
        steps(40, |scene, index, id, at| {
            scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 1_005 * US));
            let pause = pauses.iter().find(|(step, _)| *step == index);
            at + 1_005 * US + pause.map_or(usual, |&(_, long)| long) * US
        })
    };
    let paused = |usual: i64| with(usual, &[(20, 500_000)]);
    assert_eq!(ids(&paused(0)), []);
    assert_eq!(ids(&paused(600)), [FindingId::HostBoundStep]);
    // Wherever pauses lie and however long they are, the steps are worth what they are worth without.
    for pauses in [&[(20, 60_000)][..], &[(2, 400_000)], &[(5, 100_000), (30, 900_000)], &[(1, 2_000), (2, 500_000)]] {
        let findings = findings(&with(600, pauses));
        let [finding] = findings.found.as_slice() else { panic!("{pauses:?}: {findings:?}") };
        let steps = 39 - pauses.iter().filter(|(_, long)| *long > 30_000).count() as i64;
        let own = Ns((steps * 600 + if pauses.len() == 2 && steps == 38 { 1_400 } else { 0 }) * US);
        // A host that is ahead when a pause begins has work enqueued for a part of it: half of the time beside kernels.
        let ahead = Ns(40 * 500 * US);
        assert!(finding.recoverable <= own + ahead, "{pauses:?}: {} of {own}", finding.recoverable);
        assert!(finding.recoverable.0 * 10 >= own.0 * 8, "{pauses:?}: {} of {own}", finding.recoverable);
    }
    let findings = findings(&paused(600));
    let text = &findings.found[0].evidence[0].text;
    assert!(text.contains("in 38 bubbles; for 22.8 ms of it no CUDA call was open"), "{text}");
    assert!(
        findings.found[0].evidence[1].text.ends_with(
            "22.8 ms of it lies in these bubbles, the rest beside the GPU's work, where it holds up later launches too. \
             Left as long as it is: 500 ms of idle time in 1 stretch, longer than any of these bubbles: code that runs once"
        ),
        "{findings:?}"
    );
}

/// A copy drains the device and host code keeps it so: the finding says both.
#[test]
fn a_finding_names_the_root_cause_that_is_not_its_own() {
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 105 * US));
        let op = (7, at + 106 * US, at + 206 * US);
        scene.copies(("cudaMemcpy_v3020", 1 << 20), (Device, Pageable), id + 1, (at + 5 * US, at + 208 * US), op);
        at + 1_000 * US
    });
    let findings = findings(&trace);
    let copies = findings.found.iter().find(|finding| finding.id == FindingId::BlockingCopyInLoop).unwrap();
    let text = &copies.evidence[0].text;
    assert!(text.contains("another root cause, host-bound"), "{text}");
}

#[test]
fn the_legacy_default_stream_serialises() {
    let mut scene = Scene::new();
    scene.stream_kind(7, StreamKind::Null);
    scene.stream_kind(13, StreamKind::Blocking);
    scene.stream_kind(14, StreamKind::Blocking);
    for index in 0..120 {
        let (call, start) = (index * 5 * US, 6 * US + index * 22 * US);
        let stream = [7, 13, 14][index as usize % 3];
        scene.launch(index as u64 + 1, (call, call + 4 * US), stream, (start, start + 20 * US));
    }
    let trace = scene.finish();
    let findings = findings(&trace);
    assert_eq!(findings.found.len(), 1, "{findings:?}");
    assert_eq!(findings.found[0].id, FindingId::DefaultStream);
    assert!(findings.found[0].evidence[0].text.contains("streams 13, 14"), "{findings:?}");
    // 119 gaps of 2 µs, and twice as many streams could work at once.
    let why = "the gain is more than the GPU's idle time of 238 µs, because work of different streams would also run at \
               the same time";
    assert!(findings.found[0].evidence.iter().any(|evidence| evidence.text == why), "{findings:?}");
}

/// 80 steps of a kernel that is waited for, each on the device that `device` tells.
fn on_devices(device: fn(u64) -> u32) -> Trace {
    steps(80, |scene, index, id, at| {
        let device = device(index);
        scene.on_context(1, device, device + 1);
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
        scene.call("cudaDeviceSynchronize_v3020", id + 1, at + 4_200, at + 27 * US);
        at + 28 * US
    })
}

/// A gain is of all devices together, and so is the idle time that it is compared with.
#[test]
fn a_gain_beyond_the_time_in_which_no_device_works_is_explained() {
    let beyond = |trace: &Trace| {
        let full = full(trace, &Options::default());
        let facts = full.replay.as_ref().unwrap();
        assert_eq!(facts.idle, full.analysis.idle_of_all());
        let found = full.findings.found.iter().find(|finding| finding.id == FindingId::SyncAfterLaunch).unwrap();
        let of_one = full.analysis.devices.iter().map(|device| device.idle_ns()).max().unwrap();
        let text = found.evidence.iter().find(|evidence| evidence.text.starts_with("the gain is more than"));
        assert_eq!(text.is_some(), found.recoverable > facts.idle);
        (found.recoverable, facts.idle, of_one, text.map(|evidence| evidence.text.clone()))
    };
    // One after the other: each is idle for 8 µs between its kernels, and nothing overlaps that gains those.
    let (gain, idle, of_one, text) = beyond(&on_devices(|index| u32::from(index >= 40)));
    assert_eq!((idle, of_one), (Ns(79 * 8 * US), Ns(39 * 8 * US)));
    assert!(gain > of_one || text.is_none(), "{gain} of {of_one}: {text:?}");
    // In turns: each is idle while the other works, and without the waits they work at the same time.
    let (gain, idle, of_one, text) = beyond(&on_devices(|index| (index % 2) as u32));
    assert_eq!((idle, of_one), (Ns(79 * 8 * US), Ns(39 * 36 * US)));
    assert!(idle < gain && gain < of_one, "{idle} {gain} {of_one}");
    let why = "the gain is more than the 632 µs in which no GPU worked, because work that now runs one after the other \
               would also run at the same time";
    assert_eq!(text.as_deref(), Some(why));
}

#[test]
fn streams_that_wait_for_each_other_never_overlap() {
    let mut scene = Scene::new();
    let mut at = 0;
    for index in 0..80_u64 {
        let stream = 7 + (index % 2) as u32;
        let start = 10 * US + index as i64 * 23 * US;
        let id = index * 10 + 1;
        if index > 0 {
            scene.wait_event(id, at, stream, 9, Some(index));
            at += 200;
        }
        scene.launch(id + 1, (at, at + 4 * US), stream, (start, start + 20 * US));
        scene.record_event(id + 2, at + 4_100, stream, 9, Some(index + 1));
        at += 4_300;
    }
    assert_eq!(ids(&scene.finish()), [FindingId::NoOverlap]);
}

#[test]
fn host_code_between_steps() {
    let trace = steps(30, |scene, _, id, at| {
        for launch in 0..5 {
            let at = at + launch * 30 * US;
            scene.launch(id + launch as u64, (at, at + 4 * US), 7, (at + 5 * US, at + 34 * US));
        }
        at + 800 * US
    });
    assert_eq!(ids(&trace), [FindingId::HostBoundStep]);
}

#[test]
fn host_code_in_steps_that_are_all_alike() {
    let trace = steps(60, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 30 * US));
        at + 300 * US
    });
    assert_eq!(ids(&trace), [FindingId::HostBoundStep]);
}

#[test]
fn many_launches_of_short_kernels() {
    let trace = steps(400, |scene, _, id, at| {
        scene.launch(id, (at, at + 5 * US), 7, (at + 6 * US, at + 8 * US));
        at + 5_500
    });
    assert_eq!(ids(&trace), [FindingId::TinyLaunches]);
}

/// Long kernels among short ones are neither counted nor called short, and each API is told with its own calls.
#[test]
fn only_launches_of_short_kernels_are_called_so() {
    let trace = steps(400, |scene, index, id, at| {
        let kernel = if index % 4 == 3 { 50 * US } else { 2 * US };
        let api = if index % 3 == 0 { "cuLaunchKernel" } else { "cudaLaunchKernel_v7000" };
        scene.call(api, id, at, at + 5 * US);
        scene.kernel(7, id, at + 6 * US, at + 6 * US + kernel);
        at + 5_500 + if kernel > 2 * US { kernel } else { 0 }
    });
    let findings = findings(&trace);
    let finding = findings.found.iter().find(|finding| finding.id == FindingId::TinyLaunches).unwrap();
    assert_eq!(
        (finding.title.as_str(), finding.count),
        ("300 launches of very short kernels, 2.00 µs each (median)", 300)
    );
    let text = "300 of 400 kernel launches are of kernels of at most 10.0 µs, which take 2.00 µs (median); the other 100 hold \
                89.3 % of the kernels' time, and the gain is that of all in graphs";
    assert_eq!(finding.evidence[0].text, text);
    let per_api: Vec<&str> =
        finding.evidence.iter().filter(|evidence| evidence.api.is_some()).map(|e| e.text.as_str()).collect();
    assert_eq!(per_api, ["cudaLaunchKernel: 200 times", "cuLaunchKernel: 100 times"]);
    // Where most kernels are long, they are no pattern.
    let trace = steps(400, |scene, index, id, at| {
        let kernel = if index % 4 == 3 { 2 * US } else { 20 * US };
        scene.launch(id, (at, at + 5 * US), 7, (at + 6 * US, at + 6 * US + kernel));
        at + 5_500 + kernel
    });
    assert!(!ids(&trace).contains(&FindingId::TinyLaunches));
}

/// Single launches are a pattern also beside graphs that hold more kernels; and none beside more launches of graphs.
#[test]
fn launches_of_short_kernels_beside_graphs() {
    let beside = |per_graph: u64| {
        steps(400, |scene, index, id, at| {
            scene.launch(id, (at, at + 5 * US), 7, (at + 6 * US, at + 8 * US));
            if per_graph == 0 || index % per_graph != 0 {
                return at + 5_500;
            }
            for graph in 0..if per_graph == 1 { 2 } else { 1 } {
                let (id, at) = (id + 1 + graph as u64, at + 6 * US + graph * 20 * US);
                scene.call("cudaGraphLaunch_v10000", id, at, at + 4 * US);
                (0..20)
                    .for_each(|node| scene.node(7, id, 1, (at + 5 * US + node * 700, at + 5 * US + node * 700 + 600)));
            }
            at + if per_graph == 1 { 50 * US } else { 30 * US }
        })
    };
    assert_eq!(ids(&beside(0)), [FindingId::TinyLaunches]);
    assert_eq!(ids(&beside(10)), [FindingId::TinyLaunches]);
    assert!(!ids(&beside(1)).contains(&FindingId::TinyLaunches));
}

#[test]
fn a_graph_built_in_every_step() {
    let trace = steps(30, |scene, _, id, at| {
        scene.call("cudaStreamBeginCapture_v10000", id, at, at + US);
        scene.call("cudaLaunchKernel_v7000", id + 1, at + 2 * US, at + 3 * US);
        scene.call("cudaStreamEndCapture_v10000", id + 2, at + 4 * US, at + 6 * US);
        scene.call("cudaGraphInstantiate_v12000", id + 3, at + 7 * US, at + 60 * US);
        scene.call("cudaGraphLaunch_v10000", id + 4, at + 61 * US, at + 68 * US);
        scene.kernel(7, id + 4, at + 69 * US, at + 89 * US);
        at + 70 * US
    });
    assert_eq!(ids(&trace), [FindingId::GraphReinstantiated]);
}

#[test]
fn waiting_to_read_the_time_between_events() {
    let trace = steps(40, |scene, index, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
        scene.record_event(id + 1, at + 4_100, 7, 9, Some(index + 1));
        scene.call("cudaEventSynchronize_v3020", id + 2, at + 4_300, at + 28 * US);
        let event = Some((9, Some(index + 1)));
        scene.sync_record(SyncKind::Event, id + 2, (at + 4_300, at + 28 * US), None, event);
        scene.call("cudaEventElapsedTime_v3020", id + 3, at + 28_100, at + 29 * US);
        at + 29_200
    });
    assert_eq!(ids(&trace), [FindingId::EventTiming]);
}

/// Events around pairs of kernels, which the host submits long before they run: each costs the GPU 7 µs. `more` is called
/// behind the record of each step's event.
fn timed(reads: bool, mut more: impl FnMut(&mut Scene, u64, u64, i64)) -> Trace {
    let (count, step) = (60, 33 * US);
    let mut scene = Scene::new();
    for index in 0..count {
        let (id, at) = (index * 100 + 1, index as i64 * 10 * US);
        let begin = 50 * US + index as i64 * step;
        scene.launch(id, (at, at + 2 * US), 7, (begin, begin + 12 * US));
        scene.launch(id + 1, (at + 2_500, at + 4_500), 7, (begin + 13 * US, begin + 25 * US));
        scene.record_event(id + 2, at + 5 * US, 7, 9 + index as u32, Some(index + 1));
        more(&mut scene, index, id + 3, at + 6 * US);
    }
    let end = 50 * US + count as i64 * step;
    scene.call("cudaDeviceSynchronize_v3020", 100_000, 1_000 * US, end);
    if reads {
        for index in 0..count {
            let at = end + index as i64 * US;
            scene.call("cudaEventElapsedTime_v3020", 100_001 + index, at, at + 500);
        }
    }
    scene.finish()
}

#[test]
fn events_that_are_only_read_are_found_by_what_they_cost_the_gpu() {
    let findings = findings(&timed(true, |_, _, _, _| {}));
    let [finding] = findings.found.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.id, finding.count), (FindingId::EventTiming, 60));
    assert_eq!(finding.title, "Events are recorded in the loop to read the time between them, 60 times");
    assert_eq!(finding.evidence[0].api.as_deref(), Some("cudaEventRecord"));
    // Between two steps the GPU goes on after 1 µs instead of 8 µs.
    assert_eq!(finding.recoverable, Ns(59 * 7 * US));
}

#[test]
fn events_that_somebody_needs_are_not_to_be_taken_out() {
    let raised = |trace: &Trace| ids(trace).contains(&FindingId::EventTiming);
    assert!(!raised(&timed(false, |_, _, _, _| {})), "nobody reads a time");
    let awaited = timed(true, |scene, index, id, at| {
        scene.wait_event(id, at, 8, 9 + index as u32, Some(index + 1));
    });
    assert!(!raised(&awaited), "another stream waits for them");
    let asked = timed(true, |scene, _, id, at| scene.call("cudaEventQuery_v3020", id, at, at + 500));
    assert!(!raised(&asked), "the host asks for some");
}

/// Copies of several sizes are not said to be of one.
#[test]
fn copies_of_several_sizes_are_told_as_a_range() {
    let trace = steps(40, |scene, index, id, at| {
        let bytes = if index % 8 == 7 { 1 << 20 } else { 256 };
        let (call, op) = ((at, at + 103 * US), (7, at + 102 * US, at + 122 * US));
        scene.copies(("cudaMemcpyAsync_v3020", bytes), (Pageable, Device), id, call, op);
        scene.launch(id + 1, (at + 104 * US, at + 105 * US), 7, (at + 123 * US, at + 153 * US));
        at + 156 * US
    });
    let findings = findings(&trace);
    let text = &findings.found[0].evidence[0].text;
    assert!(text.starts_with("cudaMemcpyAsync of 256 bytes to 1 MiB (median 256 bytes), 40 times"), "{text}");
}

/// A wait behind many launches at the start does not change after how many the others come.
#[test]
fn waits_are_told_by_the_usual_number_of_launches() {
    let title = |first: u64, other: fn(u64) -> u64| {
        let trace = steps(40, |scene, index, id, mut at| {
            let launches = if index == 1 { first } else { other(index) };
            for launch in 0..launches {
                scene.launch(id + launch, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
                at += 25_100;
            }
            scene.stream_sync(id + 99, 7, at - 20 * US, at + 2 * US);
            at + 10 * US
        });
        let findings = findings(&trace);
        let found = findings.found.iter().find(|finding| finding.id == FindingId::SyncAfterLaunch);
        found.unwrap_or_else(|| panic!("{findings:?}")).title.clone()
    };
    let says = |title: String, text: &str| {
        assert!(title.starts_with(&format!("The host waits for the GPU after {text}, ")), "{title}");
    };
    says(title(2, |_| 2), "every 2 launches");
    says(title(90, |_| 2), "every 2 launches");
    says(title(1, |_| 1), "every launch");
    says(title(2, |index| 1 + index % 3), "2 launches (median)");
    for (counts, text) in [
        (&[][..], "every launch"),
        (&[1, 1, 1], "every launch"),
        (&[4, 4, 4, 4], "every 4 launches"),
        (&[4, 0, 4, 0, 4], "every 4 launches or none"),
        (&[1, 0, 1, 0], "every launch or none"),
        (&[41, 41, 10, 10, 10], "10 launches (median)"),
        (&[3, 0, 9, 0, 2, 0], "3 launches (median) or none"),
    ] {
        assert_eq!(after_launches(&mut counts.to_vec()), text);
    }
}

/// 60 quick steps; in every tenth from the thirtieth on, `held` happens inside a launch of 800 µs.
fn held_launches(held: OverheadKind, every: u64) -> Trace {
    steps(60, |scene, index, id, at| {
        let length = if index >= 30 && index % every == 0 { 800 * US } else { 4 * US };
        if length > 4 * US {
            scene.overhead(held, at + US, at + length - US);
        }
        scene.launch(id, (at, at + length), 7, (at + length + US, at + length + 31 * US));
        at + length + 25 * US
    })
}

#[test]
fn code_loaded_in_steady_state() {
    assert_eq!(ids(&held_launches(OverheadKind::LazyLoading, 10)), [FindingId::LazyLoading]);
}

/// 60 steps, each with a kernel's look-up of 30 µs; a module is loaded in those that `loads` tells.
fn looked_up(loads: fn(u64) -> bool) -> Trace {
    steps(60, |scene, index, id, at| {
        let from = if loads(index) { at + 400 * US } else { at };
        if loads(index) {
            scene.call("cuModuleLoadData", id, at, from);
        }
        scene.call("cuModuleGetFunction", id + 1, from, from + 30 * US);
        scene.launch(id + 2, (from + 31 * US, from + 35 * US), 7, (from + 36 * US, from + 56 * US));
        from + 56 * US
    })
}

#[test]
fn looking_kernels_up_is_no_loading() {
    assert_eq!(ids(&looked_up(|_| false)), []);
    let findings = findings(&looked_up(|_| true));
    let found = findings.found.iter().find(|finding| finding.id == FindingId::LazyLoading).unwrap();
    let settled = found.count;
    assert!((55..=60).contains(&settled), "{settled}");
    assert_eq!(found.title, format!("Code is loaded or compiled in the loop, {settled} times"));
    let calls = |name: &str| found.evidence.iter().filter(|evidence| evidence.api.as_deref() == Some(name)).count();
    assert_eq!((calls("cuModuleLoadData"), calls("cuModuleGetFunction")), (1, 1), "the remedy keeps the handles too");
    // Three modules in the whole loop: they are loaded, the look-ups beside them are not.
    let findings = self::findings(&looked_up(|index| [20, 30, 40].contains(&index)));
    let found = findings.found.iter().find(|finding| finding.id == FindingId::LazyLoading).unwrap();
    assert_eq!(found.title, "Code is still being loaded or compiled after the warm-up, 3 times");
    assert_eq!((found.count, found.changes.iter().flat_map(Change::calls).count()), (3, 3));
}

/// Look-ups of every step are no set-up; a module loaded once is, and so is a look-up that took remarkably long.
#[test]
fn look_ups_of_every_step_are_no_set_up() {
    let trace = steps(60, |scene, index, id, at| {
        let long = if index == 3 { 2_000 * US } else { 30 * US };
        scene.call("cuKernelGetFunction", id, at, at + long);
        // No two alike, so that there is no loop to have settled.
        let call = (at + long + US, at + long + 5 * US);
        scene.launch_named(&format!("kernel {index}"), id + 1, call, 7, (call.1 + US, call.1 + 21 * US));
        call.1 + 21 * US
    });
    let findings = findings(&trace);
    let found = findings.found.iter().find(|finding| finding.id == FindingId::OneTimeSetup);
    let found = found.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(found.count, 1, "{:?}", found.title);
    assert!(found.evidence[0].text.starts_with("cuKernelGetFunction: code was loaded"), "{:?}", found.evidence);
}

#[test]
fn a_full_command_buffer() {
    assert_eq!(ids(&held_launches(OverheadKind::CommandBufferFull, 2)), [FindingId::CommandBufferFull]);
    assert_eq!(ids(&held_launches(OverheadKind::CommandBufferFull, 10)), [], "three times is no loop");
}

#[test]
fn queries_in_a_spin() {
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
        for query in 0..10 {
            let from = at + 5 * US + query * 2_200;
            let result = if query < 9 { 600 } else { 0 };
            scene.call_returning("cudaStreamQuery_v3020", id + 1 + query as u64, from, from + 2 * US, result);
        }
        at + 28 * US
    });
    let findings = findings(&trace);
    assert_eq!(findings.found.len(), 1, "{findings:?}");
    assert_eq!((findings.found[0].id, findings.found[0].count), (FindingId::BusyPolling, 39));
    assert!(findings.found[0].title.ends_with("390 queries"), "{}", findings.found[0].title);
}
