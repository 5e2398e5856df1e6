//! What a caller decides about reading, and how it watches and stops it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Note};

/// How far a read has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The part being read.
    pub label: &'static str,
    /// Bytes of the file dealt with.
    pub done_bytes: u64,
    /// Bytes there are to deal with.
    pub total_bytes: u64,
}

/// A callback for [`Progress`]. It is called from several threads, in no strict order.
pub type ProgressFn<'a> = &'a (dyn Fn(Progress) + Sync);

/// How to read a file. The default is what a prover wants.
#[derive(Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Check that every point lies in the subgroup of order r. Off by default: it costs some
    /// hundred times as much as the curve equation, which is always checked.
    pub subgroup_check: bool,
    /// Refuse what is otherwise accepted with a [`Note`].
    pub strict: bool,
    /// Accept a .wtns whose length field is wrong while all its values are there: a known defect
    /// of the JavaScript witness writer for witnesses of 4 GiB and more.
    pub accept_wtns_length_defect: bool,
    /// Called as the read goes on.
    pub progress: Option<ProgressFn<'a>>,
    /// When it becomes true the read ends soon with [`crate::ErrorKind::Cancelled`].
    pub cancel: Option<&'a AtomicBool>,
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions")
            .field("subgroup_check", &self.subgroup_check)
            .field("strict", &self.strict)
            .field("accept_wtns_length_defect", &self.accept_wtns_length_defect)
            .finish_non_exhaustive()
    }
}

impl LoadOptions<'_> {
    /// Keeps a note, or makes it the error that it is under [`Self::strict`].
    pub(crate) fn note(&self, notes: &mut Vec<Note>, note: Note) -> Result<(), Error> {
        if self.strict {
            return Err(note.into_error());
        }
        notes.push(note);
        Ok(())
    }
}

/// Counts the bytes of one read and passes them on; one per file, shared by its threads.
pub(crate) struct Meter<'a> {
    options: &'a LoadOptions<'a>,
    done_bytes: AtomicU64,
    total_bytes: u64,
}

impl<'a> Meter<'a> {
    /// A meter for a read of `total_bytes`.
    pub(crate) fn new(options: &'a LoadOptions<'a>, total_bytes: u64) -> Self {
        Self {
            options,
            done_bytes: AtomicU64::new(0),
            total_bytes,
        }
    }

    /// The options that the read runs under.
    pub(crate) fn options(&self) -> &'a LoadOptions<'a> {
        self.options
    }

    /// Reports `bytes` more.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Cancelled`] when the caller asked to stop.
    pub(crate) fn advance(&self, label: &'static str, bytes: u64) -> Result<(), Error> {
        let before = self.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(progress) = self.options.progress {
            progress(Progress {
                label,
                done_bytes: before.saturating_add(bytes).min(self.total_bytes),
                total_bytes: self.total_bytes,
            });
        }
        match self.options.cancel {
            Some(cancel) if cancel.load(Ordering::Relaxed) => Err(Error::cancelled()),
            _ => Ok(()),
        }
    }
}
