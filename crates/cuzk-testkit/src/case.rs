//! A folder with a circuit, its key, a witness and a proof.

use std::fs;
use std::path::{Path, PathBuf};

use crate::unpack;

/// One case: a folder of `testdata/` or of another folder of that layout.
///
/// A case named `X_bellman` holds a key in bellman's format for the circuit of its sibling `X`;
/// what it lacks is read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    /// The folder.
    pub dir: PathBuf,
}

impl Case {
    /// The bytes of a file of this case, unpacked; `None` when there is no such file.
    ///
    /// # Panics
    /// When the file cannot be read or is packed wrongly.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        self.own_file(&self.dir, name)
            .or_else(|| self.own_file(&self.sibling()?, name))
    }

    /// `circuit.r1cs`: the constraints.
    pub fn r1cs(&self) -> Option<Vec<u8>> {
        self.file("circuit.r1cs")
    }

    /// `circuit.zkey`: a proving key by snarkjs.
    pub fn zkey(&self) -> Option<Vec<u8>> {
        self.key_file("circuit.zkey")
    }

    /// `circuit.params`: a proving key in bellman's format. That of the case `sapling_spend` is not
    /// in its folder: feature `sapling` takes it from a crate.
    pub fn params(&self) -> Option<Vec<u8>> {
        let own = self.key_file("circuit.params");
        #[cfg(feature = "sapling")]
        if own.is_none() && self.name == "sapling_spend" {
            return Some(wagyu_zcash_parameters::load_sapling_parameters().0);
        }
        own
    }

    /// `witness.wtns`: the full assignment.
    pub fn wtns(&self) -> Option<Vec<u8>> {
        self.file("witness.wtns")
    }

    /// `public.json`: the public values.
    pub fn public_json(&self) -> Option<Vec<u8>> {
        self.file("public.json")
    }

    /// `verification_key.json`, for [`Self::zkey`].
    pub fn verification_key_json(&self) -> Option<Vec<u8>> {
        self.key_file("verification_key.json")
    }

    /// `proof.json`: a proof by snarkjs for [`Self::zkey`].
    pub fn proof_json(&self) -> Option<Vec<u8>> {
        self.key_file("proof.json")
    }

    /// `proof.bin`: 192 bytes, a proof for [`Self::params`].
    pub fn proof_bin(&self) -> Option<Vec<u8>> {
        self.key_file("proof.bin")
    }

    /// A plain file with the bytes of [`Self::file`], for what wants a path: the file itself, or an
    /// unpacked copy below the target folder.
    ///
    /// # Panics
    /// When the file cannot be read or the copy cannot be written.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let plain = self.dir.join(name);
        if plain.is_file() {
            return Some(plain);
        }
        let bytes = self.file(name)?;
        let dir = target_dir().join("testdata").join(&self.name);
        let copy = dir.join(name);
        if fs::read(&copy).is_ok_and(|old| old == bytes) {
            return Some(copy);
        }
        let write = || {
            fs::create_dir_all(&dir)?;
            // Tests run side by side: each writes its own file and renames it into place.
            let own = dir.join(format!(
                "{name}.{}-{:?}",
                std::process::id(),
                std::thread::current().id()
            ));
            fs::write(&own, &bytes)?;
            fs::rename(&own, &copy)
        };
        write().unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
        Some(copy)
    }

    /// A file that belongs to this case's key, never to its sibling's.
    fn key_file(&self, name: &str) -> Option<Vec<u8>> {
        self.own_file(&self.dir, name)
    }

    fn own_file(&self, dir: &Path, name: &str) -> Option<Vec<u8>> {
        ["", ".gz", ".xz"].iter().find_map(|packing| {
            let path = dir.join(format!("{name}{packing}"));
            let bytes = path.is_file().then(|| fs::read(&path))?;
            Some(
                bytes
                    .and_then(|bytes| unpack(&bytes))
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display())),
            )
        })
    }

    fn sibling(&self) -> Option<PathBuf> {
        Some(self.dir.with_file_name(self.name.strip_suffix("_bellman")?))
    }
}

/// The folder of the cases: `CUZK_FIXTURES`, or `testdata/` of this workspace.
pub fn testdata_dir() -> PathBuf {
    match std::env::var_os("CUZK_FIXTURES") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => workspace().join("testdata"),
    }
}

/// All cases by name: the folders of [`testdata_dir`] that hold a circuit or a key.
///
/// # Panics
/// When the folder cannot be listed, or holds no case.
pub fn cases() -> Vec<Case> {
    let root = testdata_dir();
    let entries = fs::read_dir(&root).unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let mut cases: Vec<Case> = entries
        .filter_map(|entry| Case::at(&entry.ok()?.path()))
        .collect();
    assert!(!cases.is_empty(), "no case in {}", root.display());
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// The case of that name in `testdata/`, whatever `CUZK_FIXTURES` says.
///
/// # Panics
/// When there is none.
pub fn case(name: &str) -> Case {
    let dir = workspace().join("testdata").join(name);
    Case::at(&dir).unwrap_or_else(|| panic!("no case in {}", dir.display()))
}

impl Case {
    fn at(dir: &Path) -> Option<Self> {
        let case = Self {
            name: dir.file_name()?.to_str()?.to_owned(),
            dir: dir.to_owned(),
        };
        let has = |name: &str| {
            ["", ".gz", ".xz"]
                .iter()
                .any(|packing| dir.join(format!("{name}{packing}")).is_file())
        };
        ["circuit.r1cs", "circuit.zkey", "circuit.params"]
            .into_iter()
            .any(has)
            .then_some(case)
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies two folders below the workspace")
        .to_owned()
}

/// The folder for what tests write: that of cargo.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}
