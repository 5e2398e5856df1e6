//! Packed witnesses and the terms of base sets, against the host: once on the emulator, and on the card
//! where there is one (`CUZK_REQUIRE_GPU=1` makes a missing one a failure).

use std::ops::Range;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::DeviceBuf;
use cuzk_kernels::bucket_sort::Scalars;
use cuzk_kernels::sparse_terms::{
    ALL_BASES, BaseSet, ListTarget, Members, PackTarget, TILE, bitmap, count, count_batches, list,
    ones_offsets, pack, tiles,
};
use cuzk_kernels::witness::PackedWitness;
use cuzk_testkit::device::Rig;

cuzk_testkit::on_both!(packed, listed, short_targets);

struct Witness {
    bits: DeviceBuf<u64>,
    ranks: DeviceBuf<u32>,
    full: DeviceBuf<Scalar>,
    full_count: u32,
}

impl Witness {
    fn pack(rig: &Rig, scalars: Scalars<'_>, capacity: usize) -> Self {
        let words = scalars.len().div_ceil(32);
        let mut bits = rig.room(words);
        let mut ranks = rig.room(words);
        let mut full = rig.room(capacity);
        let mut full_count = rig.room(1);
        let mut scratch = rig.room(tiles(scalars.len()));
        let target = PackTarget {
            bits: bits.view_mut(),
            ranks: ranks.view_mut(),
            full: full.view_mut(),
            full_count: full_count.view_mut(),
        };
        pack(
            &*rig.launcher,
            &rig.stream,
            scalars,
            target,
            scratch.view_mut(),
        )
        .unwrap();
        let full_count = rig.download(&full_count)[0];
        Self {
            bits,
            ranks,
            full,
            full_count,
        }
    }

    fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

/// Of 100 values, one is of full size, 48 are one and the others zero; or every value is of full size.
fn values(n: usize, dense: bool) -> Vec<Scalar> {
    let mut state = 88_172_645_463_325_252_u64;
    (0..n)
        .map(|i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match state % 100 {
                0 => Scalar::from(Fr::from(state) * Fr::from(state + 5)),
                _ if dense => Scalar::from(state | 2),
                1 if i % 3 == 0 => Scalar::MINUS_ONE,
                2 => Scalar::from(2),
                3..=50 => Scalar::ONE,
                _ => Scalar::ZERO,
            }
        })
        .collect()
}

fn is_full(value: &Scalar) -> bool {
    !value.is_zero() && !value.is_one()
}

fn limbs(values: &[Scalar]) -> Vec<[u64; 4]> {
    values.iter().map(|value| *value.limbs()).collect()
}

fn packed(rig: &Rig) {
    for n in [0, 1, 31, 32, 33, 700, TILE - 1, TILE, TILE + 1] {
        let values = values(n, false);
        let full: Vec<Scalar> = values.iter().copied().filter(is_full).collect();
        let elements: Vec<Fr> = values.iter().map(|value| Fr::from(*value)).collect();
        let (canonical, montgomery) = (rig.upload(&values), rig.upload(&elements));
        for scalars in [
            Scalars::Canonical(canonical.view()),
            Scalars::Montgomery(montgomery.view()),
        ] {
            let witness = Witness::pack(rig, scalars, full.len());
            assert_eq!(witness.full_count as usize, full.len());
            assert_eq!(limbs(&rig.download(&witness.full)), limbs(&full));
            let (bits, ranks) = (rig.download(&witness.bits), rig.download(&witness.ranks));
            let mut rank = 0;
            for (i, value) in values.iter().enumerate() {
                if i % 32 == 0 {
                    assert_eq!(ranks[i / 32], rank);
                }
                rank += u32::from(is_full(value));
                assert_eq!(
                    bits[i / 32] >> (i % 32) & 1 == 1,
                    value.is_one(),
                    "{i} of {n}"
                );
                assert_eq!(
                    bits[i / 32] >> (32 + i % 32) & 1 == 1,
                    is_full(value),
                    "{i} of {n}"
                );
            }
        }
    }
}

