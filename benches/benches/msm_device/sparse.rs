//! Sums over a witness in the shape of a PoRep partition: L, A and B1 in one array of bases, and B2.

use cuzk_field::{Fp, Fp2, Fr, Scalar};
use cuzk_gpu_mem::{Bus, DeviceBuf, Stream};
use cuzk_kernels::Launcher;
use cuzk_msm::device::{
    BaseSet, Batches, DeviceCurve, HostBases, Members, PackTarget, PackedWitness, Patient, Pending,
    Scalars, SparsePlan, StreamedSparsePlan, TermCounts, count_scratch_bytes, count_terms,
    count_terms_in, count_terms_in_scratch_bytes, pack, tiles,
};

use crate::dense::sustained;
use crate::device::Bench;
use crate::values::{of_exponent, points, random_scalar, repeated, room, words};

/// Scratch of one group's sums.
const PLENTY: u64 = 40 << 30;
/// The same where bases are streamed.
const STREAMED: u64 = 8 << 30;

struct Witness {
    bits: DeviceBuf<u64>,
    ranks: DeviceBuf<u32>,
    full: DeviceBuf<Scalar>,
}

impl Witness {
    fn view(&self) -> PackedWitness<'_> {
        PackedWitness {
            bits: self.bits.view(),
            ranks: self.ranks.view(),
            full: self.full.view(),
        }
    }
}

/// A bitmap with its ranks on the device, and on the host.
struct Bitmap {
    words: DeviceBuf<u32>,
    ranks: DeviceBuf<u32>,
    host_words: Vec<u32>,
    host_ranks: Vec<u32>,
    members: usize,
}

impl Bitmap {
    fn new(stream: &Stream, host_words: Vec<u32>) -> Self {
        let mut members = 0;
        let host_ranks: Vec<u32> = host_words
            .iter()
            .map(|word| {
                members += word.count_ones();
                members - word.count_ones()
            })
            .collect();
        let upload = |values: &[u32]| {
            let mut buffer = room(stream, values.len());
            stream.upload_slice(values, &mut buffer).expect("a copy");
            buffer
        };
        Self {
            words: upload(&host_words),
            ranks: upload(&host_ranks),
            host_words,
            host_ranks,
            members: members as usize,
        }
    }

    fn set(&self, first_base: u32) -> BaseSet<'_> {
        BaseSet {
            members: Members::Bitmap {
                words: self.words.view(),
                ranks: self.ranks.view(),
            },
            first_base,
        }
    }

    fn rank(&self, variable: usize) -> Option<usize> {
        let (word, bit) = (self.host_words[variable / 32], variable % 32);
        let below = word & ((1 << bit) - 1);
        let rank = (self.host_ranks[variable / 32] + below.count_ones()) as usize;
        (word >> bit & 1 == 1).then_some(rank)
    }
}

fn full_of(values: &[Scalar]) -> usize {
    let full = values.iter().filter(|v| !v.is_zero() && !v.is_one());
    full.count()
}

