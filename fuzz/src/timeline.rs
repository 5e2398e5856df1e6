//! Recorded runs: read, summed up and drawn.

use cuzk_sched::Phase;
use cuzk_sched::timeline::{
    DeviceFacts, HostSpan, KernelSpan, Report, Run, TransferSpan, chrome, svg,
};

use crate::mutate::{Kind, Seed};
use crate::targets::Target;

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "timeline",
    kind: Kind::Text,
    seeds,
    run,
}];

/// A run as it comes, and one of numbers that lie at the ends.
fn seeds() -> Vec<Seed> {
    [(2, 1, 1.5), (usize::MAX, u64::MAX, 5e-324)]
        .into_iter()
        .map(|(number, large, ms)| {
            let host = |worker: usize, phase, label: &str| HostSpan {
                device: number,
                worker,
                job: large,
                partition: number,
                attempt: u32::try_from(large).unwrap_or(u32::MAX),
                label: label.to_owned(),
                phase,
                begin_ms: 0.0,
                end_ms: ms,
            };
            let kernel = |label: &str, begin_ms| KernelSpan {
                device: number,
                worker: number,
                stream: "compute".to_owned(),
                label: label.to_owned(),
                begin_ms,
                end_ms: begin_ms + ms,
            };
            let copy = |is_upload| TransferSpan {
                device: number,
                stream: "upload".to_owned(),
                label: "witness".to_owned(),
                is_upload,
                bytes: large,
                pinned: is_upload,
                begin_ms: -ms,
                end_ms: ms,
            };
            let run = Run {
                format: Run::FORMAT.to_owned(),
                devices: vec![DeviceFacts {
                    number,
                    name: "a device".to_owned(),
                    is_gpu: true,
                    workers: number,
                }],
                host: vec![
                    host(0, Some(Phase::Stage), "stage"),
                    host(number, Some(Phase::Compute), "compute"),
                    host(number, None, "load witness"),
                ],
                kernels: vec![kernel("msm", 0.0), kernel("wipe", 0.5), kernel("ntt", 0.25)],
                transfers: vec![copy(true), copy(false), copy(true)],
                notes: vec!["a note".to_owned()],
            };
            Seed {
                bytes: serde_json::to_vec(&run).expect("a run is JSON"),
                marks: Vec::new(),
            }
        })
        .collect()
}

fn run(bytes: &[u8]) -> bool {
    let Ok(run) = Run::from_json(bytes) else {
        return false;
    };
    let mut trace = Vec::new();
    chrome::write(&run, &mut trace).expect("memory takes any trace");
    serde_json::from_slice::<serde_json::Value>(&trace).expect("a trace is JSON");
    let texts = [Report::of(&run).to_string(), svg::waterfall(&run)];
    let is_plain = |text: &String| text.chars().all(|c| c == '\n' || !c.is_control());
    assert!(texts.iter().all(is_plain), "control characters");
    true
}
