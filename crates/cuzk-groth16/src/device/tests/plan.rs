//! Plans for keys, on paper.

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceInfo, GIB, Settings};
use cuzk_msm::device::Streams;
use cuzk_ntt::device::QuotientForm;

use crate::device::sums::{Beside, Known, SumsPlan, Turn};
use crate::device::witness_sums::WitnessTerms;
use crate::device::{Error, KeyPlan, KeySizes, Part, Placement, Residency};

/// A PoRep partition's, as `docs/proving.md` has them.
pub(super) fn porep(log_n: u32) -> KeySizes {
    let n = 1_usize << log_n;
    KeySizes {
        domain_size: n,
        num_variables: n - n / 32,
        points: [n - 1, n - n / 32, n - n / 30, n / 4],
        fixed_bytes: 22 * n as u64 + (18 << 20),
        rows_scratch_bytes: n as u64 / 8,
        form: QuotientForm::Coefficients,
    }
}

fn card() -> DeviceInfo {
    DeviceInfo::simulated(140 * GIB)
}

fn choose(sizes: &KeySizes, room: u64) -> Result<KeyPlan, Error> {
    KeyPlan::choose(&card(), sizes, room, 0)
}

#[test]
fn a_large_card_has_the_whole_key() {
    for gib in [139, 80] {
        let plan = choose(&porep(27), gib * GIB).unwrap();
        assert_eq!(plan.residency(), Residency::Whole);
        assert!(plan.device_bytes() + plan.section_bytes() + plan.spare_bytes() == gib * GIB);
    }
}

#[test]
fn a_partition_fits_where_nothing_of_its_key_does() {
    let plan = choose(&porep(27), 15 * GIB + GIB / 2).unwrap();
    assert_eq!(plan.residency(), Residency::Streamed);
    assert!(
        Part::ALL
            .iter()
            .all(|part| plan.placement(*part) == Placement::Host)
    );
    assert!(plan.device_bytes() + plan.section_bytes() <= 15 * GIB + GIB / 2);
}

/// More room never leaves less of the key on the device, and no plan exceeds it.
#[test]
fn plans_are_monotone_and_within_their_room() {
    for log_n in [1, 6, 12, 20, 24] {
        let sizes = porep(log_n);
        let whole = choose(&sizes, u64::MAX).unwrap();
        let all = whole.device_bytes() + whole.section_bytes();
        let (mut before, mut refused) = (0, 0);
        for step in 0..=40 {
            let room = all / 40 * step + 1;
            match choose(&sizes, room) {
                Ok(plan) => {
                    assert!(plan.device_bytes() + plan.section_bytes() <= room);
                    assert!(plan.key_bytes() >= before, "2^{log_n}, {room}");
                    before = plan.key_bytes();
                }
                Err(Error::TooSmall { needed, free }) => {
                    assert_eq!(before, 0, "refused with more room");
                    assert_eq!(free, room);
                    assert!(needed > room);
                    refused = needed;
                }
                Err(error) => panic!("{error}"),
            }
        }
        // What is said to be needed is enough.
        assert!(choose(&sizes, refused).is_ok());
        assert_eq!(
            choose(&sizes, all + 1).unwrap().residency(),
            Residency::Whole
        );
    }
}

#[test]
fn multiples_take_idle_memory_alone() {
    for (log_n, most) in [(20, 3), (24, 3), (27, 1)] {
        let sizes = porep(log_n);
        for gib in [1, 16, 139] {
            let Ok(mut plan) = choose(&sizes, gib * GIB) else {
                continue;
            };
            let without = plan.clone();
            plan.add_multiples(&card(), &sizes);
            let kept = plan.h_multiples().map_or(1, |kept| u64::from(kept.count()));
            let more = (kept - 1) * 96 * sizes.points[0] as u64;
            assert!(kept <= most && more <= without.spare_bytes() / 4);
            assert_eq!(plan.key_bytes(), without.key_bytes() + more);
            assert_eq!(plan.spare_bytes() + more, without.spare_bytes());
            if gib == 139 {
                assert_eq!(kept, most, "2^{log_n}");
            }
        }
        // What comes over the bus has none.
        let mut streamed = KeyPlan::of_parts(&card(), &sizes, &[]).unwrap();
        streamed.add_multiples(&card(), &sizes);
        assert!(streamed.h_multiples().is_none());
    }
}

#[test]
fn room_for_other_keys_is_left_alone() {
    let sizes = porep(20);
    let whole = choose(&sizes, u64::MAX).unwrap();
    let all = whole.device_bytes() + whole.section_bytes();
    let other = 2 * whole.section_bytes();
    let plan = KeyPlan::choose(&card(), &sizes, all, other).unwrap();
    assert!(plan.device_bytes() + other <= all);
    assert!(matches!(plan.residency(), Residency::Hot(_)));
    assert!(plan.residency().to_string().starts_with("hot B2+"));
}

/// The bus is what a streamed key waits for, so its sums begin before the quotient where that leaves them room for large
/// batches, else beside the H sum.
#[test]
fn streamed_sums_have_a_turn_beside_all_else() {
    let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), Settings::default()).unwrap();
    let streams = Arc::new(Streams::new(&device).unwrap());
    let sizes = porep(27);
    let key = KeyPlan::of_parts(&card(), &sizes, &[]).unwrap();
    let array = 32_u64 << 27;
    for (arrays, room, turn) in [
        (3, 40_000, Turn::BesideAll),
        (3, 13_200, Turn::BesideH),
        (3, 12_400, Turn::BesideH),
        (2, 13_200, Turn::BesideAll),
    ] {
        let (variables, room) = (sizes.num_variables, room << 20);
        let terms = WitnessTerms {
            variables,
            ones: variables / 2,
            full: variables / 100,
        };
        let known = Known {
            info: &card(),
            streams: &streams,
            sizes: &sizes,
            key: &key,
            terms,
            least_wipe_bytes: None,
        };
        let quotient = arrays * array;
        let beside = Beside { array, quotient };
        let plan = SumsPlan::new(known, beside, room).unwrap();
        assert_eq!(plan.turn, turn, "{arrays} arrays in {room}");
        assert!(plan.section_bytes(beside) <= room);
    }
}