/// With bases on the device, and with `is_streamed` in pinned memory, too.
pub(crate) fn porep(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    log_n: u32,
    is_streamed: bool,
) {
    let n = 1_usize << log_n;
    let mut word = words(37);
    let (scalars, values) = repeated(stream, n, || match word() % 1000 {
        0..515 => Scalar::ZERO,
        515..992 => Scalar::ONE,
        _ => random_scalar(&mut word),
    });
    let period = values.len();
    let words_len = n.div_ceil(32);
    let full_len = n / period * full_of(&values) + full_of(&values[..n % period]);
    let mut witness = Witness {
        bits: room(stream, words_len),
        ranks: room(stream, words_len),
        full: room(stream, full_len),
    };
    let mut full_count = room::<u32>(stream, 1);
    let mut scratch = room::<u32>(stream, tiles(n));
    let mut classify = || {
        let target = PackTarget {
            bits: witness.bits.view_mut(),
            ranks: witness.ranks.view_mut(),
            full: witness.full.view_mut(),
            full_count: full_count.view_mut(),
        };
        let scalars = Scalars::Canonical(scalars.view());
        pack(launcher, stream, scalars, target, scratch.view_mut()).expect("a launch");
    };
    classify();
    let begin = stream.record_timed().expect("an event");
    classify();
    let end = stream.record_timed().expect("an event");
    end.wait().expect("the kernels");
    let time = end.since(&begin).expect("both are reached");
    bench.row(
        format!("2^{log_n} values packed"),
        time.as_secs_f64() * 1e3,
        "ms",
    );

    // A: 99.7% of the variables; B: 25.4%, of those of full size 73%; L: all but the first 328.
    let mut word = words(41);
    let mut bitmap = |member: &mut dyn FnMut(usize, u64) -> bool| {
        let words = (0..words_len).map(|at| {
            (0..32).fold(0_u32, |bits, bit| {
                let is_member = member(at * 32 + bit, word() % 1000);
                bits | u32::from(is_member) << bit
            })
        });
        Bitmap::new(stream, words.collect())
    };
    let a = bitmap(&mut |_, chance| chance < 997);
    let b = bitmap(&mut |i, chance| {
        let value = &values[i % period];
        let is_full = !value.is_zero() && !value.is_one();
        chance < if is_full { 730 } else { 250 }
    });
    let l = bitmap(&mut |i, _| i >= 328.min(n / 64));

    let sets = [
        a.set(0),
        b.set(a.members as u32),
        l.set((a.members + b.members) as u32),
    ];
    let (g1_bases, g1_exponents) =
        points::<Fp>(launcher, stream, a.members + b.members + l.members);
    let (g2_bases, g2_exponents) = points::<Fp2>(launcher, stream, b.members);
    let sum = |bitmap: &Bitmap, first: usize, exponents: &[Fr]| {
        crate::values::sum_of(n, |i| {
            let value = &values[i % period];
            match bitmap.rank(i) {
                Some(_) if value.is_zero() => Fr::from(0),
                Some(rank) if value.is_one() => exponents[(first + rank) % exponents.len()],
                Some(rank) => Fr::from(*value) * exponents[(first + rank) % exponents.len()],
                None => Fr::from(0),
            }
        })
    };
    let g1_expected = [
        of_exponent::<Fp>(sum(&a, 0, &g1_exponents)),
        of_exponent(sum(&b, a.members, &g1_exponents)),
        of_exponent(sum(&l, a.members + b.members, &g1_exponents)),
    ];
    let g2_expected = [of_exponent::<Fp2>(sum(&b, 0, &g2_exponents))];

    let g2_sets = [b.set(0)];
    let g1_counts = counts(bench, launcher, stream, &witness, &sets);
    let g2_counts = [g1_counts[1]];
    println!("    A, B, L: {g1_counts:?}");
    let info = &bench.device.info().clone();
    let g1_plan = SparsePlan::<Fp>::new(info, n, &g1_counts, PLENTY).expect("a plan");
    let g2_plan = SparsePlan::<Fp2>::new(info, n, &g2_counts, PLENTY).expect("a plan");
    let mut g1_scratch = room::<u8>(stream, g1_plan.footprint().device as usize);
    let mut g2_scratch = room::<u8>(stream, g2_plan.footprint().device as usize);
    let host = bench.device.host().clone();
    let g1_run = |scratch: &mut DeviceBuf<u8>| {
        let result = host.pinned("sums", g1_plan.result_len()).expect("memory");
        let (bases, scratch) = (g1_bases.view(), scratch.view_mut());
        let witness = witness.view();
        let pending = g1_plan.run(launcher, stream, bases, witness, &sets, scratch, result);
        pending.expect("sums")
    };
    let g2_run = |scratch: &mut DeviceBuf<u8>| {
        let result = host.pinned("sums", g2_plan.result_len()).expect("memory");
        let (bases, scratch) = (g2_bases.view(), scratch.view_mut());
        let witness = witness.view();
        let pending = g2_plan.run(launcher, stream, bases, witness, &g2_sets, scratch, result);
        pending.expect("sums")
    };
    let name = format!("PoRep shape 2^{log_n}");
    report(bench, &format!("{name}: A, B1, L"), &g1_expected, || {
        g1_run(&mut g1_scratch)
    });
    report(bench, &format!("{name}: B2"), &g2_expected, || {
        g2_run(&mut g2_scratch)
    });
    let (time, clock) = sustained(bench, &g2_expected, 1.0, || {
        let _ = g1_run(&mut g1_scratch);
        g2_run(&mut g2_scratch)
    });
    bench.row(format!("{name}: all four"), time, "ms");
    println!(
        "    {} and {} MiB of scratch; {clock}",
        g1_plan.footprint().device >> 20,
        g2_plan.footprint().device >> 20
    );
    if !is_streamed {
        return;
    }
    let name = format!("{name}, bases streamed");
    let at = (info, n);
    let g1_batches = Batches::sparse::<Fp>(g1_bases.len(), STREAMED);
    let g2_batches = Batches::sparse::<Fp2>(g2_bases.len(), STREAMED);
    streamed(
        bench,
        launcher,
        stream,
        at,
        &name,
        g1_batches,
        &witness,
        &sets,
        &g1_bases,
        &g1_expected,
    );
    streamed(
        bench,
        launcher,
        stream,
        at,
        &name,
        g2_batches,
        &witness,
        &g2_sets,
        &g2_bases,
        &g2_expected,
    );
}

