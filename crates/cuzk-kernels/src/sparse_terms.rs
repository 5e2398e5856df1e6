//! `kernels/src/sparse_terms.cu`: witnesses of which most values are zero or one.

use std::ops::Range;

use cuzk_field::{Fr, Scalar};
use cuzk_gpu_mem::{DeviceView, DeviceViewMut, Stream};

use crate::bucket_sort::Scalars;
use crate::declare::kernels;
use crate::device_type::DeviceType;
use crate::error::Result;
use crate::launcher::{Launcher, Shape};
use crate::lengths::exactly;
use crate::witness::{PackedWitness, WORD};
use crate::{Ptr, PtrMut};

/// Threads of a block, and words of a tile.
const THREADS: u32 = 256;

/// Variables of a tile.
pub const TILE: usize = WORD * THREADS as usize;

kernels! {
    module "sparse_terms";
    /// See [`pack`].
    CLASSIFY = cuzk_sparse_terms_classify[THREADS](
        scalars: Ptr<Fr>, form: u32, count: u32, bits: PtrMut<u64>, counts: PtrMut<u32>,
    );
    /// See [`pack`] and [`count`].
    TILE_STARTS = cuzk_sparse_terms_tile_starts[1024](counts: PtrMut<u32>, totals: PtrMut<u32>, tiles: u32);
    /// See [`pack`].
    PACK = cuzk_sparse_terms_pack[THREADS](
        scalars: Ptr<Fr>, form: u32, count: u32, bits: Ptr<u64>, starts: Ptr<u32>, ranks: PtrMut<u32>,
        full: PtrMut<Fr>, capacity: u32,
    );
    /// See [`count`].
    COUNT = cuzk_sparse_terms_count[THREADS](
        bits: Ptr<u64>, words: u32, density: Ptr<u32>, density_ranks: Ptr<u32>, first: u32, end: u32,
        first_rank: u32, end_rank: u32, counts: PtrMut<u32>,
    );
    /// See [`count_batches`].
    COUNT_BATCHES = cuzk_sparse_terms_count_batches[THREADS](
        bits: Ptr<u64>, words: u32, density: Ptr<u32>, density_ranks: Ptr<u32>, first: u32, end: u32,
        bounds: RankBounds, batches: u32, stride: u32, totals: PtrMut<u32>,
    );
    /// See [`list`].
    LIST = cuzk_sparse_terms_list[THREADS](
        bits: Ptr<u64>, ranks: Ptr<u32>, full: Ptr<Fr>, full_len: u32, words: u32, density: Ptr<u32>,
        density_ranks: Ptr<u32>, first: u32, end: u32, first_rank: u32, end_rank: u32, first_base: u32,
        starts: Ptr<u32>, ones: PtrMut<u32>, ones_len: u32, rest_bases: PtrMut<u32>, rest_scalars: PtrMut<Fr>,
        rest_len: u32,
    );
    /// See [`ones_offsets`].
    ONES_OFFSETS = cuzk_sparse_terms_ones_offsets[32](
        totals: Ptr<u32>, offsets: PtrMut<u32>, sets: u32,
    );
}

/// Which variables have a base in a set.
#[derive(Clone, Debug)]
pub enum Members<'a> {
    /// These.
    Range(Range<usize>),
    /// Variable 32 i + k where bit k of `words[i]` is set.
    Bitmap {
        /// One bit a variable, as many words as the witness has.
        words: DeviceView<'a, u32>,
        /// How many bits are set before each word.
        ranks: DeviceView<'a, u32>,
    },
}

/// A list of bases, one for each member, in the order of the variables.
#[derive(Clone, Debug)]
pub struct BaseSet<'a> {
    /// The variables with a base.
    pub members: Members<'a>,
    /// Where the list begins in the array of bases it is part of.
    pub first_base: u32,
}

