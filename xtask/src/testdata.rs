//! `cargo xtask testdata [NAME ..]`: makes the cases of `testdata/` again with circom and snarkjs.
//!
//! Everything but the proofs is reproducible: the ceremonies use a public beacon in place of
//! somebody's randomness. A proof that is there already is kept while snarkjs accepts it, so a
//! second run changes no file.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::container::{Counts, Points};
use crate::node::Tools;
use crate::repo;

/// What a folder of `testdata/` is made with; its source and its inputs are in the folder.
struct Recipe {
    name: &'static str,
    /// circom's level of simplification.
    level: &'static str,
    /// log2 of the largest domain that the powers of tau serve.
    power: u32,
    /// What the case is there for.
    about: &'static str,
}

const RECIPES: &[Recipe] = &[
    recipe(
        "merkle",
        "--O1",
        12,
        "Membership in a Merkle tree, with a tag, over a hash of our own. What `cargo xtask prove` proves.",
    ),
    recipe(
        "mul1",
        "--O1",
        2,
        "One constraint, one public value: a domain of 4, which already shows a wrong root of unity.",
    ),
    recipe(
        "nopublic",
        "--O1",
        2,
        "No public value: `public.json` is `[]`. Three constraints fill a domain of 4.",
    ),
    recipe(
        "noprivate",
        "--O1",
        3,
        "No private wire: the key's C list (section 8) is empty.",
    ),
    recipe(
        "domain_2",
        "--O1",
        1,
        "One constraint and nothing public: the smallest domain, the only one that hides a wrong root of unity.",
    ),
    recipe(
        "domain_8",
        "--O1",
        3,
        "Constraints and public values are four together, so a domain of 4 is too small by one row.",
    ),
    recipe(
        "domain_16",
        "--O1",
        4,
        "A domain of 16 without a spare row, with a public input and a public output.",
    ),
    recipe(
        "chain_510",
        "--O1",
        9,
        "A domain of 512 without a spare row; every value full-size; powers of tau of exactly that size.",
    ),
    recipe(
        "chain_510_pot10",
        "--O1",
        10,
        "The circuit and witness of `chain_510` with powers of tau of twice the size.",
    ),
    recipe(
        "chain_511",
        "--O1",
        10,
        "One row more than a domain of 512 holds.",
    ),
    recipe(
        "allzero",
        "--O1",
        6,
        "Every wire but the constant one is zero.",
    ),
    recipe(
        "linear",
        "--O0",
        5,
        "Linear constraints only, but one: nearly all points of A and B are infinity, some of C as well; unused private inputs.",
    ),
    recipe(
        "bits",
        "--O1",
        9,
        "Bit decomposition: nearly every wire is 0 or 1.",
    ),
    recipe(
        "unused_public",
        "--O1",
        3,
        "A public input that stands in no constraint.",
    ),
    recipe("manypub", "--O1", 9, "A hundred public values."),
    recipe(
        "wide",
        "--O1",
        3,
        "Rows of 300 terms, wire numbers out of order within a row, far more wires than rows.",
    ),
    recipe(
        "mixed_O0",
        "--O0",
        7,
        "One source compiled with `--O0`; see `mixed_O1`, `mixed_O2`.",
    ),
    recipe(
        "mixed_O1",
        "--O1",
        6,
        "One source compiled with `--O1`; see `mixed_O0`, `mixed_O2`.",
    ),
    recipe(
        "mixed_O2",
        "--O2",
        6,
        "One source compiled with `--O2`; see `mixed_O0`, `mixed_O1`.",
    ),
];

const fn recipe(
    name: &'static str,
    level: &'static str,
    power: u32,
    about: &'static str,
) -> Recipe {
    Recipe {
        name,
        level,
        power,
        about,
    }
}

/// The public beacon: no secret is needed for keys that protect nothing.
const BEACON: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// 2^10 hashes over the beacon.
const BEACON_ROUNDS: &str = "10";

/// Files of at least this size are packed where that saves a quarter.
const PACKED_FROM: usize = 32 << 10;

