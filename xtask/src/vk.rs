//! The verifying key at the head of a bellman parameter file, written as snarkjs reads it, so that
//! snarkjs can judge proofs for such keys. It shares nothing with the readers that it helps to
//! check: big-endian bytes become decimal digits, no more.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

const G1: usize = 96;
const G2: usize = 192;

/// `circuit.params` to the text of a `verification_key.json`.
pub(crate) fn from_params(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut read = |len: usize| -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        file.read_exact(&mut bytes)
            .with_context(|| format!("{} ends within the verifying key", path.display()))?;
        Ok(bytes)
    };
    // alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, u32 count, ic.
    let alpha_g1 = g1(&read(G1)?)?;
    read(G1)?;
    let beta_g2 = g2(&read(G2)?)?;
    let gamma_g2 = g2(&read(G2)?)?;
    read(G1)?;
    let delta_g2 = g2(&read(G2)?)?;
    let count = u32::from_be_bytes(read(4)?.try_into().expect("four bytes were read"));
    let ic = (0..count)
        .map(|_| g1(&read(G1)?))
        .collect::<Result<Vec<_>>>()?;
    Ok(serde_json::to_string_pretty(&json!({
        "protocol": "groth16",
        "curve": "bls12381",
        "nPublic": ic.len().saturating_sub(1),
        "vk_alpha_1": alpha_g1,
        "vk_beta_2": beta_g2,
        "vk_gamma_2": gamma_g2,
        "vk_delta_2": delta_g2,
        "IC": ic,
    }))?)
}

/// Uncompressed x, y. No point of a verifying key is infinity.
fn g1(bytes: &[u8]) -> Result<Value> {
    let c = coordinates(bytes)?;
    Ok(json!([c[0], c[1], "1"]))
}

/// Uncompressed x.c1, x.c0, y.c1, y.c0.
fn g2(bytes: &[u8]) -> Result<Value> {
    let c = coordinates(bytes)?;
    Ok(json!([[c[1], c[0]], [c[3], c[2]], ["1", "0"]]))
}

fn coordinates(bytes: &[u8]) -> Result<Vec<String>> {
    if bytes[0] & 0xe0 != 0 {
        bail!("a point of the verifying key is compressed or infinity");
    }
    Ok(bytes.chunks(48).map(decimal).collect())
}

/// A big-endian number in decimal digits, by long division.
fn decimal(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|&byte| byte != 0) {
        let mut remainder = 0u32;
        for byte in &mut number {
            let value = remainder << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 10).expect("the remainder is below ten");
            remainder = value % 10;
        }
        digits.push(char::from_digit(remainder, 10).expect("below ten"));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_digits() {
        assert_eq!(decimal(&[0; 48]), "0");
        assert_eq!(decimal(&[1, 0]), "256");
        assert_eq!(decimal(&u128::MAX.to_be_bytes()), u128::MAX.to_string());
        assert_eq!(decimal(&1_000_000_007u64.to_be_bytes()), "1000000007");
    }
}
