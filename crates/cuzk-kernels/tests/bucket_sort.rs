//! Digits sorted by bucket, against what the digits must add up to: once on the emulator, and on the
//! card where there is one (`CUZK_REQUIRE_GPU=1` makes a missing one a failure).

use cuzk_field::{Field as _, Fr, Scalar};
use cuzk_gpu_mem::DeviceViewMut;
use cuzk_kernels::bucket_sort::{
    BaseIndices, Part, PartShape, Scalars, SortShape, SortTarget, TILE, sort,
};
use cuzk_kernels::windows::Windows;
use cuzk_testkit::device::Rig;

cuzk_testkit::on_both!(
    every_size,
    hostile_scalars,
    forms_agree,
    parts_and_lists,
    windows_apart,
    groups_of_windows,
);

/// Launches whose dynamic shared memory alone needs no leave, and with the kernel's own does: 10 windows of 1024
/// columns take 48 KiB.
#[test]
fn shared_memory_of_both_kinds_is_counted() {
    let Some(rig) = Rig::card() else { return };
    for end in 9..=11 {
        check_some(&rig, 12, end, &scalars(1000, 5), "columns");
    }
}

/// Full-size scalars, distinct.
fn scalars(n: usize, seed: u64) -> Vec<Scalar> {
    let step = Fr::from(seed + 5).pow(0x9876_5432_1012_3457);
    let mut value = Fr::from(seed + 2).pow(0xabcd_ef12_3456_7891);
    (0..n)
        .map(|_| {
            value = value * step + Fr::ONE;
            value.into()
        })
        .collect()
}

/// 2^bit.
fn power(bit: u32) -> Fr {
    Fr::from(2).pow(u64::from(bit))
}

/// Adds what the entries say to `sums[base]`, multiples of bases behind the bases; each of them is at most once in a set.
fn add_up(
    windows: &Windows,
    range: std::ops::Range<u32>,
    first_entry: u32,
    entries: &[u32],
    offsets: &[u32],
    sums: &mut [Fr],
) {
    let bases = sums.len();
    let mut last = vec![u32::MAX; bases * windows.multiples() as usize];
    let mut end = offsets[0];
    let mut bucket = 0;
    for window in range {
        let weight = power(windows.first_bit(window));
        for magnitude in 1..=windows.buckets_of(window) {
            let start = offsets[bucket];
            assert_eq!(start, end, "bucket {bucket}");
            end = offsets[bucket + 1];
            bucket += 1;
            let term = weight * Fr::from(magnitude as u64);
            for entry in &entries[(start - first_entry) as usize..(end - first_entry) as usize] {
                let base = (entry & 0x7fff_ffff) as usize;
                assert_ne!(
                    last[base], window,
                    "base {base} is twice in window {window}"
                );
                last[base] = window;
                let multiple = (base / bases) as u32 * windows.group_bits();
                let term = if multiple == 0 {
                    term
                } else {
                    term * power(multiple)
                };
                if entry >> 31 == 1 {
                    sums[base % bases] -= term;
                } else {
                    sums[base % bases] += term;
                }
            }
        }
    }
    assert_eq!(bucket + 1, offsets.len());
}

/// What the digits of the windows before `end`, within the lowest 64 bits, add up to: taken one after
/// the other from the integer of least magnitude, each as near to zero as can be.
fn low_digits(windows: &Windows, end: u32, value: &Scalar) -> Fr {
    let negated = Scalar::from(-Fr::from(*value));
    let is_upper = negated.limbs().iter().rev().lt(value.limbs().iter().rev());
    let mut rest = value.limbs()[0];
    if is_upper {
        rest = rest.wrapping_sub(cuzk_field::constants::FR_MODULUS[0]);
    }
    (0..end).fold(Fr::ZERO, |sum, window| {
        let unused = 64 - windows.width_of(window);
        let digit = (rest << unused) as i64 >> unused;
        rest = (rest.wrapping_sub(digit as u64) as i64 >> windows.width_of(window)) as u64;
        let term = power(windows.first_bit(window)) * Fr::from(digit.unsigned_abs());
        if digit < 0 { sum - term } else { sum + term }
    })
}

/// Sorts all windows of one vector; the scalars must come out.
fn check(rig: &Rig, count: u32, values: &[Scalar], what: &str) {
    check_some(rig, count, Windows::new(count).count(), values, what);
}

