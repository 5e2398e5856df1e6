//! A circuit proved by cuzk and by bellperson.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bellpepper_core::Circuit;
use bellperson::groth16::{self, Parameters, PreparedVerifyingKey, Proof};
use blstrs::{Bls12, Scalar};
use cuzk_bellman::{Backend, Histogram, Job, Shape, bellpepper, bellperson as ours, to_bytes};
use cuzk_groth16::synth::{self, KeyFamily};
use cuzk_groth16::{Blinding, ProveOptions, Proved, Prover};
use ff::Field as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use rustix::time::{ClockId, clock_gettime};

use crate::args::Args;
use crate::devices;

pub type Proofs = Vec<Proof<Bls12>>;

/// What Filecoin's own code says of proofs of all partitions.
pub type Verify = dyn Fn(Proofs, &PreparedVerifyingKey<Bls12>) -> Result<bool>;

pub struct Case<C> {
    pub name: &'static str,
    pub blank: C,
    pub partitions: Vec<Partition<C>>,
    pub verify: Box<Verify>,
}

pub struct Partition<C> {
    pub circuit: C,
    /// Without the constant ONE.
    pub public: Vec<Scalar>,
}

/// The blinding of every partition.
pub struct Factors {
    pub r: Vec<Scalar>,
    pub s: Vec<Scalar>,
}

impl Factors {
    fn new(round: u64, partitions: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1000 + round);
        let mut draw = || (0..partitions).map(|_| Scalar::random(&mut rng)).collect();
        Self {
            r: draw(),
            s: draw(),
        }
    }

    fn options(&self, partition: usize) -> Result<ProveOptions> {
        let given = |value: &Scalar| {
            cuzk_field::Scalar::from_le_bytes(&value.to_bytes_le()).context("an element below r")
        };
        let (r, s) = (given(&self.r[partition])?, given(&self.s[partition])?);
        Ok(ProveOptions::default().with_blinding(Blinding::from_caller(r, s)))
    }
}

pub fn run<C>(case: &Case<C>, args: &Args) -> Result<()>
where
    C: Circuit<Scalar> + Clone + Send,
{
    println!("{}", case.name);
    let shape = record(case)?;
    if args.histogram {
        return Ok(());
    }
    let parameters = parameters(case, &shape, args)?;
    let (key, time) = timed(|| ours::proving_key(&parameters));
    let key = key?;
    println!("  key taken over by cuzk: {time}");

    let prover = Prover::new(&key)?;
    let contest = |gpu: Option<&dyn Backend>| {
        let mut provers: Vec<(_, &dyn Backend)> = vec![("cuzk, verified", &prover)];
        provers.extend(gpu.map(|gpu| ("cuzk on the GPU, verified", gpu)));
        let contest = Contest {
            case,
            shape: &shape,
            parameters: &parameters,
            verifying_key: groth16::prepare_verifying_key(&parameters.vk),
            provers,
            rounds: args.rounds,
        };
        contest.run()
    };
    let last = if args.on_gpu {
        devices::with_gpu(&key, shape.r1cs(), |gpu| contest(Some(gpu)))
    } else {
        contest(None)
    }?;
    #[cfg(feature = "dropin")]
    crate::dropin::run(case, &parameters, last)?;
    #[cfg(not(feature = "dropin"))]
    drop(last);
    Ok(())
}

/// The proofs of a round and what they were blinded with.
pub struct Round {
    pub factors: Factors,
    pub proofs: Vec<u8>,
}

/// Rounds in which everybody proves all partitions with the same r and s.
struct Contest<'a, C> {
    case: &'a Case<C>,
    shape: &'a Shape,
    parameters: &'a Parameters<Bls12>,
    verifying_key: PreparedVerifyingKey<Bls12>,
    provers: Vec<(&'static str, &'a dyn Backend)>,
    rounds: usize,
}

