//! Plain data: what may be copied to a device and back as bytes.
//!
//! Any bytes are a valid value of these types as far as memory goes. That a value is canonical is the
//! business of whoever writes the bytes: the constructors here, and the kernels.
#![allow(unsafe_code)]

use bytemuck::{Pod, Zeroable};

use crate::{Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar};

macro_rules! plain {
    ($($t:ty = $words:literal;)*) => {
        $(
            // SAFETY: `repr(C)`, made of u64 limbs alone; all zero is a value.
            unsafe impl Zeroable for $t {}
            // SAFETY: as above; the assertion says that there is no padding.
            unsafe impl Pod for $t {}
            const _: () = assert!(size_of::<$t>() == 8 * $words);
        )*
    };
}

plain! {
    Scalar = 4;
    Fr = 4;
    Fp = 6;
    Fp2 = 12;
    G1Affine = 12;
    G2Affine = 24;
    G1Xyzz = 24;
    G2Xyzz = 48;
}
