//! `kernels/src/ntt.cu`: transforms over Fr, pass by pass. `docs/ntt.md` has the mathematics; `cuzk-ntt`
//! puts passes together.

mod factor;
mod pass;
mod twiddles;

use cuzk_field::Fr;

use crate::declare::kernels;
use crate::device_type::{DeviceType, Ptr, PtrMut};

pub use factor::Factor;
pub use pass::{Pass, Scale, dif, dif_product, dit, dit_product, middle, small};
pub use twiddles::{MAX_LOG_N, Points, Twiddles, TwiddlesRequest};

/// Threads of a block of the passes.
const THREADS: u32 = 256;

/// Elements of a tile, which a block works on: the least power of two of elements that a pass with
/// more than one row a tile needs.
pub const TILE: usize = 2048;

/// log2 of [`TILE`]: a pass has at most so many stages.
pub const LOG_TILE: u32 = 11;

/// Dynamic shared memory of a pass: the tile.
const SHARED_BYTES: u32 = 32 * TILE as u32;

/// `cuzk::NttPass`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct PassArguments {
    i: Factor,
    half_sum: Factor,
    half_difference: Factor,
    length: u64,
    total: u64,
    log_n: u32,
    log_block: u32,
    log_columns: u32,
    log_stride: u32,
    log_rows: u32,
    minus: u32,
    last: u32,
    scaled: u32,
}

// SAFETY: `repr(C)`, plain data without padding, field by field that of kernels/include/cuzk/ntt.cuh.
unsafe impl DeviceType for PassArguments {
    fn c_type() -> String {
        "cuzk::NttPass".to_owned()
    }
}

const _: () = assert!(size_of::<PassArguments>() == 240);

kernels! {
    module "ntt";
    /// See [`dif`].
    DIF_2 = cuzk_ntt_dif_2[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dif`].
    DIF_4 = cuzk_ntt_dif_4[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dif`].
    DIF_8 = cuzk_ntt_dif_8[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dif_product`].
    DIF_PRODUCT_2 = cuzk_ntt_dif_product_2[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dif_product`].
    DIF_PRODUCT_4 = cuzk_ntt_dif_product_4[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dif_product`].
    DIF_PRODUCT_8 = cuzk_ntt_dif_product_8[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit`].
    DIT_2 = cuzk_ntt_dit_2[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit`].
    DIT_4 = cuzk_ntt_dit_4[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit`].
    DIT_8 = cuzk_ntt_dit_8[THREADS](source: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit_product`].
    DIT_PRODUCT_2 = cuzk_ntt_dit_product_2[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit_product`].
    DIT_PRODUCT_4 = cuzk_ntt_dit_product_4[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`dit_product`].
    DIT_PRODUCT_8 = cuzk_ntt_dit_product_8[THREADS](source: Ptr<Fr>, other: Ptr<Fr>, data: PtrMut<Fr>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`middle`].
    MIDDLE = cuzk_ntt_middle[THREADS](data: PtrMut<Fr>, down_tables: Ptr<Factor>, down_levels: Ptr<u32>, tables: Ptr<Factor>, levels: Ptr<u32>, scale: Ptr<Factor>, pass: PassArguments);
    /// See [`small`].
    SMALL = cuzk_ntt_small[THREADS](
        data: PtrMut<Fr>,
        scale: Ptr<Factor>,
        i: Factor,
        count: u64,
        log_n: u32,
        length: u32,
        reversed_in: u32,
        scaled: u32,
    );
    /// See [`Twiddles::new`].
    TWIDDLES = cuzk_ntt_twiddles[THREADS](out: PtrMut<Factor>, roots: Ptr<Fr>, log_order: u32, odd: u32, count: u32);
}
