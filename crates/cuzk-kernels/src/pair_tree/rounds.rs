//! `pair_tree_g1.cu` and `pair_tree_g2.cu`.

use cuzk_field::{Affine, Fp, Fp2};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use super::{Homes, MAX_BASES};
use crate::curve::DeviceCurve;
use crate::declare::{Declaration, Kernel, kernels};
use crate::device_type::{Chunk, Ptr, PtrMut};
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::{at_least, at_most, exactly};

/// Threads of a block of [`forward`] and [`backward`].
pub const THREADS: usize = 128;
/// Threads of a block of [`invert`].
const INVERT_THREADS: u32 = 64;

type ForwardBases<F> = (
    Ptr<Affine<F>>,
    u32,
    Ptr<u64>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    u32,
    PtrMut<Affine<F>>,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    Ptr<u32>,
    u32,
    u32,
);
type ForwardNodes<F> = (
    Ptr<Chunk>,
    u32,
    Ptr<u64>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    u32,
    PtrMut<Affine<F>>,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    Ptr<u32>,
    u32,
    u32,
);
type Invert = (PtrMut<Chunk>, PtrMut<Chunk>, u32, Ptr<u32>, u32, u32);
type BackwardBases<F> = (
    Ptr<Affine<F>>,
    u32,
    Ptr<u64>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    u32,
    PtrMut<Affine<F>>,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    Ptr<u32>,
    u32,
    u32,
);
type BackwardNodes<F> = (
    Ptr<Chunk>,
    u32,
    Ptr<u64>,
    Ptr<u32>,
    PtrMut<Affine<F>>,
    u32,
    PtrMut<Affine<F>>,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    PtrMut<Chunk>,
    u32,
    Ptr<u32>,
    u32,
    u32,
);

/// The kernels of a round in one group.
#[derive(Debug)]
pub(crate) struct RoundKernels<F: DeviceCurve> {
    forward_bases: &'static Kernel<ForwardBases<F>>,
    forward_nodes: &'static Kernel<ForwardNodes<F>>,
    invert: &'static Kernel<Invert>,
    backward_bases: &'static Kernel<BackwardBases<F>>,
    backward_nodes: &'static Kernel<BackwardNodes<F>>,
}

macro_rules! group {
    ($group:ident, $field:ty, $module:literal, $($entry:ident)+) => {
        pub(crate) mod $group {
            use super::*;

            group!(@kernels $field, $module, $($entry)+);

            pub(crate) const KERNELS: RoundKernels<$field> = RoundKernels {
                forward_bases: &FORWARD_BASES,
                forward_nodes: &FORWARD_NODES,
                invert: &INVERT,
                backward_bases: &BACKWARD_BASES,
                backward_nodes: &BACKWARD_NODES,
            };
        }
    };
    (@kernels $field:ty, $module:literal,
     $forward_bases:ident $forward_nodes:ident $invert:ident $backward_bases:ident $backward_nodes:ident) => {
        kernels! {
            module $module;
            /// See [`forward`].
            FORWARD_BASES = $forward_bases[THREADS as u32](
                points: Ptr<Affine<$field>>, point_count: u32,
                pairs: Ptr<u64>, owners: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, buckets: u32, border: PtrMut<Affine<$field>>,
                prefixes: PtrMut<Chunk>, prefix_stride: u32, products: PtrMut<Chunk>, product_stride: u32,
                total: Ptr<u32>, capacity: u32, per_thread: u32,
            );
            /// See [`forward`].
            FORWARD_NODES = $forward_nodes[THREADS as u32](
                nodes: Ptr<Chunk>, node_stride: u32,
                pairs: Ptr<u64>, owners: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, buckets: u32, border: PtrMut<Affine<$field>>,
                prefixes: PtrMut<Chunk>, prefix_stride: u32, products: PtrMut<Chunk>, product_stride: u32,
                total: Ptr<u32>, capacity: u32, per_thread: u32,
            );
            /// See [`invert`].
            INVERT = $invert[INVERT_THREADS](
                products: PtrMut<Chunk>, scratch: PtrMut<Chunk>, product_stride: u32,
                total: Ptr<u32>, capacity: u32, per_thread: u32,
            );
            /// See [`backward`].
            BACKWARD_BASES = $backward_bases[THREADS as u32](
                points: Ptr<Affine<$field>>, point_count: u32,
                pairs: Ptr<u64>, owners: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, buckets: u32, border: PtrMut<Affine<$field>>,
                prefixes: PtrMut<Chunk>, prefix_stride: u32, products: PtrMut<Chunk>, product_stride: u32,
                out: PtrMut<Chunk>, out_stride: u32,
                total: Ptr<u32>, capacity: u32, per_thread: u32,
            );
            /// See [`backward`].
            BACKWARD_NODES = $backward_nodes[THREADS as u32](
                nodes: Ptr<Chunk>, node_stride: u32,
                pairs: Ptr<u64>, owners: Ptr<u32>,
                sums: PtrMut<Affine<$field>>, buckets: u32, border: PtrMut<Affine<$field>>,
                prefixes: PtrMut<Chunk>, prefix_stride: u32, products: PtrMut<Chunk>, product_stride: u32,
                out: PtrMut<Chunk>, out_stride: u32,
                total: Ptr<u32>, capacity: u32, per_thread: u32,
            );
        }
    };
}