/// The case whose key stays a plain file, for people who pass it by hand.
const PLAIN: &str = "merkle";

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    for name in args {
        if !RECIPES.iter().any(|recipe| recipe.name == name) {
            let names: Vec<_> = RECIPES.iter().map(|recipe| recipe.name).collect();
            bail!("no recipe for {name}; there are: {}", names.join(", "));
        }
    }
    let tools = Tools::install()?;
    let scratch = repo::scratch("testdata")?;
    for recipe in RECIPES {
        if args.is_empty() || args.iter().any(|name| name == recipe.name) {
            make(recipe, &tools, &scratch).with_context(|| recipe.name)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn make(recipe: &Recipe, tools: &Tools, scratch: &Path) -> Result<()> {
    let testdata = repo::root().join("testdata");
    let folder = testdata.join(recipe.name);
    let dir = scratch.join(recipe.name);
    fs::create_dir_all(&dir)?;
    fs::copy(folder.join("input.json"), dir.join("input.json"))?;
    let ptau = powers_of_tau(recipe.power, tools, scratch)?;

    // circom finds included files only below the folder it is started in.
    let source = format!("{}/circuit.circom", recipe.name);
    let log = repo::output(
        tools
            .command("circom2")
            .args([
                &source,
                "--prime",
                "bls12381",
                "--r1cs",
                "--wasm",
                recipe.level,
                "-o",
            ])
            .arg(relative(&dir, &testdata)?)
            .current_dir(&testdata),
    )?;
    if !log.contains("Everything went okay") {
        bail!("circom2 {source}\n{log}");
    }
    let snarkjs = |args: &[&str]| tools.snarkjs(&dir, args);
    let expect = |args: &[&str], verdict: &str| -> Result<()> {
        let log = snarkjs(args)?;
        if !log.contains(verdict) {
            bail!(
                "snarkjs {} does not say {verdict:?}:\n{log}",
                args.join(" ")
            );
        }
        Ok(())
    };
    snarkjs(&[
        "wtns",
        "calculate",
        "circuit_js/circuit.wasm",
        "input.json",
        "witness.wtns",
    ])?;
    expect(
        &["wtns", "check", "circuit.r1cs", "witness.wtns"],
        "WITNESS IS CORRECT",
    )?;
    let ptau = ptau
        .to_str()
        .context("the path of the powers of tau is not UTF-8")?;
    snarkjs(&["groth16", "setup", "circuit.r1cs", ptau, "circuit_0.zkey"])?;
    snarkjs(&[
        "zkey",
        "beacon",
        "circuit_0.zkey",
        "circuit.zkey",
        BEACON,
        BEACON_ROUNDS,
    ])?;
    expect(
        &["zkey", "verify", "circuit.r1cs", ptau, "circuit.zkey"],
        "ZKey Ok!",
    )?;
    snarkjs(&[
        "zkey",
        "export",
        "verificationkey",
        "circuit.zkey",
        "verification_key.json",
    ])?;
    snarkjs(&[
        "groth16",
        "prove",
        "circuit.zkey",
        "witness.wtns",
        "proof.json",
        "public.json",
    ])?;

    let old_proof = folder.join("proof.json");
    let (vk, public) = (dir.join("verification_key.json"), dir.join("public.json"));
    if old_proof.is_file() && tools.verify(&vk, &public, &old_proof).unwrap_or(false) {
        fs::copy(&old_proof, dir.join("proof.json"))?;
    }
    if !tools.verify(&vk, &public, &dir.join("proof.json"))? {
        bail!("snarkjs rejects its own proof");
    }
    let mut files = Vec::new();
    for name in [
        "circuit.r1cs",
        "circuit.zkey",
        "proof.json",
        "public.json",
        "verification_key.json",
        "witness.wtns",
    ] {
        files.push(store(recipe, &dir.join(name), &folder, name)?);
    }
    let counts = Counts::read(
        &fs::read(dir.join("circuit.r1cs"))?,
        &fs::read(dir.join("circuit.zkey"))?,
    )?;
    fs::write(folder.join("README.md"), readme(recipe, &counts, &files))?;
    println!(
        "{:16} {} constraints, domain {}",
        recipe.name, counts.constraints, counts.domain
    );
    Ok(())
}

/// Powers of tau, made once for each size.
fn powers_of_tau(power: u32, tools: &Tools, scratch: &Path) -> Result<PathBuf> {
    let path = scratch.join(format!("pot_{power}.ptau"));
    if !path.is_file() {
        let power = power.to_string();
        let snarkjs = |args: &[&str]| tools.snarkjs(scratch, args);
        snarkjs(&["powersoftau", "new", "bls12-381", &power, "new.ptau"])?;
        snarkjs(&[
            "powersoftau",
            "beacon",
            "new.ptau",
            "beacon.ptau",
            BEACON,
            BEACON_ROUNDS,
        ])?;
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("named above");
        snarkjs(&["powersoftau", "prepare", "phase2", "beacon.ptau", name])?;
    }
    Ok(path)
}

/// Puts a file into the case's folder, packed where that pays; gives its name there.
fn store(recipe: &Recipe, from: &Path, folder: &Path, name: &str) -> Result<(String, u64)> {
    let bytes = fs::read(from)?;
    if bytes.is_empty() {
        bail!("{name} is empty");
    }
    let packed_name = format!("{name}.gz");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&bytes)?;
    let packed = packer.finish()?;
    let plain = recipe.name == PLAIN && name == "circuit.zkey";
    let pays = !plain && bytes.len() >= PACKED_FROM && packed.len() * 4 <= bytes.len() * 3;
    let (keep, drop, bytes) = if pays {
        (&packed_name[..], name, packed)
    } else {
        (name, &packed_name[..], bytes)
    };
    fs::write(folder.join(keep), &bytes)?;
    if folder.join(drop).exists() {
        fs::remove_file(folder.join(drop))?;
    }
    Ok((keep.to_owned(), u64::try_from(bytes.len())?))
}

/// `path` as seen from `base`, which lies in the repository as the target folder does.
fn relative(path: &Path, base: &Path) -> Result<PathBuf> {
    let shared = path
        .components()
        .zip(base.components())
        .take_while(|(a, b)| a == b)
        .count();
    if shared == 0 {
        bail!(
            "{} has nothing in common with {}",
            path.display(),
            base.display()
        );
    }
    let up = base
        .components()
        .skip(shared)
        .map(|_| std::path::Component::ParentDir);
    Ok(up.chain(path.components().skip(shared)).collect())
}

fn readme(recipe: &Recipe, counts: &Counts, files: &[(String, u64)]) -> String {
    let Recipe {
        name,
        level,
        power,
        about,
    } = recipe;
    let points = |p: Points| format!("{}/{}", p.all, p.infinite);
    let [ic, a, b1, b2, c, h] = counts.points.map(points);
    let table: String = files
        .iter()
        .map(|(name, bytes)| format!("| `{name}` | {bytes} |\n"))
        .collect();
    let Counts {
        constraints,
        public,
        wires,
        domain,
        ..
    } = counts;
    format!(
        "# {name}

{about}

- constraints {constraints}, public values {public}, wires {wires} (the constant one included), domain {domain}
- points of the key / of these at infinity: IC {ic}, A {a}, B1 {b1}, B2 {b2}, C {c}, H {h}

| file | bytes |
| --- | --- |
{table}
The source `circuit.circom` and the inputs `input.json` were written for cuzk and are under its licence.

## How it was made

`cargo xtask testdata {name}`, with circom2 0.2.23 (circom 2.2.3) and snarkjs 0.7.6 from npm. In short,
with `circom2` started in `testdata/`:

    snarkjs powersoftau new bls12-381 {power} new.ptau
    snarkjs powersoftau beacon new.ptau beacon.ptau {BEACON} {BEACON_ROUNDS}
    snarkjs powersoftau prepare phase2 beacon.ptau pot_{power}.ptau
    circom2 {name}/circuit.circom --prime bls12381 --r1cs --wasm {level} -o OUT
    snarkjs wtns calculate circuit_js/circuit.wasm input.json witness.wtns
    snarkjs wtns check circuit.r1cs witness.wtns
    snarkjs groth16 setup circuit.r1cs pot_{power}.ptau circuit_0.zkey
    snarkjs zkey beacon circuit_0.zkey circuit.zkey {BEACON} {BEACON_ROUNDS}
    snarkjs zkey verify circuit.r1cs pot_{power}.ptau circuit.zkey
    snarkjs zkey export verificationkey circuit.zkey verification_key.json
    snarkjs groth16 prove circuit.zkey witness.wtns proof.json public.json
    snarkjs groth16 verify verification_key.json public.json proof.json

The beacon is public, so this key protects nothing. Everything but the proof comes out the same, byte for
byte, when it is made again.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths() {
        let from = |path, base| relative(Path::new(path), Path::new(base)).unwrap();
        assert_eq!(from("/a/target/x", "/a/testdata"), Path::new("../target/x"));
        assert_eq!(from("/a/b", "/a"), Path::new("b"));
    }

    #[test]
    fn every_recipe_has_its_source_and_every_folder_a_recipe() {
        let testdata = repo::root().join("testdata");
        for recipe in RECIPES {
            for file in ["circuit.circom", "input.json", "README.md"] {
                assert!(
                    testdata.join(recipe.name).join(file).is_file(),
                    "{}/{file}",
                    recipe.name
                );
            }
        }
        for entry in fs::read_dir(&testdata).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.join("circuit.circom").is_file() {
                assert!(
                    RECIPES.iter().any(|recipe| recipe.name == name),
                    "no recipe for {name}"
                );
            }
        }
    }
}
