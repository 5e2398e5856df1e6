//! All that a proof is made from, compared before it is loaded, and the proof itself.

use std::path::Path;
use std::sync::Arc;

use cuzk_formats::{FileSource, R1cs, ReadAt as _, Witness, json, prepared, r1cs, wtns};
use cuzk_gpu_mem::Recorder;
use cuzk_groth16::device::{DeviceProver, Gpu};
use cuzk_groth16::{
    Circuit, DifferingRow, ProveOptions, Proved, Prover, Verifier, first_differing_row,
};
use cuzk_sched::OnDeviceError;

use super::gpu_use::GpuUse;
use super::key::Key;
use crate::args::ProveArgs;
use crate::device::Taken;
use crate::exit::Failure;
use crate::keys::{KeyFile, KeyKind, convention_of};
use crate::load::{self, Loader};
use crate::memory::{self, Limit};
use crate::progress::Bar;
use crate::report::StageTime;
use crate::synthetic;

/// All that a proof is made from.
pub(super) struct Material {
    pub(super) kind: KeyKind,
    /// The key file, for the result.
    pub(super) key_file: Option<String>,
    key: Key,
    r1cs: Option<R1cs>,
    /// Not there where many are proved, each loaded when its turn comes.
    witness: Option<Arc<Witness>>,
}

/// Sizes for the result.
pub(super) struct CircuitSizes {
    pub(super) constraints: Option<usize>,
    pub(super) variables: usize,
    pub(super) public_values: usize,
    pub(super) domain_size: usize,
}

impl Material {
    /// Compares all headers first, so that a mismatch shows before anything large is loaded.
    pub(super) fn of_files(
        args: &ProveArgs,
        kind: KeyKind,
        path: &Path,
        taken: &Taken,
        loader: &mut Loader,
    ) -> Result<Self, Failure> {
        let options = loader.options();
        // A key of another hash is told before what may be wrong with it.
        let key_source = FileSource::open(path)?;
        if let Some(expected) = &args.key_blake3 {
            check_hash(&key_source, expected, loader)?;
        }
        let key_file = KeyFile::of(kind, key_source, &options)?;
        check_public_count(&key_file)?;
        let r1cs_source = args.inputs.r1cs.as_deref().map(FileSource::open);
        let r1cs_source = r1cs_source.transpose()?;
        let wtns_path = args.inputs.wtns.as_deref().unwrap_or(Path::new(""));
        let wtns_source = FileSource::open(wtns_path)?;

        let counts = key_file.counts;
        let threads = taken.threads();
        // A GPU holds points against their curve alone.
        let stays_in_file = kind == KeyKind::Prepared && !args.load.check_subgroup;
        let proves_here = args.many.on_gpu_error() == OnDeviceError::Cpu;
        let mut needed_bytes = match taken.usable_bytes() {
            // Nothing is proved on the CPU.
            Some(usable) if stays_in_file && !proves_here => {
                let points = counts.point_bytes;
                counts.memory_bytes.saturating_sub(points)
                    + memory::points_on_host(points, counts.domain_size, usable)
                    + memory::proving_bytes(0, threads)
            }
            _ => counts.memory_bytes + memory::proving_bytes(counts.domain_size, threads),
        };
        if let Some(source) = &r1cs_source {
            let (header, _) = r1cs::read_header(source, &options)?;
            compare_counts(&key_file, source, &header)?;
            check_r1cs_hash(&key_file, source, loader)?;
            // An entry has 36 bytes in the file and 8 in memory, up to 16 while its array grows;
            // the rest is for distinct coefficients, of which circuits have few.
            needed_bytes += header.constraint_bytes / 2 + 3 * 8 * u64::from(header.num_constraints);
        }
        let (values, _) = wtns::read_header(&wtns_source, &options)?;
        let variables = counts.num_variables;
        compare_witness(
            wtns_source.name(),
            values,
            key_file.source.name(),
            variables,
        )?;
        needed_bytes += 32 * u64::from(values);
        Limit::check(Limit::of(args.resources.host_limit), needed_bytes)?;

        let witness = if args.many.witnesses.is_some() {
            None
        } else {
            let read = loader.read("witness", &wtns_source, |source, options| {
                wtns::read(source, options).map(|file| (file.witness, file.notes))
            });
            Some(Arc::new(read?))
        };
        let r1cs = match &r1cs_source {
            None => None,
            Some(source) => Some(loader.read("r1cs", source, |source, options| {
                r1cs::read(source, options).map(|file| (file.r1cs, file.notes))
            })?),
        };
        let key = if stays_in_file && taken.has_gpu_for(counts.domain_size) {
            Key::in_file(key_file, loader)?
        } else {
            Key::Loaded(Box::new(key_file.load(loader)?))
        };
        let material = Self {
            kind,
            key_file: Some(path.display().to_string()),
            key,
            r1cs,
            witness,
        };
        material.compare_matrices(path, loader)?;
        Ok(material)
    }

