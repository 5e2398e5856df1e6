//! Runs made by hand, and what is to be said of them.

use cuzk_gpu_mem::WIPE;

use super::*;
use crate::timeline::{HostSpan, KernelSpan, TransferSpan};

pub(in crate::timeline) fn phase(
    partition: usize,
    phase: Phase,
    begin_ms: f64,
    end_ms: f64,
) -> HostSpan {
    HostSpan {
        device: 0,
        worker: partition % 2,
        job: 1,
        partition,
        attempt: 0,
        label: phase.name().to_owned(),
        phase: Some(phase),
        begin_ms,
        end_ms,
    }
}

pub(in crate::timeline) fn run(host: Vec<HostSpan>) -> Run {
    Run {
        format: Run::FORMAT.to_owned(),
        devices: vec![DeviceFacts {
            number: 0,
            name: "a device".to_owned(),
            is_gpu: true,
            workers: 2,
        }],
        host,
        kernels: Vec::new(),
        transfers: Vec::new(),
        notes: Vec::new(),
    }
}

pub(in crate::timeline) fn kernel(begin_ms: f64, end_ms: f64) -> KernelSpan {
    KernelSpan {
        device: 0,
        worker: 0,
        stream: "compute".to_owned(),
        label: "msm".to_owned(),
        begin_ms,
        end_ms,
    }
}

/// stage 0-10 (upload 4-10), compute 10-30 (kernels 12-20, 18-28; copy 28-30), then the other:
/// stage 35-40, wait 40-41, compute 41-50 (kernel 41-50), finish 50-60.
#[test]
fn every_gap_has_its_cause() {
    let mut run = run(vec![
        phase(0, Phase::Stage, 0.0, 10.0),
        phase(0, Phase::Compute, 10.0, 30.0),
        phase(1, Phase::Stage, 35.0, 40.0),
        phase(1, Phase::Wait, 40.0, 41.0),
        phase(1, Phase::Compute, 41.0, 50.0),
        phase(1, Phase::Finish, 50.0, 60.0),
    ]);
    run.kernels = vec![kernel(12.0, 20.0), kernel(18.0, 28.0), kernel(41.0, 50.0)];
    // Behind kernels; beside those of another stream, which is no waiting; and among those of its own.
    for (stream, begin_ms, end_ms) in [
        ("compute", 28.0, 28.5),
        ("upload 0", 45.0, 46.0),
        ("compute", 43.0, 43.25),
    ] {
        run.kernels.push(KernelSpan {
            label: WIPE.to_owned(),
            stream: stream.to_owned(),
            ..kernel(begin_ms, end_ms)
        });
    }
    let copy = |is_upload, begin_ms, end_ms| TransferSpan {
        device: 0,
        stream: "upload 0".to_owned(),
        label: "witness".to_owned(),
        is_upload,
        bytes: 1 << 20,
        pinned: true,
        begin_ms,
        end_ms,
    };
    run.transfers = vec![copy(true, 4.0, 14.0), copy(false, 28.0, 30.0)];
    let report = Report::of(&run);
    let device = &report.devices[0];
    assert_eq!(device.busy_ms, 16.0 + 8.75);
    assert_eq!(device.kernel_sum_ms, 26.75);
    assert_eq!((device.total_ms, device.steady_ms), (60.0, 38.0));
    assert_eq!(device.hidden_upload_share, Some(0.2));
    let mut stalls: Vec<_> = device
        .stalls
        .iter()
        .map(|s| (s.cause, s.ms, s.count))
        .collect();
    stalls.sort_by_key(|(cause, ..)| *cause);
    assert_eq!(
        stalls,
        [
            (Cause::Wipe, 0.75, 2),
            (Cause::CopyInSection, 3.5, 2),
            (Cause::Handover, 1.0, 1),
            (Cause::Upload, 6.0, 1),
            (Cause::Staging, 9.0, 2),
            (Cause::Finishing, 10.0, 1),
            (Cause::NoWork, 5.0, 1),
        ]
    );
    let gaps: f64 = device.stalls.iter().map(|stall| stall.ms).sum();
    assert_eq!(gaps + device.busy_ms, device.total_ms);
    assert!(
        report
            .to_string()
            .contains("kernels ran 24.8 of 38.0 ms, 65.1 %")
    );
}

#[test]
fn without_kernels_the_computing_phases_count() {
    let run = run(vec![
        phase(0, Phase::Compute, 0.0, 6.0),
        phase(1, Phase::Compute, 4.0, 10.0),
    ]);
    let report = Report::of(&run);
    assert_eq!(report.devices[0].busy_ms, 10.0);
    assert_eq!(report.devices[0].share(), 1.0);
    assert!(!report.devices[0].has_kernels);
}

#[test]
fn a_partition_that_waits_for_memory_is_seen_waiting() {
    let mut refused = phase(1, Phase::Stage, 5.0, 5.5);
    refused.label = NOT_ADMITTED.to_owned();
    let run = run(vec![
        phase(0, Phase::Compute, 0.0, 8.0),
        refused,
        phase(1, Phase::Stage, 12.0, 13.0),
        phase(1, Phase::Compute, 13.0, 20.0),
    ]);
    let stalls = &Report::of(&run).devices[0].stalls;
    assert_eq!((stalls[0].cause, stalls[0].ms), (Cause::Memory, 4.0));
}

#[test]
fn an_empty_run_has_nothing_to_report() {
    assert_eq!(Report::of(&run(vec![])).devices, []);
}
