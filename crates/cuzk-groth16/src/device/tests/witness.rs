//! Witnesses packed, and unpacked again.

use cuzk_field::Scalar;
use cuzk_kernels::witness;
use cuzk_testkit::Words;

use super::Rig;
use crate::device::PinnedWitness;

cuzk_testkit::on_both!(packed_witnesses_come_out_as_they_went_in);

/// What a value of a witness is like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Zeros,
    Ones,
    Full,
    Mixed,
    /// Full-size values at both ends of each word, bits between.
    Borders,
}

const KINDS: [Kind; 5] = [
    Kind::Zeros,
    Kind::Ones,
    Kind::Full,
    Kind::Mixed,
    Kind::Borders,
];

/// Values that are not bits, the hostile ones first.
pub(super) fn full_value(words: &mut Words, i: usize) -> Scalar {
    let hostile = [
        Scalar::from(2),
        Scalar::from(1 << 32),
        Scalar::from(u64::MAX),
        Scalar::MINUS_ONE,
        Scalar::from_limbs([0, 1, 0, 0]).unwrap(),
        Scalar::from_limbs([1, 0, 0, 1 << 60]).unwrap(),
        Scalar::from_limbs([0, 0, 1, 0]).unwrap(),
    ];
    hostile.get(i % 11).copied().unwrap_or_else(|| {
        Scalar::from_limbs([
            words.next_word(),
            words.next_word(),
            words.next_word(),
            words.next_word() >> 2,
        ])
        .unwrap()
    })
}

pub(super) fn witness(kind: Kind, len: usize, seed: u64) -> Vec<Scalar> {
    let mut words = Words::new(seed);
    let mut values: Vec<Scalar> = (0..len)
        .map(|i| {
            let class = match kind {
                Kind::Zeros => 0,
                Kind::Ones => 1,
                Kind::Full => 2,
                Kind::Mixed => words.next_word() % 3,
                Kind::Borders if i % 32 == 0 || i % 32 == 31 => 2,
                Kind::Borders => words.next_word() % 2,
            };
            match class {
                0 => Scalar::ZERO,
                1 => Scalar::ONE,
                _ => full_value(&mut words, i),
            }
        })
        .collect();
    values[0] = Scalar::ONE;
    values
}

fn packed_witnesses_come_out_as_they_went_in(rig: &Rig) {
    for kind in KINDS {
        for len in [1, 2, 31, 32, 33, 64, 1000, 16_383, 16_385, 33_000] {
            if len > 1000 && !matches!(kind, Kind::Mixed | Kind::Full) {
                continue;
            }
            let values = witness(kind, len, len as u64);
            let packed = PinnedWitness::pack(rig.device().host(), &values).unwrap();
            let full: Vec<Scalar> = values
                .iter()
                .filter(|v| !v.is_zero() && !v.is_one())
                .copied()
                .collect();
            assert!(*packed.full == full[..], "{kind:?} {len}");
            assert_eq!(packed.len(), len);
            assert_eq!(packed.num_full(), full.len());
            let words = len.div_ceil(32);
            assert_eq!(packed.bytes() as usize, 12 * words + 32 * full.len());

            let buffers = packed.upload(&rig.stream).unwrap();
            for first in [0, 1, 31, 32, 33] {
                let Some(count) = len.checked_sub(first) else {
                    continue;
                };
                let mut out = rig.room(count);
                let view = buffers.view();
                witness::unpack(&*rig.launcher, &rig.stream, view, first, out.view_mut()).unwrap();
                assert!(
                    rig.download(&out) == values[first..],
                    "{kind:?} {len} {first}"
                );
                if len > 1000 {
                    break;
                }
            }
            let mut variables = rig.room::<u32>(full.len());
            let view = buffers.view();
            witness::full_variables(&*rig.launcher, &rig.stream, view, variables.view_mut())
                .unwrap();
            let expected: Vec<u32> = (0..)
                .zip(&values)
                .filter(|(_, v)| !v.is_zero() && !v.is_one())
                .map(|(i, _)| i)
                .collect();
            assert_eq!(rig.download(&variables), expected, "{kind:?} {len}");
        }
    }
}
