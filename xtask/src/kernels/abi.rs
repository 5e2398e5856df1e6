//! `cargo xtask abi`: what the device code takes against what Rust declares.
//!
//! Two comparisons. With the PTX: the same entries, and for each the same number of parameters, of
//! the same sizes and alignments, and the same block size. With the C++ types: each declaration is
//! written out as a C++ prototype beside the module's source; two `extern "C"` functions of one name
//! and different parameters do not compile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use super::manifest::Target;
use super::toolkit::Toolkit;
use super::{ptx, sources};
use crate::repo;

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        bail!("abi takes no argument, found {arg}");
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// A parameter by its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parameter {
    bytes: u32,
    align: u32,
}

/// A kernel as Rust declares it.
#[derive(Debug)]
struct Declared {
    module: String,
    threads: u32,
    parameters: Vec<Parameter>,
    c_types: Vec<String>,
}

/// A kernel as the PTX has it.
#[derive(Debug, PartialEq, Eq)]
struct Compiled {
    module: String,
    /// Of `.maxntid`.
    threads: Option<u32>,
    parameters: Vec<Parameter>,
}

pub(crate) fn check() -> Result<()> {
    let target = Target::Ptx(ptx::OLDEST);
    ptx::build(&Toolkit::find(None)?, &[target].into())?;
    let modules = ptx::modules()?;
    let mut compiled = BTreeMap::new();
    for module in &modules {
        let path = ptx::folder().join(format!("{}.ptx", ptx::stem(&module.name, target)));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (entry, kernel) in entries_of(&module.name, &text)? {
            if compiled.insert(entry.clone(), kernel).is_some() {
                bail!("two kernels are called {entry}");
            }
        }
    }
    let program = repo::built_as_tested("--example", "declarations")?;
    let list = repo::output(&mut Command::new(program))?;
    let declared = declarations(&list)?;
    let faults = compare(&declared, &compiled);
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    for module in &modules {
        compile_prototypes(module, &declared)?;
    }
    println!(
        "{} kernels: declarations and device code agree",
        declared.len()
    );
    Ok(())
}

/// Reads the list of the example `declarations` of cuzk-kernels.
fn declarations(list: &str) -> Result<BTreeMap<String, Declared>> {
    let mut kernels: BTreeMap<String, Declared> = BTreeMap::new();
    let mut last = None;
    for line in list.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["kernel", module, entry, threads] => {
                let kernel = Declared {
                    module: module.to_owned(),
                    threads: threads.parse()?,
                    parameters: Vec::new(),
                    c_types: Vec::new(),
                };
                if kernels.insert(entry.to_owned(), kernel).is_some() {
                    bail!("{entry} is declared twice");
                }
                last = Some(entry.to_owned());
            }
            ["parameter", bytes, align, c_type] => {
                let kernel = last.as_ref().and_then(|entry| kernels.get_mut(entry));
                let kernel = kernel.context("a parameter before any kernel")?;
                kernel.parameters.push(Parameter {
                    bytes: bytes.parse()?,
                    align: align.parse()?,
                });
                kernel.c_types.push(c_type.to_owned());
            }
            _ => bail!("not understood: {line}"),
        }
    }
    Ok(kernels)
}

/// The entries of a PTX file.
fn entries_of(module: &str, text: &str) -> Result<Vec<(String, Compiled)>> {
    let mut entries = Vec::new();
    for rest in text.split(".entry ").skip(1) {
        let (name, rest) = rest
            .split_once('(')
            .context("an entry without parameters")?;
        let (list, rest) = rest
            .split_once("\n)")
            .or_else(|| rest.split_once(')'))
            .context("an open list")?;
        let parameters = list
            .split(',')
            .map(str::trim)
            .filter(|parameter| !parameter.is_empty())
            .map(|text| parameter(text).with_context(|| format!("{name}: parameter \"{text}\"")))
            .collect::<Result<_>>()?;
        let head = rest.split_once('{').map_or(rest, |(head, _)| head);
        let threads = head
            .split_once(".maxntid ")
            .and_then(|(_, numbers)| numbers.lines().next())
            .map(|numbers| {
                let sizes = numbers.split(',').map(|size| size.trim().parse::<u32>());
                sizes.product::<Result<u32, _>>()
            })
            .transpose()?;
        let kernel = Compiled {
            module: module.to_owned(),
            threads,
            parameters,
        };
        entries.push((name.trim().to_owned(), kernel));
    }
    Ok(entries)
}

/// `.param .u64 .ptr .global .align 1 name` or `.param .align 16 .b8 name[32]`.
fn parameter(text: &str) -> Result<Parameter> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let scalar = words.iter().find_map(|word| {
        let bits = word.strip_prefix(".u").or(word.strip_prefix(".s"))?;
        let bits = bits.parse::<u32>().ok()?;
        Some(bits / 8)
    });
    if let Some(bytes) = scalar {
        return Ok(Parameter {
            bytes,
            align: bytes,
        });
    }
    if !words.contains(&".b8") {
        bail!("of no known type");
    }
    let after_align = words.iter().skip_while(|word| **word != ".align").nth(1);
    let align = after_align.context("no alignment")?.parse()?;
    let name = words.last().context("no name")?;
    let (_, length) = name.split_once('[').context("no length")?;
    Ok(Parameter {
        bytes: length.trim_end_matches(']').parse()?,
        align,
    })
}