impl<C: Circuit<Scalar> + Clone + Send> Contest<'_, C> {
    /// The last round.
    fn run(&self) -> Result<Round> {
        let mut times = vec![Vec::new(); self.provers.len() + 1];
        let mut stages = vec![Vec::new(); self.provers.len()];
        let mut last = None;
        for round in 0..self.rounds {
            let factors = Factors::new(round as u64, self.case.partitions.len());
            let circuits = || self.case.partitions.iter().map(|part| part.circuit.clone());
            let (all, r, s) = (circuits().collect(), factors.r.clone(), factors.s.clone());
            let (theirs, time) = timed(|| groth16::create_proof_batch(all, self.parameters, r, s));
            let expected = bytes(&theirs?)?;
            times[0].push(time);
            print!("  round {round}: bellperson {time}");
            for (i, &(name, backend)) in self.provers.iter().enumerate() {
                let options = (0..self.case.partitions.len())
                    .map(|k| factors.options(k))
                    .collect::<Result<Vec<_>>>()?;
                let mut jobs = circuits().zip(options).map(|(circuit, options)| {
                    let witness = bellpepper::witness(self.shape, circuit)?;
                    Ok(Job { witness, options })
                });
                let prove = || backend.prove_all(self.shape.r1cs(), &mut jobs);
                let (proved, time) = timed(prove);
                let proved = proved?;
                times[1 + i].push(time);
                stages[i].extend(proved.iter().map(|proved| proved.stages.total()));
                print!("; {name} {time}");
                ensure!(
                    to_bytes(&proved) == expected,
                    "{name}: other proofs than bellperson's"
                );
                self.check(&proved)?;
            }
            println!();
            let proofs = expected;
            last = Some(Round { factors, proofs });
        }
        println!(
            "  {} times {} proofs of each byte for byte equal for equal r and s, and valid for storage-proofs",
            self.rounds,
            self.case.partitions.len()
        );
        println!("  medians, synthesis to proof, {} threads:", threads()?);
        println!("    bellperson 0.26: {}", median(&times[0]));
        for (i, (name, _)) in self.provers.iter().enumerate() {
            println!(
                "    {name}: {}; a proof from its witness {:.2?}",
                median(&times[1 + i]),
                middle(stages[i].clone())
            );
        }
        last.context("no rounds")
    }

    /// Public values, and what Filecoin's code says of the proofs.
    fn check(&self, proved: &[Proved]) -> Result<()> {
        ensure!(proved.len() == self.case.partitions.len());
        for (proved, partition) in proved.iter().zip(&self.case.partitions) {
            let expected = partition.public.iter().map(Scalar::to_bytes_le);
            let found = proved.public_values.iter();
            let found = found.map(|value| value.to_le_bytes());
            ensure!(found.eq(expected), "the public values differ");
        }
        let proofs = proved
            .iter()
            .map(|proved| ours::to_proof(&proved.proof))
            .collect::<Result<Vec<_>, _>>()?;
        ensure!(
            (self.case.verify)(proofs, &self.verifying_key)?,
            "storage-proofs refuses the proofs"
        );
        Ok(())
    }
}

fn threads() -> Result<usize> {
    Ok(std::thread::available_parallelism()?.get())
}

/// Records the circuit and says what it and its witnesses are made of.
fn record<C: Circuit<Scalar> + Clone>(case: &Case<C>) -> Result<Shape> {
    let (shape, time) = timed(|| bellpepper::record(case.blank.clone()));
    let shape = shape?;
    let r1cs = shape.r1cs();
    println!(
        "  recorded in {time}: {} constraints, {} variables, {} inputs, domain {}; {} partitions",
        r1cs.num_constraints(),
        r1cs.num_variables,
        r1cs.num_inputs,
        r1cs.domain_size(),
        case.partitions.len()
    );
    for partition in &case.partitions {
        let (witness, time) = timed(|| bellpepper::witness(&shape, partition.circuit.clone()));
        let histogram = Histogram::of(&witness?);
        let share = |count: usize| 100.0 * count as f64 / histogram.total() as f64;
        println!(
            "  witness in {time}: {:.1} % zero, {:.1} % one, {:.1} % below 2^64, {:.1} % full",
            share(histogram.zeros),
            share(histogram.ones),
            share(histogram.small),
            share(histogram.full)
        );
    }
    Ok(shape)
}

fn parameters<C>(case: &Case<C>, shape: &Shape, args: &Args) -> Result<Parameters<Bls12>>
where
    C: Circuit<Scalar> + Clone + Send,
{
    if let Some(path) = args.params.as_ref().filter(|path| path.exists()) {
        let read = || Parameters::read(BufReader::new(File::open(path)?), false);
        let (parameters, time) = timed(read);
        println!("  parameters read by bellperson, unchecked: {time}");
        return parameters.with_context(|| path.display().to_string());
    }
    let (parameters, time) = if args.key_by_cuzk {
        timed(|| made_by_cuzk(shape))
    } else {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let blank = case.blank.clone();
        timed(|| Ok(groth16::generate_random_parameters(blank, &mut rng)?))
    };
    let parameters = parameters?;
    let who = if args.key_by_cuzk {
        "cuzk"
    } else {
        "bellperson"
    };
    println!("  parameters made by {who}: {time}");
    if let Some(path) = &args.params {
        let partial = path.with_extension("partial");
        let mut file = BufWriter::new(File::create(&partial)?);
        parameters.write(&mut file)?;
        file.flush()?;
        fs::rename(&partial, path)?;
    }
    Ok(parameters)
}

/// Faster than bellperson's generator. The secrets follow from a seed here as there.
fn made_by_cuzk(shape: &Shape) -> Result<Parameters<Bls12>> {
    let key = synth::proving_key(shape.r1cs(), KeyFamily::Bellman, 7)?;
    let mut bytes = Vec::new();
    cuzk_formats::bellman::write_params(&key, &mut bytes)?;
    Ok(Parameters::read(&bytes[..], false)?)
}

fn bytes(proofs: &[Proof<Bls12>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for proof in proofs {
        proof.write(&mut bytes)?;
    }
    Ok(bytes)
}

/// How long something took.
#[derive(Clone, Copy, Default)]
pub struct Took {
    wall: Duration,
    /// Of all threads: what a machine shared with others leaves comparable.
    cpu: Duration,
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2?} ({:.2?} of CPU)", self.wall, self.cpu)
    }
}

pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (start, cpu) = (Instant::now(), cpu_time());
    let result = work();
    let took = Took {
        wall: start.elapsed(),
        cpu: cpu_time().saturating_sub(cpu),
    };
    (result, took)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The middle ones, each for itself.
fn median(times: &[Took]) -> Took {
    Took {
        wall: middle(times.iter().map(|took| took.wall).collect()),
        cpu: middle(times.iter().map(|took| took.cpu).collect()),
    }
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