group! { g1, Fp, "pair_tree_g1",
    cuzk_pair_tree_g1_forward_bases
    cuzk_pair_tree_g1_forward_nodes
    cuzk_pair_tree_g1_invert
    cuzk_pair_tree_g1_backward_bases
    cuzk_pair_tree_g1_backward_nodes
}
group! { g2, Fp2, "pair_tree_g2",
    cuzk_pair_tree_g2_forward_bases
    cuzk_pair_tree_g2_forward_nodes
    cuzk_pair_tree_g2_invert
    cuzk_pair_tree_g2_backward_bases
    cuzk_pair_tree_g2_backward_nodes
}

/// Points at the numbers of the pairs they are sums of, in component planes: `2 LANES` field elements
/// a point.
#[derive(Clone, Copy, Debug)]
pub struct Nodes<'a>(pub DeviceView<'a, Fp>);

impl<'a> Nodes<'a> {
    /// Places, for the group of `F`.
    pub fn places<F: DeviceCurve>(&self) -> usize {
        self.0.len() / (2 * F::LANES)
    }

    pub(super) fn stride<F: DeviceCurve>(&self, entry: &'static str) -> Result<u32> {
        let places = self.places::<F>();
        exactly(entry, "nodes", places * 2 * F::LANES, self.0.len())?;
        at_least(entry, "nodes", 1, places)?;
        at_most(entry, "nodes", MAX_BASES, places)?;
        Ok(places as u32)
    }

    pub(super) fn ptr(&self) -> Ptr<Chunk> {
        Ptr::<Fp>::from(&self.0).cast()
    }
}

/// What the pairs of a round are pairs of.
#[derive(Clone, Copy, Debug)]
pub enum Operands<'a, F: DeviceCurve> {
    /// Points of a table, canonical, on the curve, infinity (0, 0); at most [`MAX_BASES`].
    Bases(DeviceView<'a, Affine<F>>),
    /// What the round before left.
    Nodes(Nodes<'a>),
}

/// The pairs of a round.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// By [`expand`](super::expand) (capacity).
    pub pairs: DeviceView<'a, u64>,
    /// The same (capacity).
    pub owners: DeviceView<'a, u32>,
    /// How many there are (1).
    pub total: DeviceView<'a, u32>,
    /// How many a thread goes through.
    pub per_thread: usize,
}

/// Products that a round of at most `pairs` pairs makes.
pub const fn products_of<F: DeviceCurve>(pairs: usize, per_thread: usize) -> usize {
    let groups = THREADS / F::LANES;
    pairs.div_ceil(groups * per_thread) * groups
}