/// Sorts the first `end` windows of one vector.
fn check_some(rig: &Rig, count: u32, end: u32, values: &[Scalar], what: &str) {
    check_windows(rig, Windows::new(count), end, values, what);
}

/// Sorts the first `end` sets of one vector.
fn check_windows(rig: &Rig, windows: Windows, end: u32, values: &[Scalar], what: &str) {
    let shape = SortShape::new(
        windows,
        vec![PartShape {
            scalars: values.len(),
            windows: 0..end,
        }],
    )
    .unwrap();
    let device_values = rig.upload(values);
    let mut entries = rig.room::<u32>(shape.max_entries());
    let mut offsets = rig.room::<u32>(shape.buckets() + 1);
    let mut scratch = rig.room::<u8>(shape.scratch_bytes());
    let part = Part {
        scalars: Scalars::Canonical(device_values.view()),
        bases: BaseIndices::From(0),
        multiple_stride: values.len() as u32,
        recoded: None,
    };
    sort(
        &*rig.launcher,
        &rig.stream,
        &shape,
        &[part],
        SortTarget {
            first_entry: 0,
            entries: entries.view_mut(),
            offsets: offsets.view_mut(),
        },
        scratch.view_mut(),
    )
    .unwrap();
    let mut sums = vec![Fr::ZERO; values.len()];
    let (entries, offsets) = (rig.download(&entries), rig.download(&offsets));
    add_up(&windows, 0..end, 0, &entries, &offsets, &mut sums);
    for (i, (sum, value)) in sums.iter().zip(values).enumerate() {
        let expected = if end == windows.count() {
            Fr::from(*value)
        } else {
            low_digits(&windows, end, value)
        };
        assert!(*sum == expected, "{what}, {windows:?}, scalar {i}");
    }
}

fn every_size(rig: &Rig) {
    let all = scalars(2 * TILE + 1, 1);
    for n in [0, 1, 2, 33] {
        check(rig, 28, &all[..n], "random");
    }
    for n in [511, 512, 513, 2047, 2048, 2049] {
        check_some(rig, 28, 2, &all[..n], "random");
    }
    for count in [51, 50, 37, 20] {
        check(rig, count, &all[..50], "random");
    }
    for n in [TILE - 1, TILE, TILE + 1, 2 * TILE + 1] {
        check_some(rig, 28, 1, &all[..n], "random");
    }
    if rig.is_card {
        let many = scalars(1 << 18, 2);
        for count in [11, 12, 13, 14, 15, 16, 17, 20] {
            check(rig, count, &many, "random");
        }
    }
}

fn hostile_scalars(rig: &Rig) {
    let (n, count, end) = if rig.is_card {
        (300_000, 13, 13)
    } else {
        (TILE + 77, 32, 1)
    };
    let random = scalars(n, 9);
    let half = Fr::from(2).inverse().unwrap();
    let small = |i: usize, below: u64| Scalar::from((i as u64).wrapping_mul(0x9e37_79b9) % below);
    let all: [(&str, &dyn Fn(usize) -> Scalar); 8] = [
        ("0", &|_| Scalar::ZERO),
        ("1", &|_| Scalar::ONE),
        ("r - 1", &|_| Scalar::MINUS_ONE),
        ("(r +- 1) / 2", &|i| {
            Scalar::from(if i % 2 == 0 { half } else { half - Fr::ONE })
        }),
        ("one value", &|_| random[0]),
        ("99% one value", &|i| {
            random[if i % 100 == 0 { i } else { 0 }]
        }),
        ("four values", &|i| random[i % 4]),
        ("bits", &|i| small(i, 2)),
    ];
    for (what, value) in all {
        let values: Vec<Scalar> = (0..n).map(value).collect();
        check_some(rig, count, end, &values, what);
    }
    let few: [(&str, &dyn Fn(usize) -> Scalar); 3] = [
        ("below 2^16", &|i| small(i, 1 << 16)),
        ("powers of two", &|i| power(i as u32 % 254).into()),
        ("minus powers of two", &|i| {
            Scalar::from(-power(i as u32 % 254))
        }),
    ];
    for (what, value) in few {
        let values: Vec<Scalar> = (0..260).map(value).collect();
        check(rig, 24, &values, what);
    }
}