/// The words of a bitmap of members, for [`Members::Bitmap`], and their ranks.
pub fn bitmap(members: impl IntoIterator<Item = bool>) -> (Vec<u32>, Vec<u32>) {
    let mut words = Vec::new();
    let mut ranks = Vec::new();
    let mut rank = 0;
    for (variable, is_member) in members.into_iter().enumerate() {
        if variable.is_multiple_of(WORD) {
            words.push(0);
            ranks.push(rank);
        }
        if is_member && let Some(word) = words.last_mut() {
            *word |= 1 << (variable % WORD);
            rank += 1;
        }
    }
    (words, ranks)
}

/// Tiles of that many variables.
pub fn tiles(variables: usize) -> usize {
    variables.div_ceil(TILE)
}

/// Where a packed witness goes. See [`PackedWitness`].
#[derive(Debug)]
pub struct PackTarget<'a> {
    /// One word for 32 scalars.
    pub bits: DeviceViewMut<'a, u64>,
    /// As many.
    pub ranks: DeviceViewMut<'a, u32>,
    /// As long as the caller thinks fit: values beyond are left out, but counted.
    pub full: DeviceViewMut<'a, Scalar>,
    /// One word: how many values are neither zero nor one.
    pub full_count: DeviceViewMut<'a, u32>,
}

/// Packs scalars that are not recoded. `scratch` has a word for each of [`tiles`].
pub fn pack(
    launcher: &dyn Launcher,
    stream: &Stream,
    scalars: Scalars<'_>,
    target: PackTarget<'_>,
    scratch: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = CLASSIFY.declaration().entry;
    let PackTarget {
        bits,
        ranks,
        full,
        full_count,
    } = target;
    let count = scalars.len();
    exactly(entry, "bits", count.div_ceil(WORD), bits.len())?;
    exactly(entry, "ranks", bits.len(), ranks.len())?;
    exactly(entry, "full_count", 1, full_count.len())?;
    exactly(entry, "scratch", tiles(count), scratch.len())?;
    if count > 1 << 31 {
        return exactly(entry, "scalars", 1 << 31, count);
    }
    let Some((words, form)) = scalars.elements() else {
        return exactly(entry, "recoded scalars", 0, count);
    };
    let _guards = (
        scalars.on(stream)?,
        bits.on(stream)?,
        ranks.on(stream)?,
        full.on(stream)?,
        full_count.on(stream)?,
        scratch.on(stream)?,
    );
    let blocks = Shape::blocks(tiles(count) as u32, THREADS);
    let capacity = full.len().min(u32::MAX as usize) as u32;
    // SAFETY: a word of bits and ranks for 32 scalars, a count a tile; what would lie beyond the
    // capacity is not written; views to write alias no other; the guards keep all buffers.
    unsafe {
        CLASSIFY.launch(
            launcher,
            stream,
            blocks,
            (words, form, count as u32, (&bits).into(), (&scratch).into()),
        )?;
        TILE_STARTS.launch(
            launcher,
            stream,
            Shape::blocks(1, 1024),
            ((&scratch).into(), (&full_count).into(), tiles(count) as u32),
        )?;
        PACK.launch(
            launcher,
            stream,
            blocks,
            (
                words,
                form,
                count as u32,
                (&bits.as_view()).into(),
                (&scratch.as_view()).into(),
                (&ranks).into(),
                PtrMut::elements(&full),
                capacity,
            ),
        )
    }
}

/// Bitmap, ranks, first and end of a set, as the kernels take them, its lengths compared.
fn members(
    entry: &'static str,
    set: &BaseSet<'_>,
    words: usize,
) -> Result<(Ptr<u32>, Ptr<u32>, u32, u32)> {
    match &set.members {
        Members::Range(range) => {
            if range.start > range.end || range.end > words * WORD {
                exactly(entry, "members", words * WORD, range.end)?;
            }
            Ok((Ptr::NULL, Ptr::NULL, range.start as u32, range.end as u32))
        }
        Members::Bitmap {
            words: density,
            ranks,
        } => {
            exactly(entry, "density", words, density.len())?;
            exactly(entry, "ranks of the density", words, ranks.len())?;
            Ok((density.into(), ranks.into(), 0, (words * WORD) as u32))
        }
    }
}