    /// The R1CS against the matrices of a zkey.
    fn compare_matrices(&self, path: &Path, loader: &mut Loader) -> Result<(), Failure> {
        let (Some(r1cs), Some((matrices, _))) = (&self.r1cs, self.key.matrices()) else {
            return Ok(());
        };
        let difference = StageTime::of(&mut loader.stages, "compare", || {
            first_differing_row(r1cs, matrices)
        });
        difference.map_or(Ok(()), |difference| Err(differing(r1cs, &difference, path)))
    }

    pub(super) fn synthetic(
        args: &ProveArgs,
        log_n: u32,
        threads: usize,
        loader: &mut Loader,
    ) -> Result<Self, Failure> {
        let (shape, kind, family) = synthetic::kinds_of(args.inputs.shape, args.inputs.family);
        // Proving takes less than making the key.
        let needed_bytes = synthetic::key_bytes(log_n) + memory::proving_bytes(0, threads);
        Limit::check(Limit::of(args.resources.host_limit), needed_bytes)?;
        let four_transforms = args.inputs.four_transforms;
        let (instance, exponents) = synthetic::make(
            shape,
            log_n,
            synthetic::SEED,
            family,
            four_transforms,
            &mut loader.stages,
        )?;
        Ok(Self {
            kind,
            key_file: None,
            key: Key::made(exponents),
            r1cs: Some(instance.r1cs),
            witness: Some(Arc::new(instance.witness)),
        })
    }

    /// Faults of the key are the file's.
    fn in_key_file(&self, failure: Failure) -> Failure {
        use cuzk_groth16::Error;
        match (&self.key_file, failure) {
            (Some(file), Failure::Groth16(error @ (Error::Key { .. } | Error::Point { .. }))) => {
                Failure::BadInput {
                    file: file.clone(),
                    what: error.to_string(),
                }
            }
            (_, failure) => failure,
        }
    }

    pub(super) fn as_circuit(&self) -> Result<Circuit<'_>, Failure> {
        match (&self.r1cs, self.key.matrices()) {
            (Some(r1cs), _) => Ok(Circuit::R1cs(r1cs)),
            (None, Some((matrices, _))) => Ok(Circuit::Matrices(matrices)),
            (None, None) => Err(Failure::Bug("neither R1CS nor matrices".into())),
        }
    }

    /// The one witness.
    pub(super) fn witness(&self) -> Result<&Arc<Witness>, Failure> {
        let witness = self.witness.as_ref();
        witness.ok_or_else(|| Failure::Bug("no witness was loaded".into()))
    }

    /// The CPU's prover.
    pub(super) fn prover(&self, loader: &mut Loader) -> Result<Prover<'_>, Failure> {
        let key = self.key.key_ref(loader)?;
        StageTime::of(&mut loader.stages, "check key", || Prover::new(key))
            .map_err(|error| self.in_key_file(error.into()))
    }

    pub(super) fn prove(&self, args: &ProveArgs, loader: &mut Loader) -> Result<Proved, Failure> {
        let prover = self.prover(loader)?;
        let circuit = self.as_circuit()?;
        let bar = Bar::working("proving");
        let proved = prover.prove(circuit, self.witness()?, &options(args, &bar))?;
        drop(bar);
        loader.add_stages(&proved);
        Ok(proved)
    }

    /// A GPU's prover.
    pub(super) fn prover_on<'a>(
        &'a self,
        gpu: &'a Gpu,
        loader: &mut Loader,
    ) -> Result<DeviceProver<'a, 'a>, Failure> {
        let circuit = self.as_circuit()?;
        StageTime::of(&mut loader.stages, "key to GPU", || {
            self.key.prover_on(gpu, circuit)
        })
        .map_err(|error| self.in_key_file(error.into()))
    }

    pub(super) fn verifier(&self) -> Result<Verifier, Failure> {
        Verifier::new(self.key.vk()).map_err(|error| self.in_key_file(error.into()))
    }

    pub(super) fn prove_on(
        &self,
        gpu: &Gpu,
        args: &ProveArgs,
        loader: &mut Loader,
    ) -> Result<(Proved, GpuUse), Failure> {
        let bar = Bar::working("loading the key onto the GPU");
        let prover = self.prover_on(gpu, loader)?;
        let (witness, options) = (self.witness()?, options(args, &bar));
        let (proved, used) = prove_counted(gpu, &prover, witness, &options)?;
        drop(bar);
        loader.add_stages(&proved);
        Ok((proved, used))
    }

    /// The kind of key whose tools' conventions hold for the proof.
    pub(super) fn convention(&self) -> KeyKind {
        match self.key.origin() {
            None => self.kind,
            Some(origin) => convention_of(origin.source, self.key.header().flavour.root_generator),
        }
    }

    pub(super) fn circuit(&self) -> CircuitSizes {
        let header = self.key.header();
        CircuitSizes {
            constraints: match (&self.r1cs, self.key.matrices()) {
                (Some(r1cs), _) => Some(r1cs.num_constraints()),
                (None, Some((_, constraints))) => constraints,
                (None, None) => None,
            },
            variables: header.num_variables,
            public_values: header.vk.num_public(),
            domain_size: header.domain_size,
        }
    }
}

