//! Plain data: what may be copied to a device and back as bytes.
//!
//! Any bytes are a valid value of these types as far as memory goes. That a value is canonical is the
//! business of whoever writes the bytes: the constructors here, and the kernels.
#![allow(unsafe_code)]

use bytemuck::{Pod, Zeroable};

use crate::{Affine, CurveField, Fp, Fp2, Fr, G1Affine, G1Xyzz, G2Affine, G2Xyzz, Scalar, Xyzz};

/// A coordinate field whose points are plain data too.
///
/// # Safety
/// Points in affine and XYZZ coordinates have no padding.
pub unsafe trait PlainCurve: CurveField + Pod {}

// SAFETY: 96 and 192 bytes, 192 and 384, at an alignment of 32.
unsafe impl PlainCurve for Fp {}
// SAFETY: as above; the assertions below say so.
unsafe impl PlainCurve for Fp2 {}

// SAFETY: `repr(C)`, made of coordinates; all zero is a value.
unsafe impl<F: PlainCurve> Zeroable for Affine<F> {}
// SAFETY: as above, without padding.
unsafe impl<F: PlainCurve> Pod for Affine<F> {}
// SAFETY: `repr(C)`, made of coordinates; all zero is a value.
unsafe impl<F: PlainCurve> Zeroable for Xyzz<F> {}
// SAFETY: as above, without padding.
unsafe impl<F: PlainCurve> Pod for Xyzz<F> {}

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
}

const _: () = {
    assert!(size_of::<G1Affine>() == 8 * 12);
    assert!(size_of::<G2Affine>() == 8 * 24);
    assert!(size_of::<G1Xyzz>() == 8 * 24);
    assert!(size_of::<G2Xyzz>() == 8 * 48);
};
