//! Properties: the ledger under random histories, and the staging plan.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{assert_empty, open_with};
use cuzk_gpu_mem::driver::sim::Completion;
use cuzk_gpu_mem::driver::{Code, Driver, SimDriver};
use cuzk_gpu_mem::{
    AllocKind, Device, DeviceBuf, Error, Footprint, MIB, StagingPlan, StagingRequest, Stream, Tier,
    TrimPolicy,
};
use proptest::prelude::*;

const CARD: u64 = 64 * MIB;
const RESERVE: u64 = 4 * MIB;

/// One step of a random history. Sizes are in bytes, `which` picks a live buffer or a stream.
#[derive(Clone, Debug)]
enum Step {
    Alloc {
        kind: AllocKind,
        bytes: usize,
        stream: usize,
    },
    Free {
        which: usize,
    },
    Move {
        which: usize,
        stream: usize,
    },
    Upload {
        which: usize,
    },
    Trim {
        policy: TrimPolicy,
    },
    Sync {
        stream: usize,
    },
    Run {
        stream: usize,
    },
    Admit {
        bytes: u64,
        compute: u64,
    },
    Compute {
        bytes: usize,
    },
    Tenants {
        bytes: u64,
    },
    Threshold {
        bytes: u64,
    },
    Fail {
        nth: u64,
        code: Code,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(AllocKind::StreamOrdered), Just(AllocKind::Synchronous)];
    // Mostly megabytes, sometimes nothing, a byte, or more than the card.
    let bytes = prop_oneof![
        6 => (1_usize..24).prop_map(|mib| mib << 20),
        1 => Just(0_usize),
        1 => 1_usize..5000,
        1 => Just(65 << 20),
    ];
    let policy = prop_oneof![
        Just(TrimPolicy::Never),
        Just(TrimPolicy::Completed),
        Just(TrimPolicy::Streams),
        Just(TrimPolicy::Device),
    ];
    let code = prop_oneof![Just(Code::OUT_OF_MEMORY), Just(Code::OPERATING_SYSTEM)];
    prop_oneof![
        6 => (kind, bytes.clone(), 0..3_usize)
            .prop_map(|(kind, bytes, stream)| Step::Alloc { kind, bytes, stream }),
        6 => any::<usize>().prop_map(|which| Step::Free { which }),
        1 => (any::<usize>(), 0..3_usize).prop_map(|(which, stream)| Step::Move { which, stream }),
        1 => any::<usize>().prop_map(|which| Step::Upload { which }),
        2 => policy.prop_map(|policy| Step::Trim { policy }),
        1 => (0..3_usize).prop_map(|stream| Step::Sync { stream }),
        3 => (0..3_usize).prop_map(|stream| Step::Run { stream }),
        1 => (0..20 * MIB, 0..40 * MIB).prop_map(|(bytes, compute)| Step::Admit { bytes, compute }),
        1 => bytes.prop_map(|bytes| Step::Compute { bytes }),
        1 => (0..32 * MIB).prop_map(|bytes| Step::Tenants { bytes }),
        1 => prop_oneof![Just(0), Just(u64::MAX), 0..CARD].prop_map(|bytes| Step::Threshold { bytes }),
        1 => (1..8_u64, code).prop_map(|(nth, code)| Step::Fail { nth, code }),
    ]
}

struct World {
    driver: Arc<SimDriver>,
    device: Device,
    streams: Vec<Stream>,
    live: Vec<DeviceBuf<u8>>,
}

impl World {
    fn new(gives_back: bool) -> Self {
        let driver = Arc::new(if gives_back {
            SimDriver::new(CARD)
        } else {
            SimDriver::hoarding(CARD)
        });
        let device = open_with(&driver, |settings| settings.reserve = RESERVE);
        let streams = ["s0", "s1", "s2"]
            .map(|label| device.stream(label).unwrap())
            .into();
        driver.set_completion(Completion::Lazy);
        Self {
            driver,
            device,
            streams,
            live: Vec::new(),
        }
    }

    fn apply(&mut self, step: &Step) -> Result<(), Error> {
        match *step {
            Step::Alloc {
                kind,
                bytes,
                stream,
            } => {
                let stream = &self.streams[stream];
                self.live
                    .push(self.device.alloc_with("live", bytes, kind, stream)?);
            }
            Step::Free { which } => {
                if !self.live.is_empty() {
                    let mut buffer = self.live.swap_remove(which % self.live.len());
                    if which % 3 == 0 {
                        buffer.mark_secret();
                    }
                }
            }
            Step::Move { which, stream } => {
                let count = self.live.len().max(1);
                if let Some(buffer) = self.live.get_mut(which % count) {
                    buffer.move_to(&self.streams[stream])?;
                }
            }
            Step::Upload { which } => {
                let count = self.live.len().max(1);
                if let Some(buffer) = self.live.get_mut(which % count) {
                    let source = self
                        .device
                        .host()
                        .pinned("source", 1000.min(buffer.len()))?;
                    let target = buffer.view_mut().slice(..source.len());
                    drop(self.streams[which % 3].upload(source, target)?);
                }
            }
            Step::Trim { policy } => drop(self.device.trim(policy)?),
            Step::Sync { stream } => self.streams[stream].synchronize()?,
            Step::Run { stream } => drop(self.driver.step(self.streams[stream].id())),
            Step::Admit { bytes, compute } => {
                let request = [StagingRequest {
                    label: "staged",
                    bytes,
                }];
                let mut admission = self
                    .device
                    .admit("job", &request, compute, Duration::ZERO)?;
                let staged = admission.stage::<u8>("staged", bytes as usize, &self.streams[0])?;
                assert_eq!(staged.is_some(), admission.plan().tier() == Tier::All);
                self.device
                    .compute_admitted(admission, None, |cx| -> Result<(), Error> {
                        let _entered = staged.map(|staged| cx.enter(staged)).transpose()?;
                        // What was claimed is there, unless others took it or a failure is due.
                        cx.alloc::<u8>("scratch", compute as usize).map(drop)
                    })??;
            }
            Step::Compute { bytes } => {
                self.device
                    .compute(|cx| cx.alloc::<u8>("scratch", bytes).map(drop))??;
            }
            Step::Tenants { bytes } => self.driver.set_tenants(bytes),
            Step::Threshold { bytes } => {
                let _ = self.driver.set_release_threshold(bytes);
            }
            Step::Fail { nth, code } => self.driver.fail_nth(nth, code),
        }
        Ok(())
    }

