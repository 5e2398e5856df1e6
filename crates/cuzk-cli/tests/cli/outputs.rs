//! Where the outputs of many proofs go, disks that are full, and names that are odd.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuzk_formats::arkworks::Compression;
use cuzk_groth16::synth::{KeyFamily, Shape};

use crate::files::{Files, Synthetic, pk_bytes};
use crate::run::{Run, Scratch, cuzk, run};

/// `mul1` with so many copies of its witness in a folder.
struct Many {
    scratch: Scratch,
    files: Files,
    folder: PathBuf,
}

impl Many {
    fn new(names: &[&[u8]]) -> Self {
        let (scratch, files) = (Scratch::new(), Files::of("mul1"));
        let folder = scratch.path("witnesses");
        fs::create_dir(&folder).unwrap();
        for name in names {
            fs::copy(&files.wtns, folder.join(OsStr::from_bytes(name))).unwrap();
        }
        Self {
            scratch,
            files,
            folder,
        }
    }

    fn prove(&self, witnesses: &Path) -> Command {
        let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
        command
            .arg(&self.files.zkey)
            .arg("--witnesses")
            .arg(witnesses);
        command
    }
}

/// The command under a limit of the shell's `ulimit`.
fn limited(limit: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// No output of many proofs is one of their inputs, or one of the others.
#[test]
fn no_output_of_many_proofs_is_an_input() {
    let many = Many::new(&[b"a.wtns", b"b.wtns"]);
    let scratch = &many.scratch;
    let list = scratch.file("list", "witnesses/a.wtns\nwitnesses/b.wtns\n");
    let expect = |command: &mut Command, words: &[&str]| {
        let program = std::mem::replace(command, Command::new("true"));
        Run::of(program).expect(2, words);
    };
    let witness = many.folder.join("b.wtns");
    for (target, witnesses) in [(&witness, &many.folder), (&witness, &list), (&list, &list)] {
        let before = fs::read(target).unwrap();
        let mut command = many.prove(witnesses);
        command.arg("--timeline").arg(target);
        expect(&mut command, &["--timeline", "is one of the inputs"]);
        assert_eq!(fs::read(target).unwrap(), before);
    }
    let mut command = many.prove(&list);
    command.arg("--out-dir").arg(scratch.path("out"));
    command.arg("--timeline").arg(scratch.out("b.proof.json"));
    expect(&mut command, &["is the output of --timeline, too"]);
    scratch.expect_nothing_left();

    // Key and constraints where results would go.
    for (name, flag, from) in [
        ("a.proof.json", "--zkey", &many.files.zkey),
        ("a.public.json", "--r1cs", &many.files.r1cs),
    ] {
        let place = scratch.out(name);
        fs::copy(from, &place).unwrap();
        let mut command = cuzk(["prove", "--device", "cpu"]);
        command.arg(flag).arg(&place);
        if flag == "--r1cs" {
            command.arg("--zkey").arg(&many.files.zkey);
        }
        command.arg("--witnesses").arg(&list);
        command.arg("--out-dir").arg(scratch.path("out"));
        expect(&mut command, &["--out-dir", "is one of the inputs"]);
        assert_eq!(fs::read(&place).unwrap(), fs::read(from).unwrap());
        fs::remove_file(place).unwrap();
    }
    // Results that are there already are written over.
    for _ in 0..2 {
        let mut command = many.prove(&list);
        command.arg("--out-dir").arg(scratch.path("out"));
        Run::of(command).succeeds();
        assert_eq!(scratch.left().len(), 4);
    }
}

/// What the format of the proofs follows from is known before the key is read: also of a prepared one.
#[test]
fn results_are_written_as_the_tools_of_the_key_do() {
    let scratch = Scratch::new();
    let made = Synthetic::new(&scratch, KeyFamily::Arkworks, Shape::Dense, 3);
    let pk = scratch.file("key", pk_bytes(&made.key, Compression::Compressed));
    let key = scratch.path("key.cuzk");
    let mut command = cuzk(["prepare", "--pk"]);
    command.arg(pk).arg("--r1cs").arg(&made.r1cs_path);
    command.arg("--out").arg(&key);
    Run::of(command).succeeds();
    let list = scratch.file("list", made.wtns_path.as_os_str().as_bytes());
    let mut command = cuzk(["prove", "--device", "cpu", "--prepared"]);
    command.arg(key).arg("--witnesses").arg(list);
    command.arg("--out-dir").arg(scratch.path("out"));
    Run::of(command).succeeds();
    let left = scratch.left();
    assert!(left[0].ends_with(".proof.bin"), "{left:?}");
    assert_eq!(fs::read(scratch.out(&left[0])).unwrap().len(), 192);
}

/// A folder that cannot be had is refused before anything is read; one that was made for nothing goes again.
#[test]
fn the_folder_of_results_is_made_first_and_not_left_empty() {
    let many = Many::new(&[b"a.wtns"]);
    let file = many.scratch.file("file", "");
    let mut command = many.prove(&many.folder);
    command.arg("--out-dir").arg(&file);
    Run::of(command).expect(2, &["--out-dir", "file: the folder cannot be made"]);
    let mut command = cuzk(["synth", "4", "--out-dir"]);
    command.arg(file.join("in"));
    Run::of(command).expect(2, &["--out-dir", "the folder cannot be made"]);

    let new = many.scratch.path("new");
    fs::write(many.folder.join("a.wtns"), "").unwrap();
    let mut command = many.prove(&many.folder);
    command.arg("--out-dir").arg(new.join("deep"));
    Run::of(command).expect(3, &["a.wtns", "0 bytes"]);
    assert!(!new.exists());
    let mut command = cuzk(["synth", "4", "--host-limit", "1MiB", "--out-dir"]);
    command.arg(&new);
    Run::of(command).expect(6, &["out of memory"]);
    assert!(!new.exists());
}

/// Names are bytes; what of them a terminal would obey is shown escaped, on stdout as on stderr.
#[test]
fn witnesses_of_any_name_are_proved() {
    let many = Many::new(&[
        b"\xff.wtns",
        b"\xfe.wtns",
        b"two words.wtns",
        b"\x1b[31m\nred.wtns",
    ]);
    let mut command = many.prove(&many.folder);
    command.arg("--out-dir").arg(many.scratch.path("out"));
    let run = Run::of(command).succeeds();
    assert!(!run.stdout.contains('\u{1b}'), "{run:#?}");
    let verified = run
        .stdout
        .lines()
        .filter(|line| line.contains(" verified "));
    assert_eq!(verified.count(), 4, "{run:#?}");
    for name in [&b"\xff"[..], b"\xfe", b"two words", b"\x1b[31m\nred"] {
        for ending in [&b".proof.json"[..], b".public.json"] {
            let name = [name, ending].concat();
            let path = many.scratch.path("out").join(OsStr::from_bytes(&name));
            serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).unwrap();
        }
    }
    // With something to note.
    let key = many.scratch.path("\u{1b}[31m\nverified: no");
    let mut bytes = fs::read(&many.files.zkey).unwrap();
    bytes.push(0);
    fs::write(&key, bytes).unwrap();
    let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
    command.arg(&key).arg("--wtns").arg(&many.files.wtns);
    let mut inspect = cuzk(["inspect"]);
    inspect.arg(&key);
    for command in [command, inspect] {
        let run = Run::of(command).expect(0, &["WARN"]);
        for text in [&run.stdout, &run.stderr] {
            let is_shown = text.contains("\\u{1b}[31m\\nverified: no");
            assert!(is_shown && !text.contains('\u{1b}'), "{run:#?}");
        }
    }
}