fn compare(
    declared: &BTreeMap<String, Declared>,
    compiled: &BTreeMap<String, Compiled>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (entry, kernel) in compiled {
        let Some(ours) = declared.get(entry) else {
            faults.push(format!(
                "{entry} of kernels/src/{}.cu is not declared in cuzk-kernels",
                kernel.module
            ));
            continue;
        };
        if ours.module != kernel.module {
            faults.push(format!(
                "{entry} is in {}.cu, not in {}.cu",
                kernel.module, ours.module
            ));
        }
        if kernel.threads != Some(ours.threads) {
            let found = kernel
                .threads
                .map_or("none".to_owned(), |threads| threads.to_string());
            faults.push(format!(
                "{entry}: declared for {} threads a block, its __launch_bounds__ is {found}",
                ours.threads
            ));
        }
        if ours.parameters.len() != kernel.parameters.len() {
            faults.push(format!(
                "{entry} takes {} parameters, declared are {}",
                kernel.parameters.len(),
                ours.parameters.len()
            ));
            continue;
        }
        for (at, (ours, theirs)) in ours.parameters.iter().zip(&kernel.parameters).enumerate() {
            if ours != theirs {
                faults.push(format!(
                    "{entry}: parameter {at} is {theirs:?}, declared {ours:?}"
                ));
            }
        }
    }
    for (entry, kernel) in declared {
        if !compiled.contains_key(entry) {
            faults.push(format!(
                "{entry} is declared, but kernels/src/{}.cu has no such entry",
                kernel.module
            ));
        }
    }
    faults
}

/// Has the host's C++ compiler compare the types.
fn compile_prototypes(
    module: &sources::Module,
    declared: &BTreeMap<String, Declared>,
) -> Result<()> {
    let mut text = format!("#include \"{}\"\n", module.path.display());
    for (entry, kernel) in declared
        .iter()
        .filter(|(_, kernel)| kernel.module == module.name)
    {
        writeln!(
            text,
            "extern \"C\" void {entry}({});",
            kernel.c_types.join(", ")
        )?;
    }
    let file = repo::scratch("abi")?.join(format!("{}.cpp", module.name));
    fs::write(&file, text)?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    repo::output(
        Command::new(compiler)
            .args([
                "-std=c++20",
                "-fsyntax-only",
                "-Wno-unknown-pragmas",
                "-x",
                "c++",
                "-I",
            ])
            .arg(repo::root().join("kernels/include"))
            .arg("-I")
            .arg(repo::root().join("crates/cuzk-kernels/emulator"))
            .arg(&file),
    )
    .with_context(|| format!("the declarations of {} in C++", module.name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
.visible .entry cuzk_x(
	.param .u64 .ptr .global .align 1 cuzk_x_param_0,
	.param .u64 cuzk_x_param_1,
	.param .u32 cuzk_x_param_2,
	.param .align 16 .b8 cuzk_x_param_3[48]
)
.maxntid 128, 2, 1
.minnctapersm 4
{
	ret;
}
.visible .entry cuzk_y()
{
	ret;
}
";

    fn declared(list: &str) -> BTreeMap<String, Declared> {
        declarations(list).unwrap()
    }

    const LIST: &str = "kernel m cuzk_x 256
parameter 8 8 const cuzk::Fp*
parameter 8 8 cuzk::Fp*
parameter 4 4 cuzk::u32
parameter 48 16 cuzk::Fp
";

    #[test]
    fn entries_are_read() {
        let entries = entries_of("m", PTX).unwrap();
        assert_eq!(entries.len(), 2);
        let (name, kernel) = &entries[0];
        assert_eq!((name.as_str(), kernel.threads), ("cuzk_x", Some(256)));
        let sizes: Vec<_> = kernel
            .parameters
            .iter()
            .map(|p| (p.bytes, p.align))
            .collect();
        assert_eq!(sizes, [(8, 8), (8, 8), (4, 4), (48, 16)]);
        assert_eq!(entries[1].1.parameters, []);
        assert_eq!(entries[1].1.threads, None);
    }

    #[test]
    fn every_difference_is_told() {
        let compiled: BTreeMap<_, _> =
            entries_of("m", PTX.split(".visible .entry cuzk_y").next().unwrap())
                .unwrap()
                .into_iter()
                .collect();
        assert_eq!(compare(&declared(LIST), &compiled), Vec::<String>::new());
        for (from, to, part) in [
            ("cuzk_x 256", "cuzk_x 128", "128 threads a block"),
            ("kernel m", "kernel n", "is in m.cu"),
            ("parameter 4 4", "parameter 8 8", "parameter 2"),
            ("parameter 48 16", "parameter 48 8", "parameter 3"),
            ("parameter 4 4 cuzk::u32\n", "", "takes 4 parameters"),
            ("cuzk_x", "cuzk_z", "is not declared"),
        ] {
            let faults = compare(&declared(&LIST.replacen(from, to, 1)), &compiled).join("\n");
            assert!(faults.contains(part), "{faults}");
        }
    }
}