    /// What holds after every step, whatever happened.
    fn check(&self) -> Result<(), TestCaseError> {
        let state = self.device.budget().state();
        let live: u64 = self.live.iter().map(DeviceBuf::bytes).sum();
        prop_assert!(state.committed() <= state.limit, "{state:?}");
        prop_assert!(state.pending <= state.held(), "{state:?}");
        prop_assert_eq!(state.held(), live + state.pending, "{:?}", state);
        prop_assert_eq!(
            (state.promised, state.drawn, state.largest_claim),
            (0, 0, 0)
        );
        let holders: u64 = self
            .device
            .budget()
            .holders()
            .iter()
            .map(|(_, bytes)| bytes)
            .sum();
        prop_assert_eq!(holders, state.held());
        Ok(())
    }

    fn finish(mut self) -> Result<(), TestCaseError> {
        self.driver.heal();
        self.live.clear();
        let _ = self.device.check();
        self.device.trim(TrimPolicy::Device).unwrap();
        prop_assert_eq!(self.device.budget().state().held(), 0);
        self.driver.set_tenants(0);
        prop_assert_eq!(self.driver.mem_info().unwrap().free, CARD);
        prop_assert_eq!(self.driver.counts().blocks, 0);
        let driver = Arc::clone(&self.driver);
        drop(self);
        assert_empty(&driver);
        Ok(())
    }
}

fn run(gives_back: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut world = World::new(gives_back);
    for step in steps {
        match world.apply(step) {
            Ok(())
            | Err(Error::OutOfMemory(_) | Error::Driver { .. } | Error::Deferred { .. })
            | Err(Error::Length { .. }) => {}
            Err(other) => return Err(TestCaseError::fail(format!("{step:?}: {other}"))),
        }
        world.check()?;
    }
    world.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// (f) 10,000 random histories keep the invariants, and end with nothing left.
    #[test]
    fn random_histories_keep_the_ledger_exact(
        gives_back in any::<bool>(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(gives_back, &steps)?;
    }
}

fn requests() -> impl Strategy<Value = Vec<StagingRequest>> {
    let bytes = prop_oneof![0..100_u64, Just(0), Just(u64::MAX), Just(u64::MAX / 2)];
    prop::collection::vec(
        bytes.prop_map(|bytes| StagingRequest { label: "r", bytes }),
        0..6,
    )
}

proptest! {
    /// Never more than usable; the longest prefix that fits; monotone in usable.
    #[test]
    fn the_plan_is_the_longest_prefix_that_fits(
        requests in requests(),
        usable in prop_oneof![0..400_u64, Just(u64::MAX)],
        more in 0..400_u64,
    ) {
        let plan = StagingPlan::choose(&requests, usable);
        prop_assert!(plan.staged_bytes() <= usable);
        prop_assert_eq!([plan.staged(), plan.unstaged()].concat(), requests.clone());
        let next = plan.unstaged().first().map(|r| plan.staged_bytes().checked_add(r.bytes));
        if let Some(Some(with_next)) = next {
            prop_assert!(with_next > usable);
        }
        let richer = StagingPlan::choose(&requests, usable.saturating_add(more));
        prop_assert!(richer.staged().len() >= plan.staged().len());
        prop_assert_eq!(plan.tier(), match plan.staged().len() {
            count if count == requests.len() => Tier::All,
            0 => Tier::None,
            count => Tier::Prefix(count),
        });
    }
}

#[test]
fn footprints_add_side_by_side_and_peak_one_after_the_other() {
    let a = Footprint {
        device: 4,
        pinned: 1,
        host: 0,
    };
    let b = Footprint {
        device: 3,
        pinned: 2,
        host: 5,
    };
    assert_eq!(
        a.plus(b),
        Footprint {
            device: 7,
            pinned: 3,
            host: 5
        }
    );
    assert_eq!(
        a.then(b),
        Footprint {
            device: 4,
            pinned: 2,
            host: 5
        }
    );
    assert!(a.fits(a.then(b)) && !b.fits(a));
    let all = Footprint {
        device: u64::MAX,
        ..a
    };
    assert_eq!(all.plus(b).device, u64::MAX);
}

/// A free that failed once is issued again behind a fence already recorded on its stream: its bytes
/// must not be counted as returned by that fence. Found by the histories above.
#[test]
fn a_late_free_gets_a_fence_of_its_own() {
    use Step::{Alloc, Fail, Free};
    let one = |stream| Alloc {
        kind: AllocKind::StreamOrdered,
        bytes: 1 << 20,
        stream,
    };
    let steps = [
        Fail {
            nth: 6,
            code: Code::OUT_OF_MEMORY,
        },
        one(1),
        Free { which: 1 },
        one(1),
        one(0),
        Free { which: 3 * 2 },
    ];
    run(false, &steps).unwrap();
}
