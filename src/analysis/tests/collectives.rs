//! Collectives: when nothing else runs beside them, and who comes last.

use super::super::scene::Scene;
use super::super::{Options, PeerWaits, analyze};
use super::analysis;
use crate::trace::{Detail, Interval, Ns, OpKind};

/// A collective's kernel on a device's stream.
fn collective(scene: &mut Scene, device: u32, name: &str, stream: u32, (start, end): (i64, i64)) {
    scene.on_context(device + 1, device, device + 1);
    scene.op_named((OpKind::Kernel, 0, name), Detail::None, stream, 0, start, end);
}

#[test]
fn collectives_under_no_other_kernel_are_exposed() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 4_000));
    collective(&mut scene, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, (3_000, 10_000));
    let found = analysis(&scene.finish());
    assert_eq!(found.devices[0].exposed_comm_ns, Ns(6_000));
    assert_eq!(found.devices[0].idle_ns(), Ns(0));
}

#[test]
fn a_rank_waits_for_the_one_that_comes_last_to_a_collective() {
    const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    let mut scene = Scene::new();
    // The first one of device 1 has no partner: device 0 was not recorded yet.
    collective(&mut scene, 1, REDUCE, 7, (100, 200));
    for (early, late, end) in [(1_000, 5_000, 6_000), (7_000, 9_500, 10_000)] {
        collective(&mut scene, 0, REDUCE, 7, (early, end));
        collective(&mut scene, 1, REDUCE, 7, (late, end));
    }
    // Another collective, to which device 0 comes last, on another stream at the same time.
    collective(&mut scene, 1, "ncclDevKernel_Broadcast_RING_LL", 8, (4_000, 6_000));
    collective(&mut scene, 0, "ncclDevKernel_Broadcast_RING_LL", 8, (4_500, 6_000));
    let trace = scene.finish();
    let found = analysis(&trace);
    let waits = |device: usize| {
        let waits = &found.devices[device].peer_waits;
        let by_peer: Vec<_> = waits.by_peer.iter().map(|(peer, wait)| (peer.0, wait.collectives, wait.wait)).collect();
        (by_peer, waits.total)
    };
    assert_eq!(waits(0), (vec![(1, 2, Ns(4_000 + 2_500))], Ns(6_500)));
    assert_eq!(waits(1), (vec![(0, 1, Ns(500))], Ns(500)));
    // A window counts what lies in it.
    let window = Some(Interval::new(Ns(2_000), Ns(8_000)));
    let found = analyze(&trace, &Options { window, ..Options::default() });
    assert_eq!(found.devices[0].peer_waits.total, Ns(3_000 + 1_000));
}

#[test]
fn one_device_waits_for_nobody() {
    let mut scene = Scene::new();
    collective(&mut scene, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7, (100, 200));
    collective(&mut scene, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, (150, 250));
    assert_eq!(analysis(&scene.finish()).devices[0].peer_waits, PeerWaits::default());
}