impl Pairs<'_> {
    /// Compares the lengths; the blocks that have one tile each, and the places of prefixes and products.
    fn check<F: DeviceCurve>(
        &self,
        entry: &'static str,
        prefixes: usize,
        products: usize,
    ) -> Result<(usize, u32, u32)> {
        exactly(entry, "owners", self.pairs.len(), self.owners.len())?;
        at_most(entry, "pairs", MAX_BASES, self.pairs.len())?;
        exactly(entry, "total", 1, self.total.len())?;
        at_least(entry, "per_thread", 1, self.per_thread)?;
        at_most(entry, "per_thread", 1024, self.per_thread)?;
        at_least(entry, "prefixes", self.pairs.len(), prefixes / F::LANES)?;
        let product_count = products_of::<F>(self.pairs.len(), self.per_thread);
        at_least(entry, "products", product_count, products / F::LANES)?;
        at_most(entry, "prefixes", MAX_BASES, prefixes / F::LANES)?;
        at_most(entry, "products", MAX_BASES, products / F::LANES)?;
        let tiles = product_count / (THREADS / F::LANES);
        Ok((
            tiles,
            (prefixes / F::LANES) as u32,
            (products / F::LANES) as u32,
        ))
    }
}

fn planes(view: &DeviceViewMut<'_, Fp>) -> PtrMut<Chunk> {
    PtrMut::<Fp>::from(view).cast()
}

fn entry_of(declaration: &Declaration) -> &'static str {
    declaration.entry
}

/// Multiplies the denominators of the pairs up: the product before each goes to `prefixes`
/// (LANES, capacity or more), those of all pairs of a thread to `products` (LANES, [`products_of`] or
/// more). At most `blocks` blocks.
#[expect(clippy::too_many_arguments, reason = "a kernel's")]
pub fn forward<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    operands: Operands<'_, F>,
    pairs: &Pairs<'_>,
    homes: &mut Homes<'_, F>,
    prefixes: DeviceViewMut<'_, Fp>,
    products: DeviceViewMut<'_, Fp>,
    blocks: usize,
) -> Result<()> {
    let kernels = &F::kernels().rounds;
    let entry = match operands {
        Operands::Bases(_) => entry_of(kernels.forward_bases.declaration()),
        Operands::Nodes(_) => entry_of(kernels.forward_nodes.declaration()),
    };
    let (tiles, prefix_stride, product_stride) =
        pairs.check::<F>(entry, prefixes.len(), products.len())?;
    let shape = Shape::blocks(tiles.min(blocks) as u32, THREADS as u32);
    exactly(entry, "border", 1, homes.border.len())?;
    at_most(entry, "sums", MAX_BASES, homes.sums.len())?;
    let _guards = (
        (pairs.pairs.on(stream)?, pairs.owners.on(stream)?),
        (pairs.total.on(stream)?, prefixes.on(stream)?),
        (homes.sums.on(stream)?, homes.border.on(stream)?),
        products.on(stream)?,
    );
    let capacity = pairs.pairs.len() as u32;
    let sums = homes.sums.len() as u32;
    macro_rules! launch {
        ($kernel:ident, $operands:expr, $bound:expr) => {
            // SAFETY: each array has the places that are passed along, enough for the capacity; views
            // to write alias no other; blocks have 128 threads; the guards keep all.
            unsafe {
                kernels.$kernel.launch(
                    launcher,
                    stream,
                    shape,
                    (
                        $operands,
                        $bound,
                        (&pairs.pairs).into(),
                        (&pairs.owners).into(),
                        (&homes.sums).into(),
                        sums,
                        (&homes.border).into(),
                        planes(&prefixes),
                        prefix_stride,
                        planes(&products),
                        product_stride,
                        (&pairs.total).into(),
                        capacity,
                        pairs.per_thread as u32,
                    ),
                )
            }
        };
    }
    match operands {
        Operands::Bases(points) => {
            at_most(entry, "points", MAX_BASES, points.len())?;
            let _guard = points.on(stream)?;
            launch!(forward_bases, (&points).into(), points.len() as u32)
        }
        Operands::Nodes(nodes) => {
            let stride = nodes.stride::<F>(entry)?;
            let _guard = nodes.0.on(stream)?;
            launch!(forward_nodes, nodes.ptr(), stride)
        }
    }
}