/// The ranks of members whose bases lie in a range of the array.
fn ranks_of(set: &BaseSet<'_>, bases: &Range<u32>) -> (u32, u32) {
    let rank = |base: u32| base.saturating_sub(set.first_base);
    (rank(bases.start), rank(bases.end))
}

/// The range of all bases, for [`count`] and [`list`].
pub const ALL_BASES: Range<u32> = 0..u32::MAX;

fn members_on<'a>(
    set: &BaseSet<'a>,
    stream: &Stream,
) -> Result<Option<(cuzk_gpu_mem::OnStream<'a>, cuzk_gpu_mem::OnStream<'a>)>> {
    Ok(match &set.members {
        Members::Range(_) => None,
        Members::Bitmap { words, ranks } => Some((words.on(stream)?, ranks.on(stream)?)),
    })
}

/// `totals` = how many of the set's variables are one, and how many neither zero nor one, as far as their bases
/// lie in the range `bases` of the array; `starts` is what [`list`] wants, two words for each of [`tiles`].
pub fn count(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    set: &BaseSet<'_>,
    bases: &Range<u32>,
    starts: DeviceViewMut<'_, u32>,
    totals: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = COUNT.declaration().entry;
    witness.check(entry, 0)?;
    let words = witness.bits.len();
    let tile_count = tiles(words * WORD);
    exactly(entry, "starts", 2 * tile_count, starts.len())?;
    exactly(entry, "totals", 2, totals.len())?;
    let (density, density_ranks, first, end) = members(entry, set, words)?;
    let (first_rank, end_rank) = ranks_of(set, bases);
    let _guards = (
        witness.bits.on(stream)?,
        members_on(set, stream)?,
        starts.on(stream)?,
        totals.on(stream)?,
    );
    // SAFETY: bits and density have `words` words; two counts a tile; views to write alias no other;
    // the guards keep all buffers.
    unsafe {
        COUNT.launch(
            launcher,
            stream,
            Shape::blocks(tile_count as u32, THREADS),
            (
                (&witness.bits).into(),
                words as u32,
                density,
                density_ranks,
                first,
                end,
                first_rank,
                end_rank,
                (&starts).into(),
            ),
        )?;
        TILE_STARTS.launch(
            launcher,
            stream,
            Shape::blocks(2, 1024),
            ((&starts).into(), (&totals).into(), tile_count as u32),
        )
    }
}

/// Batches that one launch counts.
const BATCHES: usize = 63;

/// `cuzk::RankBounds`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RankBounds([u32; BATCHES + 1]);

// SAFETY: `repr(C)`, plain data without padding, as in kernels/include/cuzk/witness.cuh.
unsafe impl DeviceType for RankBounds {
    fn c_type() -> String {
        "cuzk::RankBounds".to_owned()
    }
}

/// Adds to `totals[stride * k]` how many of the set's variables with bases from `bounds[k]` to `bounds[k + 1]` are one, and to
/// the element behind it how many are neither zero nor one; `bounds` rise.
pub fn count_batches(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    set: &BaseSet<'_>,
    bounds: &[u32],
    stride: usize,
    mut totals: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = COUNT_BATCHES.declaration().entry;
    witness.check(entry, 0)?;
    let words = witness.bits.len();
    let (density, density_ranks, first, end) = members(entry, set, words)?;
    let batches = bounds.len().saturating_sub(1);
    if batches == 0 || words == 0 {
        return Ok(());
    }
    let rising = bounds.is_sorted_by(|a, b| a <= b);
    exactly(entry, "bounds that rise", 1, usize::from(rising))?;
    exactly(entry, "elements of a batch's totals", stride.max(2), stride)?;
    exactly(entry, "totals", stride * (batches - 1) + 2, totals.len())?;
    let _guards = (
        witness.bits.on(stream)?,
        members_on(set, stream)?,
        totals.on(stream)?,
    );
    for begin in (0..batches).step_by(BATCHES) {
        let count = BATCHES.min(batches - begin);
        let mut ranks = RankBounds([0; BATCHES + 1]);
        for (rank, base) in ranks.0.iter_mut().zip(&bounds[begin..=begin + count]) {
            *rank = base.saturating_sub(set.first_base);
        }
        let totals = totals.reborrow().slice(stride * begin..);
        // SAFETY: bits and density have `words` words; `totals` has two counts every `stride` elements for each batch; the
        // guards keep all buffers.
        unsafe {
            COUNT_BATCHES.launch(
                launcher,
                stream,
                Shape::blocks(tiles(words * WORD) as u32, THREADS),
                (
                    (&witness.bits).into(),
                    words as u32,
                    density,
                    density_ranks,
                    first,
                    end,
                    ranks,
                    count as u32,
                    stride as u32,
                    (&totals).into(),
                ),
            )?;
        }
    }
    Ok(())
}

