//! `cargo xtask bench prove`: whole proofs against `ark-groth16` 0.6, the same circuit, key, r, s,
//! threads and machine, interleaved in one run.
//!
//! Both provers get the constraint matrices and the witness in memory, which is the form that is
//! fastest for `ark-groth16`; the circuit adapters of both, which synthesise first, are timed as
//! well. The proofs are compared byte for byte. Peak memory is read in a process of its own for each
//! prover, which holds the key and the circuit in that prover's own form alone.
#![allow(clippy::print_stdout, reason = "a bench reports on standard output")]

use std::process::Command;
use std::time::{Duration, Instant};

use ark_bls12_381::{Bls12_381, Fr as ArkFr};
use ark_groth16::Groth16;
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, Matrix as ArkMatrix,
    SynthesisError, Variable,
};
use cuzk_field::{Fr, Scalar};
use cuzk_formats::{Matrix, ProvingKey, R1cs, Witness};
use cuzk_groth16::ark::to_ark_proof;
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, KeyRef, ProveOptions, Prover, Stages};

type ArkKey = ark_groth16::ProvingKey<Bls12_381>;

const USAGE: &str = "\
options: --log-n 16,18     sizes
         --shape dense,porep
         --runs 3          proofs of each prover a row, interleaved; the median is printed
         --threads 2       of both provers; all cores by default
         --stages          where the time of the last proof of each row went";

struct Options {
    log_sizes: Vec<u32>,
    shapes: Vec<Shape>,
    runs: usize,
    threads: usize,
    stages: bool,
    /// In a child process: the prover whose memory is measured.
    measure: Option<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = parse(std::env::args().skip(1))?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build_global()?;
    if let Some(prover) = &options.measure {
        return measure(&options, prover);
    }
    println!(
        "threads {}, runs {}, medians in ms",
        rayon::current_num_threads(),
        options.runs
    );
    println!(
        "{:8} {:>5} {:>9} {:>9} {:>6} {:>11} {:>11} {:>6} {:>10} {:>10}",
        "shape",
        "log n",
        "cuzk",
        "ark",
        "ratio",
        "cuzk synth",
        "ark synth",
        "ratio",
        "cuzk MiB",
        "ark MiB"
    );
    for log_n in &options.log_sizes {
        for shape in &options.shapes {
            row(&options, *shape, *log_n)?;
        }
    }
    Ok(())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        log_sizes: vec![16, 18],
        shapes: vec![Shape::Dense, Shape::Porep],
        runs: 3,
        threads: 0,
        stages: false,
        measure: None,
    };
    let number = |text: &str| {
        text.parse::<usize>()
            .map_err(|_| format!("not a number: {text}"))
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} takes a value\n{USAGE}"));
        match arg.as_str() {
            // What cargo passes to every bench.
            "--bench" => {}
            // Once, at a size that takes a moment.
            "--test" => {
                options.log_sizes = vec![6];
                options.runs = 1;
            }
            "--log-n" => {
                options.log_sizes = value()?
                    .split(',')
                    .map(|n| number(n).map(|n| n as u32))
                    .collect::<Result<_, _>>()?;
            }
            "--shape" => {
                options.shapes = value()?
                    .split(',')
                    .map(shape_named)
                    .collect::<Result<_, _>>()?;
            }
            "--runs" => options.runs = number(&value()?)?.max(1),
            "--threads" => options.threads = number(&value()?)?,
            "--stages" => options.stages = true,
            "--measure" => options.measure = Some(value()?),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    Ok(options)
}

fn shape_named(name: &str) -> Result<Shape, String> {
    match name {
        "dense" => Ok(Shape::Dense),
        "porep" => Ok(Shape::Porep),
        other => Err(format!("no shape {other}: dense or porep")),
    }
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Dense => "dense",
        Shape::Porep => "porep",
    }
}

/// r and s of every proof here, so that the provers' bytes can be compared.
fn factors() -> (Fr, Fr) {
    (
        Fr::from(3u64).pow(0x1234_5678_9abc),
        Fr::from(5u64).pow(0xcba9_8765_4321),
    )
}

fn prove_options() -> ProveOptions {
    let (r, s) = factors();
    ProveOptions::default().with_blinding(Blinding::from_caller(r.into(), s.into()))
}

