//! Running the binary, and looking at what it left.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A finished run.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(mut command: Command) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the binary runs");
        Self {
            code: status.code(),
            stdout: String::from_utf8(stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(stderr).expect("stderr is UTF-8"),
        }
    }

    /// Asserts the exit code and that stderr holds all of `words`.
    #[track_caller]
    pub fn expect(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no \"{word}\" in {self:#?}");
        }
        if code != 0 {
            assert!(!self.stderr.contains("panic"), "{self:#?}");
        }
        self
    }

    /// Success without a word on stderr.
    #[track_caller]
    pub fn succeeds(self) -> Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self.expect(0, &[])
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }
}

/// The binary, with no `CUZK_*` variable of the test run.
pub fn cuzk<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(args: I) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CUZK_")) {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(args: I) -> Run {
    Run::of(cuzk(args))
}

/// A folder of inputs and one of outputs.
pub struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(dir.path().join("out")).expect("a folder in it");
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join("out").join(name)
    }

    /// Writes an input.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("an input is written");
        path
    }

    /// Names of what lies in the folder of outputs.
    pub fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("out"))
            .expect("the folder of outputs")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[track_caller]
    pub fn expect_nothing_left(&self) {
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// `prove` with both outputs; then the outputs are there, or nothing is.
    #[track_caller]
    pub fn prove(&self, inputs: &[(&str, &Path)], more: &[&str]) -> Run {
        let (proof, public) = (self.out("proof.json"), self.out("public.json"));
        let mut command = cuzk(["prove"]);
        for (flag, path) in inputs {
            command.arg(flag).arg(path);
        }
        command.arg("--proof").arg(&proof);
        command.arg("--public").arg(&public);
        command.args(more);
        let run = Run::of(command);
        if run.code == Some(0) {
            assert_eq!(self.left(), ["proof.json", "public.json"], "{run:#?}");
        } else {
            self.expect_nothing_left();
            assert_eq!(run.stdout, "", "{run:#?}");
        }
        run
    }

    /// `verify` of those outputs.
    pub fn verify(&self, key: (&str, &Path)) -> Run {
        let mut command = cuzk(["verify"]);
        command.arg(key.0).arg(key.1);
        command.arg("--proof").arg(self.out("proof.json"));
        command.arg("--public").arg(self.out("public.json"));
        Run::of(command)
    }
}