/// Where the terms of a set go, in the order of the variables. Terms beyond the lengths are left out.
#[derive(Debug)]
pub struct ListTarget<'a> {
    /// Bases of variables that are one.
    pub ones: DeviceViewMut<'a, u32>,
    /// Bases of variables that are neither zero nor one.
    pub rest_bases: DeviceViewMut<'a, u32>,
    /// Their values.
    pub rest_scalars: DeviceViewMut<'a, Scalar>,
}

/// Lists the terms of a set, counted before for the same range of bases. Bases are numbered from the start of the range.
pub fn list(
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: PackedWitness<'_>,
    set: &BaseSet<'_>,
    bases: &Range<u32>,
    starts: DeviceView<'_, u32>,
    target: ListTarget<'_>,
) -> Result<()> {
    let entry = LIST.declaration().entry;
    witness.check(entry, 0)?;
    let words = witness.bits.len();
    let tile_count = tiles(words * WORD);
    let ListTarget {
        ones,
        rest_bases,
        rest_scalars,
    } = target;
    exactly(entry, "starts", 2 * tile_count, starts.len())?;
    exactly(entry, "rest_scalars", rest_bases.len(), rest_scalars.len())?;
    let (density, density_ranks, first, end) = members(entry, set, words)?;
    let (first_rank, end_rank) = ranks_of(set, bases);
    let _guards = (
        witness.bits.on(stream)?,
        witness.ranks.on(stream)?,
        witness.full.on(stream)?,
        members_on(set, stream)?,
        (starts.on(stream)?, ones.on(stream)?),
        (rest_bases.on(stream)?, rest_scalars.on(stream)?),
    );
    // SAFETY: bits, ranks and the set's bitmap have `words` words; two starts a tile; nothing is read
    // or written beyond the lengths given; views to write alias no other; the guards keep all buffers.
    unsafe {
        LIST.launch(
            launcher,
            stream,
            Shape::blocks(tile_count as u32, THREADS),
            (
                (&witness.bits).into(),
                (&witness.ranks).into(),
                Ptr::elements(&witness.full),
                witness.full_count(),
                words as u32,
                density,
                density_ranks,
                first,
                end,
                first_rank,
                end_rank,
                set.first_base.wrapping_sub(bases.start),
                (&starts).into(),
                (&ones).into(),
                ones.len().min(u32::MAX as usize) as u32,
                (&rest_bases).into(),
                PtrMut::elements(&rest_scalars),
                rest_bases.len().min(u32::MAX as usize) as u32,
            ),
        )
    }
}

/// `offsets[set]` = the ones of the sets before, for one more set than there are; `totals` as [`count`] gives them, set
/// after set.
pub fn ones_offsets(
    launcher: &dyn Launcher,
    stream: &Stream,
    totals: DeviceView<'_, u32>,
    offsets: DeviceViewMut<'_, u32>,
) -> Result<()> {
    let entry = ONES_OFFSETS.declaration().entry;
    let sets = totals.len() / 2;
    exactly(entry, "offsets", sets + 1, offsets.len())?;
    let _guards = (totals.on(stream)?, offsets.on(stream)?);
    // SAFETY: two totals a set, and an offset more than sets; the guards keep both buffers.
    unsafe {
        ONES_OFFSETS.launch(
            launcher,
            stream,
            Shape::blocks(1, 32),
            ((&totals).into(), (&offsets).into(), sets as u32),
        )
    }
}