/// The terms of a set whose bases lie in a range; their numbers.
fn check_list(
    rig: &Rig,
    witness: &Witness,
    set: &BaseSet<'_>,
    with_base: &[(u32, Scalar)],
    range: Range<u32>,
    name: &str,
) -> Vec<u32> {
    let inside = with_base.iter().filter(|(base, _)| range.contains(base));
    let inside: Vec<(u32, Scalar)> = inside.map(|(base, v)| (base - range.start, *v)).collect();
    let ones = inside.iter().filter(|(_, value)| value.is_one());
    let ones: Vec<u32> = ones.map(|(base, _)| *base).collect();
    let (bases, rest): (Vec<u32>, Vec<Scalar>) =
        inside.iter().copied().filter(|(_, v)| is_full(v)).unzip();
    let mut starts = rig.room(2 * tiles(witness.bits.len() * 32));
    let mut totals = rig.room(2);
    count(
        &*rig.launcher,
        &rig.stream,
        witness.view(),
        set,
        &range,
        starts.view_mut(),
        totals.view_mut(),
    )
    .unwrap();
    let found = rig.download(&totals);
    let what = format!("{name}, {range:?}");
    // The same by batches, this one in the middle.
    let end = range.end.max(range.start);
    let bounds = [0, range.start, range.start, end, u32::MAX];
    let mut batches = rig.upload(&[0_u32; 14]);
    let counts = batches.view_mut().slice(..14);
    count_batches(
        &*rig.launcher,
        &rig.stream,
        witness.view(),
        set,
        &bounds,
        4,
        counts,
    )
    .unwrap();
    let by_batch = rig.download(&batches);
    assert_eq!(by_batch[8..10], found, "{what}");
    assert_eq!(by_batch[4..6], [0, 0], "{what}");
    let all = |kind: fn(&Scalar) -> bool| with_base.iter().filter(|(_, v)| kind(v)).count() as u32;
    let sum = |kind: usize| (0..4).map(|batch| by_batch[4 * batch + kind]).sum::<u32>();
    assert_eq!(
        [sum(0), sum(1)],
        [all(Scalar::is_one), all(is_full)],
        "{what}"
    );
    assert_eq!(found, [ones.len() as u32, rest.len() as u32], "{what}");
    let mut ones_found = rig.room(ones.len());
    let mut bases_found = rig.room(bases.len());
    let mut rest_found = rig.room(rest.len());
    list(
        &*rig.launcher,
        &rig.stream,
        witness.view(),
        set,
        &range,
        starts.view(),
        ListTarget {
            ones: ones_found.view_mut(),
            rest_bases: bases_found.view_mut(),
            rest_scalars: rest_found.view_mut(),
        },
    )
    .unwrap();
    assert_eq!(rig.download(&ones_found), ones, "{what}");
    assert_eq!(rig.download(&bases_found), bases, "{what}");
    assert_eq!(limbs(&rig.download(&rest_found)), limbs(&rest), "{what}");
    found
}

