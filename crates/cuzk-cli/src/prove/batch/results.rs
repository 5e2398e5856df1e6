//! Where the results of many proofs go.

use std::path::{Path, PathBuf};

use super::Batch;
use crate::args::{ProofFormat, ProveArgs};
use crate::exit::Failure;
use crate::keys::KeyKind;
use crate::output::{Folder, Target};
use crate::prove::result::resolved_format;

/// Where the results of a batch go.
pub(in crate::prove) struct Results {
    pub(super) format: ProofFormat,
    /// Proof and public values of each partition; empty where they go to stdout.
    pub(super) places: Vec<[PathBuf; 2]>,
    _folder: Option<Folder>,
}

impl Results {
    /// Makes their folder if need be.
    pub(in crate::prove) fn of(
        args: &ProveArgs,
        batch: &Batch,
        convention: KeyKind,
    ) -> Result<Self, Failure> {
        let format = resolved_format(args, convention);
        let Some(path) = &args.many.out_dir else {
            return Ok(Self {
                format,
                places: Vec::new(),
                _folder: None,
            });
        };
        let proof_ending = match format {
            ProofFormat::Snarkjs => ".proof.json",
            _ => ".proof.bin",
        };
        let place = |partition: usize, ending: &str| match batch.entries.get(partition) {
            Some(entry) => path.join(entry.result(ending)),
            None => path.join(format!("{}{ending}", batch.name(partition))),
        };
        Ok(Self {
            format,
            places: (0..batch.partitions * batch.proofs)
                .map(|partition| {
                    [proof_ending, ".public.json"].map(|ending| place(partition, ending))
                })
                .collect(),
            _folder: Some(Folder::make("--out-dir", path)?),
        })
    }

    /// As outputs.
    pub(in crate::prove) fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        self.places.iter().flatten().map(|path| in_folder(path))
    }
}

/// A file there, as an output.
pub(super) fn in_folder(path: &Path) -> Target<'_> {
    Target {
        flag: "--out-dir",
        path,
    }
}