/// The same with the bases in pinned memory.
#[expect(clippy::too_many_arguments, reason = "a bench")]
fn streamed<F: DeviceCurve>(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    (info, variables): (&cuzk_gpu_mem::DeviceInfo, usize),
    name: &str,
    batches: Batches,
    witness: &Witness,
    sets: &[BaseSet<'_>],
    bases: &DeviceBuf<cuzk_field::Affine<F>>,
    expected: &[cuzk_field::Affine<F>],
) {
    let host = bench.device.host().clone();
    let pinned = host.pinned("bases", bases.len()).expect("host memory");
    let pinned = stream.download(bases, pinned).expect("a copy");
    let pinned = pinned.wait().expect("a copy");
    let witnesses = [witness.view()];
    let bytes = count_terms_in_scratch_bytes(&batches, sets.len());
    let mut scratch = room::<u8>(stream, bytes);
    let counts = host.pinned("counts", 2 * sets.len() * batches.len());
    let counts = count_terms_in(
        launcher,
        stream,
        &batches,
        &witnesses,
        sets,
        scratch.view_mut(),
        counts.expect("memory"),
    );
    let counts = counts.expect("a launch").wait().expect("counts");
    let plan = StreamedSparsePlan::<F>::new(info, variables, &batches, 1, &counts, STREAMED);
    let plan = plan.expect("a plan");
    let mut scratch = room::<u8>(stream, plan.footprint().device as usize);
    let uploads = bench.device.stream("uploads").expect("a stream");
    let (time, _) = sustained(bench, expected, 1.0, || {
        let result = host.pinned("sums", plan.result_len()).expect("memory");
        let scratch = scratch.view_mut();
        let run = uploads.scope(|scope| {
            let bases = HostBases {
                pieces: &[&pinned[..]],
                uploads: scope,
                pace: &Patient,
                bus: &Bus::new(),
            };
            plan.run(launcher, stream, bases, &witnesses, sets, scratch, result)
        });
        run.expect("copies").expect("sums")
    });
    bench.row(
        format!("{name}, {} sets in {}", sets.len(), F::GROUP),
        time,
        "ms",
    );
    println!(
        "    {} batches, {} MiB of bases, {} MiB of scratch",
        batches.len(),
        size_of_val(&pinned[..]) >> 20,
        plan.footprint().device >> 20
    );
}

fn report<F: DeviceCurve>(
    bench: &mut Bench,
    name: &str,
    expected: &[cuzk_field::Affine<F>],
    run: impl FnMut() -> Pending<F>,
) {
    let (time, _) = sustained(bench, expected, 1.0, run);
    bench.row(name, time, "ms");
}

fn counts(
    bench: &Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    witness: &Witness,
    sets: &[BaseSet<'_>],
) -> Vec<TermCounts> {
    let mut scratch = room::<u8>(stream, count_scratch_bytes(sets.len()));
    let host = bench.device.host();
    let pinned = host.pinned("counts", 2 * sets.len()).expect("memory");
    let scratch = scratch.view_mut();
    count_terms(launcher, stream, witness.view(), sets, scratch, pinned)
        .expect("a launch")
        .wait()
        .expect("counts")
}