/// Entries, in order within each bucket, and offsets.
fn run(
    rig: &Rig,
    shape: &SortShape,
    scalars: Scalars<'_>,
    recoded: Option<DeviceViewMut<'_, u32>>,
) -> (Vec<u32>, Vec<u32>) {
    let mut entries = rig.room::<u32>(shape.max_entries());
    let mut offsets = rig.room::<u32>(shape.buckets() + 1);
    let mut scratch = rig.room::<u8>(shape.scratch_bytes());
    let part = Part {
        scalars,
        bases: BaseIndices::From(0),
        multiple_stride: 0,
        recoded,
    };
    sort(
        &*rig.launcher,
        &rig.stream,
        shape,
        &[part],
        SortTarget {
            first_entry: 0,
            entries: entries.view_mut(),
            offsets: offsets.view_mut(),
        },
        scratch.view_mut(),
    )
    .unwrap();
    let mut entries = rig.download(&entries);
    let offsets = rig.download(&offsets);
    entries.truncate(offsets[shape.buckets()] as usize);
    for ends in offsets.windows(2) {
        entries[ends[0] as usize..ends[1] as usize].sort_unstable();
    }
    (entries, offsets)
}

/// Montgomery form, integers that are not reduced, and recoded planes give the same digits.
fn forms_agree(rig: &Rig) {
    let windows = Windows::new(28);
    let values = scalars(200, 3);
    let n = values.len();
    let elements: Vec<Fr> = values.iter().map(|value| Fr::from(*value)).collect();
    // value + r, where that is below 2^256.
    let beyond: Vec<Scalar> = values
        .iter()
        .map(|value| {
            let mut carry = 0;
            let limbs: [u64; 4] = std::array::from_fn(|i| {
                let sum = u128::from(value.limbs()[i])
                    + u128::from(cuzk_field::constants::FR_MODULUS[i])
                    + carry;
                carry = sum >> 64;
                sum as u64
            });
            bytemuck::cast(if carry == 0 { limbs } else { *value.limbs() })
        })
        .collect();
    let shape = SortShape::new(
        windows,
        vec![PartShape {
            scalars: n,
            windows: 0..windows.count(),
        }],
    )
    .unwrap();
    let (canonical, montgomery) = (rig.upload(&values), rig.upload(&elements));
    let unreduced = rig.upload(&beyond);
    let mut recoded = rig.room::<u32>(8 * n);
    let expected = run(rig, &shape, Scalars::Canonical(canonical.view()), None);
    let found = run(
        rig,
        &shape,
        Scalars::Montgomery(montgomery.view()),
        Some(recoded.view_mut()),
    );
    assert!(found == expected, "Montgomery form");
    let found = run(rig, &shape, Scalars::Recoded(recoded.view()), None);
    assert!(found == expected, "recoded");
    let found = run(rig, &shape, Scalars::Canonical(unreduced.view()), None);
    assert!(found == expected, "not reduced");
}

/// Several vectors in one sort, one of them with a list of bases, behind entries of something else.
fn parts_and_lists(rig: &Rig) {
    let windows = Windows::new(24);
    let sizes = [30, 0, 100];
    let shape = SortShape::new(
        windows,
        sizes
            .map(|scalars| PartShape {
                scalars,
                windows: 0..windows.count(),
            })
            .to_vec(),
    )
    .unwrap();
    let values = sizes.map(|n| scalars(n, n as u64));
    let buffers = [0, 1, 2].map(|i: usize| rig.upload(&values[i]));
    // A permutation of 0..100.
    let list: Vec<u32> = (0..100).map(|i| i * 7 % 100).collect();
    let device_list = rig.upload(&list);
    let mut entries = rig.room::<u32>(shape.max_entries());
    let mut offsets = rig.room::<u32>(shape.buckets() + 1);
    let mut scratch = rig.room::<u8>(shape.scratch_bytes());
    let part = |i: usize, bases| Part {
        scalars: Scalars::Canonical(buffers[i].view()),
        bases,
        multiple_stride: 0,
        recoded: None,
    };
    let parts = [
        part(0, BaseIndices::From(40)),
        part(1, BaseIndices::From(0)),
        part(2, BaseIndices::Listed(device_list.view())),
    ];
    sort(
        &*rig.launcher,
        &rig.stream,
        &shape,
        &parts,
        SortTarget {
            first_entry: 12345,
            entries: entries.view_mut(),
            offsets: offsets.view_mut(),
        },
        scratch.view_mut(),
    )
    .unwrap();
    let (entries, offsets) = (rig.download(&entries), rig.download(&offsets));
    assert_eq!(offsets[0], 12345);
    let buckets = windows.first_bucket(windows.count());
    for part in 0..3 {
        let mut sums = vec![Fr::ZERO; 100];
        add_up(
            &windows,
            0..windows.count(),
            12345,
            &entries,
            &offsets[part * buckets..=(part + 1) * buckets],
            &mut sums,
        );
        for (i, value) in values[part].iter().enumerate() {
            let base = [i + 40, i, list[i % 100] as usize][part];
            assert!(sums[base] == Fr::from(*value), "part {part}, scalar {i}");
        }
    }
}