/// CS-09: a list is no longer than lists are, and no other kind of file.
#[test]
fn what_is_no_list_of_witnesses_is_refused() {
    let many = Many::new(&[]);
    let list = |path: &Path| Run::of(many.prove(path));
    list(Path::new("/dev/zero")).expect(3, &["/dev/zero", "at most 67108864 bytes"]);
    list(Path::new("/dev/null")).expect(3, &["it has no witnesses"]);
    list(&many.folder).expect(3, &["it has no witnesses"]);
    list(&many.files.wtns).expect(3, &["witness.wtns", "found a witness (.wtns)"]);
    list(&many.scratch.file("up", "..\n")).expect(3, &[".. names no file"]);
}

/// What is odd about a witness is noted of each, as of a single one.
#[test]
fn witnesses_of_a_batch_are_noted_too() {
    let many = Many::new(&[b"a.wtns", b"b.wtns"]);
    let mut bytes = fs::read(&many.files.wtns).unwrap();
    bytes.extend([0; 5]);
    fs::write(many.folder.join("b.wtns"), bytes).unwrap();
    let mut command = many.prove(&many.folder);
    command.arg("--json");
    let run = Run::of(command).expect(0, &["WARN", "b.wtns"]);
    let last: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    let notes = last["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{run:#?}");
    assert!(notes[0].as_str().unwrap().contains("b.wtns"));
    let mut command = many.prove(&many.folder);
    command.arg("--strict");
    Run::of(command).expect(3, &["b: ", "strict"]);
}

/// A witness of another circuit is told by its header, before it is loaded.
#[test]
fn witnesses_of_other_circuits_fail_alone() {
    let many = Many::new(&[b"a.wtns"]);
    let other = Files::of("linear");
    fs::copy(&other.wtns, many.folder.join("b.wtns")).unwrap();
    let mut command = many.prove(&many.folder);
    command.arg("--out-dir").arg(many.scratch.path("out"));
    Run::of(command).expect(
        4,
        &["b: the witness is of another circuit", "circuit.zkey has 4"],
    );
    assert_eq!(many.scratch.left(), ["a.proof.json", "a.public.json"]);
}