/// Sets of every density, for both lists.
fn listed(rig: &Rig) {
    for (n, dense) in [(33, false), (1000, true), (TILE + 100, false)] {
        let values = values(n, dense);
        let buffer = rig.upload(&values);
        let witness = Witness::pack(rig, Scalars::Canonical(buffer.view()), n);
        let densities: [(&str, &dyn Fn(usize) -> bool); 5] = [
            ("all", &|_| true),
            ("none", &|_| false),
            ("alternating", &|i| i % 2 == 1),
            ("across words", &|i| i % 61 < 40),
            ("range", &|i| (20..n - 7).contains(&i)),
        ];
        let mut all_totals = Vec::new();
        for (name, density) in densities {
            let (words, ranks) = bitmap((0..n).map(density));
            let (words, ranks) = (rig.upload(&words), rig.upload(&ranks));
            let members = if name == "range" {
                Members::Range(20..n - 7)
            } else {
                Members::Bitmap {
                    words: words.view(),
                    ranks: ranks.view(),
                }
            };
            let set = BaseSet {
                members,
                first_base: 1000,
            };
            let of_set = (0..n).filter(|i| density(*i));
            let with_base: Vec<(u32, Scalar)> = (1000..).zip(of_set.map(|i| values[i])).collect();
            all_totals.extend(check_list(rig, &witness, &set, &with_base, ALL_BASES, name));
            // Batches of bases: before the set, across words, a few, none, to the end.
            for range in [
                0..1000,
                990..1045,
                1045..1046,
                1046..1046,
                1046..1000 + n as u32,
                5000..u32::MAX,
            ] {
                check_list(rig, &witness, &set, &with_base, range, name);
            }
            // More batches than one launch counts.
            let bounds: Vec<u32> = (0..=150).map(|batch| 990 + 7 * batch).collect();
            let in_batch = |batch: usize, kind: fn(&Scalar) -> bool| {
                let bases = bounds[batch]..bounds[batch + 1];
                let inside = with_base.iter().filter(|(base, _)| bases.contains(base));
                inside.filter(|(_, value)| kind(value)).count() as u32
            };
            let expected: Vec<u32> = (0..150)
                .flat_map(|batch| [in_batch(batch, Scalar::is_one), in_batch(batch, is_full)])
                .collect();
            let mut totals = rig.upload(&[0_u32; 300]);
            let counts = totals.view_mut();
            let launcher = &*rig.launcher;
            count_batches(
                launcher,
                &rig.stream,
                witness.view(),
                &set,
                &bounds,
                2,
                counts,
            )
            .unwrap();
            assert_eq!(rig.download(&totals), expected, "{name}");
        }
        let totals = rig.upload(&all_totals);
        let mut offsets = rig.room(densities.len() + 1);
        ones_offsets(
            &*rig.launcher,
            &rig.stream,
            totals.view(),
            offsets.view_mut(),
        )
        .unwrap();
        let mut sum = 0;
        for (set, offset) in rig.download::<u32>(&offsets).into_iter().enumerate() {
            assert_eq!(offset, sum);
            sum += all_totals.get(2 * set).copied().unwrap_or(0);
        }
    }
}

/// What does not fit is left out, whatever was counted.
fn short_targets(rig: &Rig) {
    let values = values(3000, true);
    let buffer = rig.upload(&values);
    let witness = Witness::pack(rig, Scalars::Canonical(buffer.view()), 10);
    assert_eq!(witness.full_count, 3000);
    assert_eq!(limbs(&rig.download(&witness.full)), limbs(&values[..10]));
    let set = BaseSet {
        members: Members::Range(0..3000),
        first_base: 0,
    };
    let mut starts = rig.room(2 * tiles(3000));
    let mut totals = rig.room(2);
    count(
        &*rig.launcher,
        &rig.stream,
        witness.view(),
        &set,
        &ALL_BASES,
        starts.view_mut(),
        totals.view_mut(),
    )
    .unwrap();
    let mut bases = rig.room::<u32>(20);
    let mut scalars = rig.room::<Scalar>(20);
    let mut ones = rig.room::<u32>(0);
    list(
        &*rig.launcher,
        &rig.stream,
        witness.view(),
        &set,
        &ALL_BASES,
        starts.view(),
        ListTarget {
            ones: ones.view_mut(),
            rest_bases: bases.view_mut(),
            rest_scalars: scalars.view_mut(),
        },
    )
    .unwrap();
    assert_eq!(rig.download(&bases), (0..20).collect::<Vec<u32>>());
    let mut expected = limbs(&values[..10]);
    expected.resize(20, [0; 4]);
    assert_eq!(limbs(&rig.download(&scalars)), expected);
}