/// Windows a few at a time, from planes.
fn windows_apart(rig: &Rig) {
    let windows = Windows::new(24);
    let values = scalars(600, 6);
    let n = values.len();
    let buffer = rig.upload(&values);
    let mut recoded = rig.room::<u32>(8 * n);
    let mut sums = vec![Fr::ZERO; n];
    for range in [0..1, 1..14, 14..17, 17..24] {
        let shape = SortShape::new(
            windows,
            vec![PartShape {
                scalars: n,
                windows: range.clone(),
            }],
        )
        .unwrap();
        let mut entries = rig.room::<u32>(shape.max_entries());
        let mut offsets = rig.room::<u32>(shape.buckets() + 1);
        let mut scratch = rig.room::<u8>(shape.scratch_bytes());
        let part = if range.start == 0 {
            Part {
                scalars: Scalars::Canonical(buffer.view()),
                bases: BaseIndices::From(0),
                multiple_stride: 0,
                recoded: Some(recoded.view_mut()),
            }
        } else {
            Part {
                scalars: Scalars::Recoded(recoded.view()),
                bases: BaseIndices::From(0),
                multiple_stride: 0,
                recoded: None,
            }
        };
        sort(
            &*rig.launcher,
            &rig.stream,
            &shape,
            &[part],
            SortTarget {
                first_entry: 0,
                entries: entries.view_mut(),
                offsets: offsets.view_mut(),
            },
            scratch.view_mut(),
        )
        .unwrap();
        let (entries, offsets) = (rig.download(&entries), rig.download(&offsets));
        add_up(&windows, range, 0, &entries, &offsets, &mut sums);
    }
    for (i, (sum, value)) in sums.iter().zip(&values).enumerate() {
        assert!(*sum == Fr::from(*value), "scalar {i}");
    }
}

/// Digits of several groups of windows in one set of buckets, from scalars and from planes.
fn groups_of_windows(rig: &Rig) {
    let n = if rig.is_card { 100_000 } else { 40 };
    let mut values = scalars(n, 8);
    let half = Fr::from(2).inverse().unwrap();
    values[1] = half.into();
    values[2] = (half - Fr::ONE).into();
    values[3] = Scalar::MINUS_ONE;
    values[4] = Scalar::ZERO;
    let cuts: &[(u32, u32)] = if rig.is_card {
        &[
            (1, 12),
            (1, 13),
            (1, 15),
            (2, 6),
            (3, 4),
            (3, 5),
            (4, 3),
            (6, 2),
            (11, 1),
        ]
    } else {
        &[(1, 32), (3, 8), (14, 2)]
    };
    for &(sets, multiples) in cuts {
        let windows = Windows::with_multiples(sets, multiples).unwrap();
        check_windows(rig, windows, sets, &values, "random");
        let shape = |windows| {
            SortShape::new(
                windows,
                vec![PartShape {
                    scalars: n,
                    windows: 0..sets,
                }],
            )
        };
        let shape = shape(windows).unwrap();
        let buffer = rig.upload(&values);
        let mut recoded = rig.room::<u32>(8 * n);
        let scalars = Scalars::Canonical(buffer.view());
        let expected = run(rig, &shape, scalars, Some(recoded.view_mut()));
        let planes = Scalars::Recoded(recoded.view());
        assert!(run(rig, &shape, planes, None) == expected, "{windows:?}");
    }
}