/// The partitions of a proof may be more than the files that a process may hold open.
#[test]
fn more_results_than_open_files_are_written() {
    let scratch = Scratch::new();
    let mut command = cuzk([
        "prove",
        "--device",
        "cpu",
        "--synthetic",
        "2",
        "--threads",
        "1",
    ]);
    command.args(["--partitions", "60", "--out-dir"]);
    command.arg(scratch.path("out"));
    Run::of(limited("-n 40", &command)).succeeds();
    assert_eq!(scratch.left().len(), 120);
}

/// A disk that is full is no bad input, and the output is named, not what it was called meanwhile.
#[test]
fn a_file_that_outgrows_its_limit_is_named_and_leaves_nothing() {
    let scratch = Scratch::new();
    let out = scratch.out("key.cuzk");
    let mut prepare = cuzk(["prepare", "--synthetic", "8", "--threads", "1", "--out"]);
    prepare.arg(&out);
    let mut synth = cuzk([
        "synth",
        "8",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--out-dir",
    ]);
    synth.arg(scratch.path("out"));
    for (command, name) in [(prepare, "key.cuzk"), (synth, "circuit.")] {
        // Of 512 bytes, or of 1024: some shells differ.
        let run = Run::of(limited("-f 16", &command));
        let run = run.expect(7, &[name, "cannot write it", "File too large"]);
        assert!(!run.stderr.contains(".cuzk-"), "{run:#?}");
        scratch.expect_nothing_left();
    }
}

/// A result that cannot be written ends a batch: no more is begun, and the last line says how far it came.
#[test]
fn a_batch_whose_results_find_no_room_stops_and_sums_up() {
    let names: Vec<String> = (0..30).map(|i| format!("w{i:02}.wtns")).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let many = Many::new(&names);
    let mut command = many.prove(&many.folder);
    command.args(["--threads", "1", "--json", "--out-dir"]);
    command.arg(many.scratch.path("out"));
    command.arg("--timeline").arg(many.scratch.path("run.json"));
    // Below the length of a proof, in either unit.
    let run = Run::of(limited("-f 1", &command));
    let run = run.expect(
        7,
        &["w00: ", ".proof.json: cannot write it: File too large"],
    );
    let lines = run.stdout.lines();
    let lines: Vec<serde_json::Value> = lines.map(|l| serde_json::from_str(l).unwrap()).collect();
    let (last, errors) = lines.split_last().unwrap();
    assert_eq!(last["proved"], 0);
    assert!(run.stderr.contains("run.json: cannot write it"), "{run:#?}");
    assert_eq!(last["timeline_path"], serde_json::Value::Null);
    let failed = last["failed"].as_u64().unwrap();
    assert_eq!(errors.len() as u64, failed);
    assert!((1..10).contains(&failed), "{run:#?}");
    assert_eq!(last["not_begun"].as_u64().unwrap(), 30 - failed);
    many.scratch.expect_nothing_left();
}

/// A timeline that finds no room is said to be lost; the proof is not.
#[test]
fn a_timeline_without_room_takes_no_proof_along() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let mut command = cuzk(["prove", "--device", "cpu", "--json", "--zkey"]);
    command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
    command.arg("--timeline").arg(scratch.out("run.json"));
    let run = Run::of(limited("-f 0", &command));
    let run = run.expect(7, &["run.json: cannot write it", "File too large"]);
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["verified"], true);
    assert!(result["proof"]["pi_a"].is_array(), "{run:#?}");
    assert_eq!(result["timeline_path"], serde_json::Value::Null);
    scratch.expect_nothing_left();
}

/// A reader that has gone away ends a batch quietly.
#[test]
fn a_batch_into_a_closed_stdout_is_quiet() {
    let many = Many::new(&[b"a.wtns", b"b.wtns"]);
    for more in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = many.prove(&many.folder);
        let output = command
            .args(more)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return;
    };
    let mut command = many.prove(&many.folder);
    let output = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write the result"), "{stderr}");
}

/// Variables that say where results go of the other way of proving have no effect.
#[test]
fn variables_of_many_proofs_do_not_hold_up_one() {
    let many = Many::new(&[b"a.wtns"]);
    let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
    command
        .arg(&many.files.zkey)
        .arg("--wtns")
        .arg(&many.files.wtns);
    command.env("CUZK_OUT_DIR", many.scratch.path("out"));
    command.env("CUZK_PARTITIONS", "2");
    Run::of(command).succeeds();
    let mut command = many.prove(&many.folder);
    command.env("CUZK_PROOF", many.scratch.out("proof.json"));
    command.env("CUZK_PUBLIC", many.scratch.out("public.json"));
    Run::of(command).succeeds();
    many.scratch.expect_nothing_left();
    run(["prove", "--synthetic", "4", "--out-dir", "x"]).expect(2, &["--out-dir is for many"]);
}
