//! `cargo xtask resources`: what each kernel costs on sm_90 against a recorded snapshot.
//!
//! Registers, spills, stack and shared memory are the assembler's words; instructions are counted in
//! the disassembly. The compiler is the pinned one, so that the figures are the same everywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::manifest::Target;
use super::ptx;
use super::toolkit::{self, Toolkit};
use crate::repo;

const TARGET: Target = Target::Cubin(90);

/// What is recorded of a kernel, in the order shown.
const FIGURES: [&str; 10] = [
    "registers",
    "spill_stores",
    "spill_loads",
    "stack",
    "shared",
    "code_bytes",
    // IMAD.WIDE and IMAD.HI: the half-rate multiplications.
    "wide",
    // Every other IMAD.
    "imad",
    // Every other instruction.
    "other",
    // Of those, loads from and stores to local memory.
    "local",
];

type Figures = BTreeMap<&'static str, u64>;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => check()?,
        ["--accept"] => accept()?,
        _ => bail!("resources takes --accept or nothing"),
    }
    Ok(ExitCode::SUCCESS)
}

fn snapshot() -> PathBuf {
    repo::root().join("kernels/resources.json")
}

/// Compares with the snapshot; an error where a figure has grown or is not recorded.
pub(crate) fn check() -> Result<()> {
    let (toolkit, measured) = measure()?;
    let text = fs::read_to_string(snapshot())
        .context("kernels/resources.json; record it with --accept")?;
    let recorded: Value = serde_json::from_str(&text)?;
    if recorded["toolkit"] != toolkit.as_str() {
        bail!(
            "kernels/resources.json was recorded with nvcc {}, this is {toolkit}; look at the change and --accept it",
            recorded["toolkit"]
        );
    }
    let (grown, shrunk) = compare(&recorded["kernels"], &measured);
    if !shrunk.is_empty() {
        println!(
            "less than recorded (--accept records it):\n{}",
            shrunk.join("\n")
        );
    }
    if !grown.is_empty() {
        bail!(
            "more than recorded (--accept records it):\n{}",
            grown.join("\n")
        );
    }
    println!("{} kernels within what is recorded", measured.len());
    Ok(())
}

fn accept() -> Result<()> {
    let (toolkit, measured) = measure()?;
    let kernels: Map<String, Value> = measured
        .iter()
        .map(|(entry, figures)| (entry.clone(), json!(figures)))
        .collect();
    // One kernel a line, so that a change of one is a diff of one.
    let lines: Vec<String> = kernels
        .iter()
        .map(|(entry, figures)| {
            let parts: Vec<String> = FIGURES
                .iter()
                .map(|name| format!("\"{name}\": {}", figures[name]))
                .collect();
            format!("    \"{entry}\": {{ {} }}", parts.join(", "))
        })
        .collect();
    let text = format!(
        "{{\n  \"toolkit\": \"{toolkit}\",\n  \"target\": \"{TARGET}\",\n  \"kernels\": {{\n{}\n  }}\n}}\n",
        lines.join(",\n")
    );
    fs::write(snapshot(), text)?;
    println!(
        "recorded {} kernels in kernels/resources.json",
        measured.len()
    );
    Ok(())
}

/// The differences: what has grown or come, what has shrunk or gone.
fn compare(recorded: &Value, measured: &BTreeMap<String, Figures>) -> (Vec<String>, Vec<String>) {
    let (mut grown, mut shrunk) = (Vec::new(), Vec::new());
    for (entry, figures) in measured {
        let Some(before) = recorded.get(entry) else {
            grown.push(format!("{entry}: not recorded"));
            continue;
        };
        let change = |wanted: fn(u64, u64) -> bool| {
            let changes: Vec<String> = FIGURES
                .iter()
                .filter_map(|name| {
                    let (old, new) = (before[name].as_u64().unwrap_or(0), figures[name]);
                    wanted(old, new).then(|| format!("{name} {old} -> {new}"))
                })
                .collect();
            (!changes.is_empty()).then(|| format!("{entry}: {}", changes.join(", ")))
        };
        grown.extend(change(|old, new| new > old));
        shrunk.extend(change(|old, new| new < old));
    }
    for entry in recorded.as_object().into_iter().flat_map(Map::keys) {
        if !measured.contains_key(entry) {
            shrunk.push(format!("{entry}: is gone"));
        }
    }
    (grown, shrunk)
}

fn measure() -> Result<(String, BTreeMap<String, Figures>)> {
    let toolkit = Toolkit::pinned()?;
    ptx::build(&toolkit, &[TARGET].into())?;
    let mut kernels = BTreeMap::new();
    for module in ptx::modules()? {
        let stem = ptx::folder().join(ptx::stem(&module.name, TARGET));
        // The stem has a dot of its own.
        let with = |extension: &str| PathBuf::from(format!("{}.{extension}", stem.display()));
        let log = fs::read_to_string(with("log"))?;
        let sass = repo::output(toolkit::cuobjdump()?.arg("-sass").arg(with("cubin")))?;
        let assembled = assembler_figures(&log)?;
        for (entry, counts) in instruction_counts(&sass) {
            let figures = assembled
                .get(&entry)
                .with_context(|| format!("the assembler's log does not have {entry}"))?;
            let mut all = figures.clone();
            all.extend(counts);
            kernels.insert(entry, all);
        }
    }
    Ok((toolkit.version, kernels))
}

