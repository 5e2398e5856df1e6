//! Reading input files: with progress, timed, notes collected.

use std::time::Instant;

use cuzk_formats::{Error, FileSource, LoadOptions, Note, ReadAt as _};
use rayon::prelude::*;

use crate::args::LoadArgs;
use crate::progress::Bar;
use crate::report::{Notes, StageTime};

/// Reads files one after the other.
pub(crate) struct Loader {
    subgroup_check: bool,
    strict: bool,
    accept_wtns_length_defect: bool,
    /// What reading each file took.
    pub(crate) stages: Vec<StageTime>,
    /// What was odd about them.
    pub(crate) notes: Notes,
}

impl Loader {
    /// A loader.
    pub(crate) fn new(args: &LoadArgs, accept_wtns_length_defect: bool) -> Self {
        Self {
            subgroup_check: args.check_subgroup,
            strict: args.strict,
            accept_wtns_length_defect,
            stages: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// Notes where the time of a proof went.
    pub(crate) fn add_stages(&mut self, proved: &cuzk_groth16::Proved) {
        let stages = proved.stages.as_slice().iter();
        self.stages
            .extend(stages.map(|stage| StageTime::new(stage.name, stage.elapsed)));
    }

    /// The options of a read.
    pub(crate) fn options(&self) -> LoadOptions<'static> {
        LoadOptions {
            subgroup_check: self.subgroup_check,
            strict: self.strict,
            accept_wtns_length_defect: self.accept_wtns_length_defect,
            ..LoadOptions::default()
        }
    }

    /// Reads a whole file. `read` gives what it holds and the notes on it.
    pub(crate) fn read<T>(
        &mut self,
        what: &str,
        source: &FileSource,
        read: impl FnOnce(&FileSource, &LoadOptions<'_>) -> Result<(T, Vec<Note>), Error>,
    ) -> Result<T, Error> {
        let bar = Bar::reading(what);
        let progress = |progress| bar.update(progress);
        let options = LoadOptions {
            progress: Some(&progress),
            ..self.options()
        };
        let begun = Instant::now();
        let (value, notes) = read(source, &options)?;
        let name = format!("load {what}");
        self.stages
            .push(StageTime::moving(&name, begun.elapsed(), source.len()));
        drop(bar);
        self.notes.add(source.name(), &notes);
        Ok(value)
    }
}

/// The BLAKE3 hash of a file, by all threads: of the one that is open, whatever lies at its path by now.
pub(crate) fn blake3(source: &FileSource) -> Result<blake3::Hash, Error> {
    const BLOCK_BYTES: u64 = 16 << 20;
    const READ_BYTES: usize = 1 << 20;
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK_BYTES.min(source.len()) as usize];
    let mut offset = 0;
    while offset < source.len() {
        let bytes = (source.len() - offset).min(BLOCK_BYTES) as usize;
        block[..bytes]
            .par_chunks_mut(READ_BYTES)
            .enumerate()
            .try_for_each(|(i, part)| {
                source.read_exact_at(offset + (i * READ_BYTES) as u64, part)
            })?;
        hasher.update_rayon(&block[..bytes]);
        offset += bytes as u64;
    }
    Ok(hasher.finalize())
}
