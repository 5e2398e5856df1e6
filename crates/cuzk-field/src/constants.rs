//! The constants of BLS12-381 that layouts and kernels share, each with its formula.
//!
//! z = -0xd201000000010000 is the curve parameter. All limbs are 64-bit, least significant first.

/// r = z^4 - z^2 + 1, the order of G1, G2 and the scalar field.
pub const FR_MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// p = (z - 1)^2 (z^4 - z^2 + 1) / 3 + z, the base field.
pub const FP_MODULUS: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// The 2-adicity of the scalar field: 2^32 divides r - 1, 2^33 does not.
pub const FR_TWO_ADICITY: u32 = 32;

/// -r^-1 mod 2^64 (its low 32 bits are -r^-1 mod 2^32, the device's Montgomery constant).
pub const FR_INV: u64 = 0xffff_fffe_ffff_ffff;

/// -p^-1 mod 2^64 (its low 32 bits are -p^-1 mod 2^32).
pub const FP_INV: u64 = 0x89f3_fffc_fffc_fffd;

/// 2^256 mod r: one, in Montgomery form.
pub const FR_R: [u64; 4] = [
    0x0000_0001_ffff_fffe,
    0x5884_b7fa_0003_4802,
    0x998c_4fef_ecbc_4ff5,
    0x1824_b159_acc5_056f,
];

/// 2^512 mod r: a Montgomery product with it enters Montgomery form.
pub const FR_R2: [u64; 4] = [
    0xc999_e990_f3f2_9c6d,
    0x2b6c_edcb_8792_5c23,
    0x05d3_1496_7254_398f,
    0x0748_d9d9_9f59_ff11,
];

/// 2^384 mod p: one, in Montgomery form.
pub const FP_R: [u64; 6] = [
    0x7609_0000_0002_fffd,
    0xebf4_000b_c40c_0002,
    0x5f48_9857_53c7_58ba,
    0x77ce_5853_7052_5745,
    0x5c07_1a97_a256_ec6d,
    0x15f6_5ec3_fa80_e493,
];

/// 2^768 mod p.
pub const FP_R2: [u64; 6] = [
    0xf4df_1f34_1c34_1746,
    0x0a76_e6a6_09d1_04f1,
    0x8de5_476c_4c95_b6d5,
    0x67eb_88a9_939d_83c0,
    0x9a79_3e85_b519_952d,
    0x1198_8fe5_92ca_e3aa,
];

/// 5^((r-1)/2^32), a primitive 2^32-th root of unity: the family of circom and snarkjs keys, which
/// take the smallest quadratic non-residue as generator. Canonical, not Montgomery.
pub const ROOT_2_32_OF_5: [u64; 4] = [
    0x1b78_8f50_0b91_2f1f,
    0xc402_4ff2_70b3_e094,
    0x0fd5_6dc8_d168_d6c0,
    0x0212_d79e_5b41_6b6f,
];

/// 7^((r-1)/2^32): the family of arkworks, bellman, blst and zkcrypto. Canonical, not Montgomery.
pub const ROOT_2_32_OF_7: [u64; 4] = [
    0x3829_971f_439f_0d2b,
    0xb636_8350_8c22_80b9,
    0xd09b_6819_22c8_13b4,
    0x16a2_a19e_dfe8_1f20,
];

/// z^2 - 1, the eigenvalue of the endomorphism (x, y) -> ([`G1_BETA`] x, y) on G1: z^4 - z^2 + 1 = r makes
/// it a root of X^2 + X + 1 modulo r.
pub const G1_LAMBDA: u128 = 0xac45_a401_0001_a402_0000_0000_ffff_ffff;

/// 2^(2 (p - 1) / 3) in Montgomery form, the cube root of one that belongs to [`G1_LAMBDA`].
pub const G1_BETA: [u64; 6] = [
    0xcd03_c9e4_8671_f071,
    0x5dab_2246_1fcd_a5d2,
    0x5870_42af_d385_1b95,
    0x8eb6_0ebe_01ba_cb9e,
    0x03f9_7d6e_83d0_50d2,
    0x18f0_2065_5463_8741,
];