/// Reads what `ptxas -v` says.
fn assembler_figures(log: &str) -> Result<BTreeMap<String, Figures>> {
    let mut kernels: BTreeMap<String, Figures> = BTreeMap::new();
    let mut current: Option<String> = None;
    // The number before each of the words.
    let number = |line: &str, word: &str| -> u64 {
        line.split_once(word)
            .and_then(|(before, _)| before.split_whitespace().next_back()?.parse().ok())
            .unwrap_or(0)
    };
    // Functions that are called have properties of their own; spills in them count for the entry.
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.insert(entry.clone(), Figures::new());
            current = Some(entry);
        }
        let Some(figures) = current.as_ref().and_then(|entry| kernels.get_mut(entry)) else {
            continue;
        };
        if line.contains(" bytes stack frame") {
            *figures.entry("stack").or_default() += number(line, " bytes stack frame");
            *figures.entry("spill_stores").or_default() += number(line, " bytes spill stores");
            *figures.entry("spill_loads").or_default() += number(line, " bytes spill loads");
        } else if line.contains("Used ") {
            figures.insert("registers", number(line, " registers"));
            figures.insert("shared", number(line, " bytes smem"));
        }
    }
    for (entry, figures) in &kernels {
        if !figures.contains_key("registers") || !figures.contains_key("stack") {
            bail!("the assembler's log is not understood at {entry}");
        }
    }
    Ok(kernels)
}

/// Counts instructions by entry in what `cuobjdump -sass` prints.
fn instruction_counts(sass: &str) -> BTreeMap<String, Figures> {
    let mut kernels = BTreeMap::new();
    for part in sass.split("Function : ").skip(1) {
        let (entry, body) = part.split_once('\n').unwrap_or((part, ""));
        let mut figures = Figures::from([
            ("code_bytes", 0),
            ("wide", 0),
            ("imad", 0),
            ("other", 0),
            ("local", 0),
        ]);
        let mut count = |name| *figures.get_mut(name).expect("named above") += 1;
        let mut end = 0;
        for line in body.lines() {
            let Some((address, instruction)) = instruction(line) else {
                continue;
            };
            let mnemonic = instruction
                .split_whitespace()
                .find(|word| !word.starts_with('@'))
                .unwrap_or_default()
                .trim_end_matches(';');
            if mnemonic == "NOP" {
                // Padding, for the most part.
                continue;
            }
            end = address + 16;
            if mnemonic.starts_with("IMAD.WIDE") || mnemonic.starts_with("IMAD.HI") {
                count("wide");
            } else if mnemonic.starts_with("IMAD") {
                count("imad");
            } else {
                count("other");
            }
            if mnemonic.starts_with("LDL") || mnemonic.starts_with("STL") {
                count("local");
            }
        }
        figures.insert("code_bytes", end);
        kernels.insert(entry.trim().to_owned(), figures);
    }
    kernels
}

/// `/*01a0*/  @!P0 STS [R0], RZ ;  /* 0x.. */`: the address and the instruction.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (address, rest) = rest.split_once("*/")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (text, _) = rest.split_once(';')?;
    Some((address, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assembler_is_understood() {
        let log = "
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'cuzk_a' for 'sm_90'
ptxas info    : Function properties for cuzk_a
    8 bytes stack frame, 4 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 28 registers, used 1 barriers, 64 bytes smem
ptxas info    : Compiling entry function 'cuzk_b' for 'sm_90'
ptxas info    : Function properties for cuzk_b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
";
        let kernels = assembler_figures(log).unwrap();
        let values = |entry: &str| {
            let names = [
                "registers",
                "stack",
                "spill_stores",
                "spill_loads",
                "shared",
            ];
            names.map(|name| kernels[entry][name])
        };
        assert_eq!(values("cuzk_a"), [28, 8, 4, 16, 64]);
        assert_eq!(values("cuzk_b"), [10, 0, 0, 0, 0]);
    }

    #[test]
    fn instructions_are_counted() {
        let sass = "
		Function : cuzk_a
	.headerflags	@\"EF_CUDA_SM90\"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                         /* 0x00000a00ff017b82 */
                                                                                  /* 0x000fe20000000800 */
        /*0010*/                   IMAD.WIDE.U32.X R2, P0, R5, 0x4, R2, P0 ;      /* 0x0000000405027825 */
        /*0020*/                   IMAD R5, R0, UR5, R7 ;                         /* 0x0000000500057c24 */
        /*0030*/              @!P0 STL [R1], RZ ;                                 /* 0x000000ff00008388 */
        /*0040*/                   NOP;                                           /* 0x0000000000007918 */
";
        let counts = &instruction_counts(sass)["cuzk_a"];
        let values = ["wide", "imad", "other", "local", "code_bytes"].map(|name| counts[name]);
        assert_eq!(values, [1, 1, 2, 1, 64]);
    }

    #[test]
    fn growth_is_told_apart_from_shrinking() {
        let figures: Figures = FIGURES.iter().map(|name| (*name, 10)).collect();
        let measured =
            BTreeMap::from([("a".to_owned(), figures.clone()), ("b".to_owned(), figures)]);
        let mut same = json!({});
        for name in FIGURES {
            same[name] = json!(10);
        }
        let recorded = json!({ "a": same, "b": same });
        assert_eq!(compare(&recorded, &measured), (vec![], vec![]));
        let mut other = recorded.clone();
        other["a"]["registers"] = json!(8);
        other["b"]["wide"] = json!(12);
        other["c"] = json!({});
        let (grown, shrunk) = compare(&other, &measured);
        assert_eq!(grown, ["a: registers 8 -> 10"]);
        assert_eq!(shrunk, ["b: wide 12 -> 10", "c: is gone"]);
        assert_eq!(compare(&json!({}), &measured).0.len(), 2);
    }
}