/// The failure of an R1CS that is not the circuit of the key at `path`.
pub(crate) fn differing(r1cs: &R1cs, difference: &DifferingRow, path: &Path) -> Failure {
    let constraints = r1cs.num_constraints();
    let row = match difference.row.checked_sub(constraints) {
        None => format!("constraint {}", difference.row),
        Some(beyond) => format!("row {beyond} behind the last of {constraints} constraints"),
    };
    Failure::Mismatch(format!(
        "the R1CS is not the circuit of this key: {row} (counted from 0) is the first that \
         differs, in {}, from {}; take the .r1cs that the key was made from",
        difference.matrix,
        path.display()
    ))
}

/// The R1CS against the hash that a prepared key has of its own.
fn check_r1cs_hash(key: &KeyFile, source: &FileSource, loader: &mut Loader) -> Result<(), Failure> {
    if key.kind != KeyKind::Prepared {
        return Ok(());
    }
    let Some(expected) = prepared::read_header(&key.source)?.origin.r1cs_hash else {
        return Ok(());
    };
    let found = StageTime::of(&mut loader.stages, "hash r1cs", || load::blake3(source))?;
    if found == expected {
        return Ok(());
    }
    Err(Failure::Mismatch(format!(
        "the R1CS is not the one that this key was prepared with: {} has the BLAKE3 hash {found}, {} \
         records {}; take that .r1cs, or prepare the key again",
        source.name(),
        key.source.name(),
        blake3::Hash::from(expected)
    )))
}

/// A proof, and what it took of its GPU.
fn prove_counted(
    gpu: &Gpu,
    prover: &DeviceProver<'_, '_>,
    witness: &Witness,
    options: &ProveOptions,
) -> cuzk_groth16::device::Result<(Proved, GpuUse)> {
    let recorder = Recorder::new(gpu.upload())?;
    gpu.upload().set_recorder(Some(recorder.clone()));
    let packed = prover.pack(witness, options)?;
    let (admission, staged) = prover.stage(packed, options)?;
    let tier = staged.tier();
    let computed = prover.compute(admission, staged, options, Some(&recorder))?;
    let proved = prover.finish(computed, witness, options)?;
    let used = GpuUse::of(gpu, prover).with_proof(tier, &recorder);
    Ok((proved, used))
}

fn options(args: &ProveArgs, bar: &Bar) -> ProveOptions {
    let options = ProveOptions::default().with_stage_callback(bar.stages());
    if args.no_verify {
        return options.without_verification();
    }
    options
}

fn check_hash(
    source: &FileSource,
    expected: &blake3::Hash,
    loader: &mut Loader,
) -> Result<(), Failure> {
    let found = StageTime::of(&mut loader.stages, "hash key", || load::blake3(source))?;
    // The comparison of two hashes takes the same time whatever they are.
    if found == *expected {
        return Ok(());
    }
    Err(Failure::BadInput {
        file: source.name().to_owned(),
        what: format!(
            "expected the BLAKE3 hash {expected}, found {found} (the key is damaged or another \
             one; get it again)"
        ),
    })
}

/// Public values are written as JSON, of which readers take so many.
fn check_public_count(key: &KeyFile) -> Result<(), Failure> {
    let (found, most) = (key.counts.num_inputs - 1, json::PUBLIC_VALUES_MAX);
    if found <= most as u64 {
        return Ok(());
    }
    Err(Failure::BadInput {
        file: key.source.name().to_owned(),
        what: format!("expected a circuit of at most {most} public values, found {found}"),
    })
}

pub(crate) fn compare_counts(
    key: &KeyFile,
    source: &FileSource,
    header: &r1cs::Header,
) -> Result<(), Failure> {
    let inputs = u64::from(header.num_public()) + 1;
    let rows = u64::from(header.num_constraints) + inputs;
    let domain = rows.next_power_of_two().max(key.counts.least_domain);
    for (what, ours, theirs) in [
        ("public values", key.counts.num_inputs - 1, inputs - 1),
        (
            "variables",
            key.counts.num_variables,
            u64::from(header.num_wires),
        ),
        ("rows in its domain", key.counts.domain_size, domain),
    ] {
        if ours != theirs {
            return Err(Failure::Mismatch(format!(
                "the R1CS is not the circuit of this key: {} has {ours} {what}, {} has {theirs}",
                key.source.name(),
                source.name()
            )));
        }
    }
    Ok(())
}

/// A witness's number of values against a key's of variables: before they are loaded.
pub(super) fn compare_witness(
    witness: &str,
    values: u32,
    key: &str,
    variables: u64,
) -> Result<(), Failure> {
    if u64::from(values) == variables {
        return Ok(());
    }
    Err(Failure::Mismatch(format!(
        "the witness is of another circuit: {witness} has {values} values, {key} has {variables} variables"
    )))
}
