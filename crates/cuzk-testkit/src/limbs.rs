//! Field elements as little-endian 64-bit limbs. The modulus is the caller's, so this crate knows
//! no field.
//!
//! Random limbs rarely carry or borrow far. The hostile values do: 0, 1, m-1, single bits, limbs of
//! all ones or zeros, and long runs of equal bits (the idea of CGBN's `hard_random_words`).

use proptest::prelude::*;

/// Fixed values below `modulus` at which arithmetic tends to break.
pub fn corners<const N: usize>(modulus: [u64; N]) -> Vec<[u64; N]> {
    let small = |v: u64| {
        let mut limbs = [0; N];
        limbs[0] = v;
        limbs
    };
    let mut values = vec![small(0), small(1), small(2), small(u64::MAX)];
    for v in 1..=2 {
        values.push(sub(modulus, small(v)));
    }
    let half = half(modulus);
    values.extend([half, sub(modulus, half), sub(half, small(1))]);
    for limb in 0..N {
        for word in [1, u64::MAX, 1 << 63, u64::from(u32::MAX), 1 << 32] {
            let mut limbs = [0; N];
            limbs[limb] = word;
            values.push(limbs);
            values.push(sub(modulus, reduce(limbs, modulus)));
        }
        let mut ones_up_to = [0; N];
        ones_up_to[..=limb].fill(u64::MAX);
        values.push(ones_up_to);
    }
    let mut values: Vec<_> = values.into_iter().map(|v| reduce(v, modulus)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Any limbs, also at or above every modulus: corners of `modulus` and their neighbours beyond it,
/// runs of equal bits, uniform words.
pub fn any<const N: usize>(modulus: [u64; N]) -> impl Strategy<Value = [u64; N]> {
    let mut beyond = vec![modulus, [u64::MAX; N]];
    let mut above = modulus;
    above[0] = above[0].wrapping_add(1);
    beyond.push(above);
    prop_oneof![
        2 => proptest::sample::select(corners(modulus)),
        1 => proptest::sample::select(beyond),
        3 => runs::<N>(),
        2 => proptest::array::uniform(proptest::num::u64::ANY),
    ]
}

/// Limbs of values below `modulus`, the hostile ones in half of the cases.
pub fn below<const N: usize>(modulus: [u64; N]) -> impl Strategy<Value = [u64; N]> {
    any(modulus).prop_map(move |limbs| reduce(limbs, modulus))
}

/// Long runs of ones and zeros across limb borders.
fn runs<const N: usize>() -> impl Strategy<Value = [u64; N]> {
    proptest::collection::vec((any_bit(), 1..64usize * N), 1..6).prop_map(|runs| {
        let mut limbs = [0u64; N];
        let bits = runs
            .iter()
            .cycle()
            .flat_map(|&(bit, len)| std::iter::repeat_n(bit, len))
            .take(64 * N);
        for (i, bit) in bits.enumerate() {
            limbs[i / 64] |= u64::from(bit) << (i % 64);
        }
        limbs
    })
}

fn any_bit() -> impl Strategy<Value = bool> {
    proptest::bool::ANY
}

/// `value` with its top bits masked and the modulus subtracted until it is below: cheap, not
/// uniform. The masked value is below twice the modulus, so one subtraction does.
fn reduce<const N: usize>(mut value: [u64; N], modulus: [u64; N]) -> [u64; N] {
    let top = modulus
        .iter()
        .rposition(|&limb| limb != 0)
        .expect("a modulus is not zero");
    value[top + 1..].fill(0);
    value[top] &= u64::MAX >> modulus[top].leading_zeros();
    if value.iter().rev().ge(modulus.iter().rev()) {
        value = sub(value, modulus);
    }
    value
}

fn sub<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (d, b1) = a[i].overflowing_sub(b[i]);
        let (d, b2) = d.overflowing_sub(u64::from(borrow));
        borrow = b1 || b2;
        d
    })
}

fn half<const N: usize>(a: [u64; N]) -> [u64; N] {
    std::array::from_fn(|i| (a[i] >> 1) | (a.get(i + 1).map_or(0, |next| next << 63)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r of BLS12-381.
    const MODULUS: [u64; 4] = [
        0xffff_ffff_0000_0001,
        0x53bd_a402_fffe_5bfe,
        0x3339_d808_09a1_d805,
        0x73ed_a753_299d_7d48,
    ];

    fn is_below(value: &[u64; 4]) -> bool {
        value.iter().rev().lt(MODULUS.iter().rev())
    }

    #[test]
    fn corners_are_below_the_modulus_and_hold_its_neighbour() {
        let corners = corners(MODULUS);
        assert!(corners.iter().all(is_below));
        assert!(corners.contains(&[0; 4]));
        assert!(corners.contains(&[1, 0, 0, 0]));
        let mut minus_one = MODULUS;
        minus_one[0] -= 1;
        assert!(corners.contains(&minus_one));
    }

    proptest! {
        #[test]
        fn reduced_values_are_below_the_modulus(value in below(MODULUS)) {
            prop_assert!(is_below(&value));
        }
    }
}