fn row(options: &Options, shape: Shape, log_n: u32) -> Result<(), Box<dyn std::error::Error>> {
    let Instance { r1cs, witness } = Instance::new(shape, log_n, 1)?;
    let key = proving_key(&r1cs, KeyFamily::Arkworks, 2)?;
    let ark_key = ark_key(&key);
    let ark_matrices = ark_matrices(&r1cs);
    let ark_values = ark_values(&witness);
    let prover = Prover::new(&key)?;
    let ark_prover = Prover::new(KeyRef::try_from(&ark_key)?)?;
    let (r, s) = factors();

    let mut times: [Vec<Duration>; 4] = Default::default();
    let mut stages = Stages::default();
    for _ in 0..options.runs {
        let start = Instant::now();
        let ours = prover.prove(Circuit::R1cs(&r1cs), &witness, &prove_options())?;
        times[0].push(start.elapsed());

        let start = Instant::now();
        let theirs =
            Groth16::<Bls12_381, LibsnarkReduction>::create_proof_with_reduction_and_matrices(
                &ark_key,
                r.into(),
                s.into(),
                &ark_matrices,
                r1cs.num_inputs,
                r1cs.num_constraints(),
                &ark_values,
            )?;
        times[1].push(start.elapsed());
        assert_eq!(to_ark_proof(&ours.proof), theirs, "the provers disagree");
        stages = ours.stages;

        let replay = Replay {
            r1cs: &r1cs,
            witness: &witness,
        };
        let start = Instant::now();
        let ours = ark_prover.prove_circuit(replay, &prove_options())?;
        times[2].push(start.elapsed());
        let start = Instant::now();
        let again = Groth16::<Bls12_381>::create_proof_with_reduction(
            replay,
            &ark_key,
            r.into(),
            s.into(),
        )?;
        times[3].push(start.elapsed());
        assert_eq!(to_ark_proof(&ours.proof), again, "the provers disagree");
    }
    let [cuzk, ark, cuzk_synth, ark_synth] = times.map(median_ms);
    println!(
        "{:8} {log_n:>5} {cuzk:>9.1} {ark:>9.1} {:>6.2} {cuzk_synth:>11.1} {ark_synth:>11.1} {:>6.2} {:>10} {:>10}",
        shape_name(shape),
        ark / cuzk,
        ark_synth / cuzk_synth,
        peak_mib(options, shape, log_n, "cuzk"),
        peak_mib(options, shape, log_n, "ark"),
    );
    if options.stages {
        for stage in stages.as_slice() {
            println!(
                "    {:10} {:>9.1}",
                stage.name,
                stage.elapsed.as_secs_f64() * 1e3
            );
        }
    }
    Ok(())
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Peak resident memory while proving, in a process that holds this prover's data alone.
fn peak_mib(options: &Options, shape: Shape, log_n: u32, prover: &str) -> String {
    let output = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .args(["--measure", prover, "--shape", shape_name(shape)])
            .args([
                "--log-n",
                &log_n.to_string(),
                "--threads",
                &options.threads.to_string(),
            ])
            .output()
    });
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "-".to_owned(),
    }
}

fn measure(options: &Options, prover: &str) -> Result<(), Box<dyn std::error::Error>> {
    let Instance { r1cs, witness } = Instance::new(options.shapes[0], options.log_sizes[0], 1)?;
    let key = proving_key(&r1cs, KeyFamily::Arkworks, 2)?;
    let (r, s) = factors();
    if prover == "cuzk" {
        let prover = Prover::new(&key)?;
        reset_peak()?;
        prover.prove(Circuit::R1cs(&r1cs), &witness, &prove_options())?;
    } else {
        let (ark_key, matrices, values) =
            (ark_key(&key), ark_matrices(&r1cs), ark_values(&witness));
        let (inputs, constraints) = (r1cs.num_inputs, r1cs.num_constraints());
        drop((key, r1cs, witness));
        reset_peak()?;
        Groth16::<Bls12_381, LibsnarkReduction>::create_proof_with_reduction_and_matrices(
            &ark_key,
            r.into(),
            s.into(),
            &matrices,
            inputs,
            constraints,
            &values,
        )?;
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse()?;
    println!("{}", kib / 1024);
    Ok(())
}

/// Linux: makes VmHWM start again from what is resident now.
fn reset_peak() -> std::io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")
}

fn ark_key(key: &ProvingKey) -> ArkKey {
    let g1 = |points: &[cuzk_field::G1Affine]| points.iter().map(|p| (*p).into()).collect();
    ArkKey {
        vk: ark_groth16::VerifyingKey {
            alpha_g1: key.vk.alpha_g1.into(),
            beta_g2: key.vk.beta_g2.into(),
            gamma_g2: key.vk.gamma_g2.into(),
            delta_g2: key.vk.delta_g2.into(),
            gamma_abc_g1: g1(&key.vk.gamma_abc_g1),
        },
        beta_g1: key.beta_g1.into(),
        delta_g1: key.delta_g1.into(),
        a_query: g1(&key.a_query),
        b_g1_query: g1(&key.b_g1_query),
        b_g2_query: key.b_g2_query.iter().map(|p| (*p).into()).collect(),
        h_query: g1(&key.h_query),
        l_query: g1(&key.l_query),
    }
}

fn ark_matrices(r1cs: &R1cs) -> Vec<ArkMatrix<ArkFr>> {
    let table = r1cs.coefficients.values();
    let convert = |matrix: &Matrix| {
        (0..matrix.num_rows())
            .map(|row| {
                let entries = matrix.row(row);
                entries
                    .map(|(v, id)| (table[id as usize].to_ark(), v as usize))
                    .collect()
            })
            .collect()
    };
    [&r1cs.a, &r1cs.b, &r1cs.c].map(convert).into()
}

fn ark_values(witness: &Witness) -> Vec<ArkFr> {
    witness
        .values()
        .iter()
        .map(|value: &Scalar| (*value).into())
        .collect()
}

/// An R1CS with its witness as an arkworks circuit.
#[derive(Clone, Copy)]
struct Replay<'a> {
    r1cs: &'a R1cs,
    witness: &'a Witness,
}

impl ConstraintSynthesizer<ArkFr> for Replay<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<ArkFr>) -> Result<(), SynthesisError> {
        let mut variables = vec![Variable::One];
        for (i, value) in self.witness.values().iter().enumerate().skip(1) {
            variables.push(if i < self.r1cs.num_inputs {
                cs.new_input_variable(|| Ok((*value).into()))?
            } else {
                cs.new_witness_variable(|| Ok((*value).into()))?
            });
        }
        let table = self.r1cs.coefficients.values();
        let combination = |matrix: &Matrix, row| {
            let entries = matrix.row(row);
            LinearCombination(
                entries
                    .map(|(v, id)| (table[id as usize].to_ark(), variables[v as usize]))
                    .collect(),
            )
        };
        for row in 0..self.r1cs.num_constraints() {
            cs.enforce_r1cs_constraint(
                || combination(&self.r1cs.a, row),
                || combination(&self.r1cs.b, row),
                || combination(&self.r1cs.c, row),
            )?;
        }
        Ok(())
    }
}
