//! The layout of `testdata/`: a folder per case with circuit, key, witness, public values, proof.

use std::fs;
use std::io::{self, Cursor, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::repo;

/// The case whose key is not in its folder but in a crate, behind a feature of the test kit.
pub(crate) const SAPLING: &str = "sapling_spend";

/// A folder with a circuit or a key.
pub(crate) struct Case {
    pub(crate) name: String,
    dir: PathBuf,
}

/// The cases below `dir` by name.
pub(crate) fn list(dir: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let dir = entry?.path();
        let Some(name) = dir.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let case = Case {
            name: name.to_owned(),
            dir: dir.clone(),
        };
        let holds = |file| case.packed(file).is_some();
        if ["circuit.r1cs", "circuit.zkey", "circuit.params"]
            .into_iter()
            .any(holds)
        {
            cases.push(case);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    if cases.is_empty() {
        bail!("no case in {}", dir.display());
    }
    Ok(cases)
}

/// A case of `testdata/`.
pub(crate) fn own(name: &str) -> Result<Case> {
    list(&repo::root().join("testdata"))?
        .into_iter()
        .find(|case| case.name == name)
        .with_context(|| format!("testdata/ has no case {name}"))
}

impl Case {
    /// A file of this case, unpacked into `scratch` where it is packed. What a case `X_bellman`
    /// lacks of circuit and witness is its sibling `X`'s.
    pub(crate) fn file(&self, name: &str, scratch: &Path) -> Result<Option<PathBuf>> {
        let shared = ["circuit.r1cs", "witness.wtns", "public.json"].contains(&name);
        let sibling = || {
            let dir = self.dir.with_file_name(self.name.strip_suffix("_bellman")?);
            let name = String::new();
            shared.then_some(Self { name, dir })
        };
        let path = self.packed(name).or_else(|| sibling()?.packed(name));
        let Some(path) = path else {
            return Ok(None);
        };
        if path
            .extension()
            .is_none_or(|packing| packing != "gz" && packing != "xz")
        {
            return Ok(Some(path));
        }
        let bytes = unpack(&path).with_context(|| format!("cannot unpack {}", path.display()))?;
        let plain = scratch.join(format!("{}.{name}", self.name));
        fs::write(&plain, bytes).with_context(|| format!("cannot write {}", plain.display()))?;
        Ok(Some(plain))
    }

    fn packed(&self, name: &str) -> Option<PathBuf> {
        ["", ".gz", ".xz"]
            .iter()
            .map(|packing| self.dir.join(format!("{name}{packing}")))
            .find(|path| path.is_file())
    }
}

fn unpack(path: &Path) -> io::Result<Vec<u8>> {
    let packed = fs::read(path)?;
    let mut plain = Vec::new();
    if path.extension().is_some_and(|packing| packing == "gz") {
        flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut plain)?;
    } else {
        lzma_rs::xz_decompress(&mut Cursor::new(packed), &mut plain)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{e:?}")))?;
    }
    Ok(plain)
}