/// Inverts the products of [`forward`] in place; `chain` of them share an inversion. `scratch` is like
/// `products`.
pub fn invert<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    pairs: &Pairs<'_>,
    products: DeviceViewMut<'_, Fp>,
    scratch: DeviceViewMut<'_, Fp>,
    chain: usize,
) -> Result<()> {
    let kernel = F::kernels().rounds.invert;
    let entry = entry_of(kernel.declaration());
    let capacity = pairs.pairs.len();
    let (_, _, product_stride) = pairs.check::<F>(entry, capacity * F::LANES, products.len())?;
    exactly(entry, "scratch", products.len(), scratch.len())?;
    at_least(entry, "chain", 1, chain)?;
    let count = products_of::<F>(capacity, pairs.per_thread);
    let _guards = (
        pairs.total.on(stream)?,
        products.on(stream)?,
        scratch.on(stream)?,
    );
    // SAFETY: both arrays have `product_stride` places, at least as many as there are products; they do
    // not alias; the guards keep them.
    unsafe {
        kernel.launch(
            launcher,
            stream,
            Shape::covering(count.div_ceil(chain), INVERT_THREADS),
            (
                planes(&products),
                planes(&scratch),
                product_stride,
                (&pairs.total).into(),
                capacity as u32,
                pairs.per_thread as u32,
            ),
        )
    }
}

/// Adds the pairs, with what [`forward`] left in `prefixes` and [`invert`] in `inverses`: sums go to
/// `out` (2 LANES, capacity or more), those that are the last of their bucket home.
#[expect(clippy::too_many_arguments, reason = "a kernel's")]
pub fn backward<F: DeviceCurve>(
    launcher: &dyn Launcher,
    stream: &Stream,
    operands: Operands<'_, F>,
    pairs: &Pairs<'_>,
    homes: &mut Homes<'_, F>,
    prefixes: DeviceViewMut<'_, Fp>,
    inverses: DeviceViewMut<'_, Fp>,
    out: DeviceViewMut<'_, Fp>,
) -> Result<()> {
    let kernels = &F::kernels().rounds;
    let entry = match operands {
        Operands::Bases(_) => entry_of(kernels.backward_bases.declaration()),
        Operands::Nodes(_) => entry_of(kernels.backward_nodes.declaration()),
    };
    let (tiles, prefix_stride, product_stride) =
        pairs.check::<F>(entry, prefixes.len(), inverses.len())?;
    let shape = Shape::blocks(tiles as u32, THREADS as u32);
    exactly(entry, "border", 1, homes.border.len())?;
    at_most(entry, "sums", MAX_BASES, homes.sums.len())?;
    let out_places = out.len() / (2 * F::LANES);
    at_least(entry, "out", pairs.pairs.len(), out_places)?;
    at_most(entry, "out", MAX_BASES, out_places)?;
    let _guards = (
        (pairs.pairs.on(stream)?, pairs.owners.on(stream)?),
        (pairs.total.on(stream)?, prefixes.on(stream)?),
        (homes.sums.on(stream)?, homes.border.on(stream)?),
        (inverses.on(stream)?, out.on(stream)?),
    );
    let capacity = pairs.pairs.len() as u32;
    let sums = homes.sums.len() as u32;
    macro_rules! launch {
        ($kernel:ident, $operands:expr, $bound:expr) => {
            // SAFETY: each array has the places that are passed along, enough for the capacity; views
            // to write alias no other; blocks have 128 threads; the guards keep all.
            unsafe {
                kernels.$kernel.launch(
                    launcher,
                    stream,
                    shape,
                    (
                        $operands,
                        $bound,
                        (&pairs.pairs).into(),
                        (&pairs.owners).into(),
                        (&homes.sums).into(),
                        sums,
                        (&homes.border).into(),
                        planes(&prefixes),
                        prefix_stride,
                        planes(&inverses),
                        product_stride,
                        planes(&out),
                        out_places as u32,
                        (&pairs.total).into(),
                        capacity,
                        pairs.per_thread as u32,
                    ),
                )
            }
        };
    }
    match operands {
        Operands::Bases(points) => {
            at_most(entry, "points", MAX_BASES, points.len())?;
            let _guard = points.on(stream)?;
            launch!(backward_bases, (&points).into(), points.len() as u32)
        }
        Operands::Nodes(nodes) => {
            let stride = nodes.stride::<F>(entry)?;
            let _guard = nodes.0.on(stream)?;
            launch!(backward_nodes, nodes.ptr(), stride)
        }
    }
}
