//! Many proofs with one key.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{Witness, wtns};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::files::Files;
use crate::run::{Run, Scratch, cuzk};

fn product(a: u64, b: u64) -> Scalar {
    (Fr::from(a) * Fr::from(b)).into()
}

/// A witness of `testdata/mul1`: ONE, c = a b, a, b; a wrong c where that is asked for.
fn witness(a: u64, b: u64, wrong: u64) -> Vec<u8> {
    let values = vec![
        Scalar::ONE,
        product(a, b + wrong),
        Fr::from(a).into(),
        Fr::from(b).into(),
    ];
    let mut bytes = Vec::new();
    wtns::write(&Witness::new(values), &mut bytes).unwrap();
    bytes
}

/// A folder of so many witnesses; those of `wrong` violate the constraint.
fn folder(scratch: &Scratch, count: u64, wrong: &[u64]) -> PathBuf {
    let folder = scratch.path("witnesses");
    std::fs::create_dir(&folder).unwrap();
    for index in 0..count {
        let bytes = witness(index + 2, 99, u64::from(wrong.contains(&index)));
        std::fs::write(folder.join(format!("w{index:03}.wtns")), bytes).unwrap();
    }
    folder
}

fn prove(scratch: &Scratch, files: &Files, witnesses: &PathBuf) -> Command {
    let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
    command.arg(&files.zkey).arg("--r1cs").arg(&files.r1cs);
    command.arg("--witnesses").arg(witnesses);
    command.arg("--out-dir").arg(scratch.path("out"));
    command
}

fn lines(run: &Run) -> Vec<Value> {
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// WP-16: each result is that of its own witness.
#[test]
fn every_witness_of_a_folder_gets_its_own_proof() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let witnesses = folder(&scratch, 5, &[]);
    let mut command = prove(&scratch, &files, &witnesses);
    command.args(["--workers-per-device", "3", "--concurrency", "4", "--json"]);
    let run = Run::of(command).succeeds();
    let lines = lines(&run);
    let (summary, results) = lines.split_last().unwrap();
    assert_eq!(summary["proved"], 5);
    assert_eq!(summary["workers_per_device"], 3);
    let mut names: Vec<_> = results
        .iter()
        .map(|line| line["witness"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["w000", "w001", "w002", "w003", "w004"]);
    assert!(results.iter().all(|line| line["verified"] == true));
    for index in 0..5 {
        let public = scratch.out(&format!("w{index:03}.public.json"));
        let text = std::fs::read_to_string(&public).unwrap();
        let values: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(values, [(99 * (index + 2)).to_string()]);
        let mut verify = cuzk(["verify", "--zkey"]);
        verify.arg(&files.zkey).arg("--public").arg(&public);
        verify
            .arg("--proof")
            .arg(scratch.out(&format!("w{index:03}.proof.json")));
        Run::of(verify).succeeds();
    }
}

#[test]
fn a_witness_that_fails_leaves_the_others_alone() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let witnesses = folder(&scratch, 4, &[2]);
    std::fs::write(witnesses.join("a_cut.wtns"), &witness(1, 2, 0)[..40]).unwrap();
    let mut command = prove(&scratch, &files, &witnesses);
    command.arg("--json");
    let run = Run::of(command);
    // The exit code is that of the first failure.
    assert!(matches!(run.code, Some(3 | 4)), "{run:#?}");
    assert!(
        run.stderr
            .contains("w002: the witness does not satisfy the circuit"),
        "{run:#?}"
    );
    assert!(run.stderr.contains("a_cut"), "{run:#?}");
    let lines = lines(&run);
    let errors: Vec<_> = lines
        .iter()
        .filter(|line| line["error"].is_string())
        .collect();
    assert_eq!(errors.len(), 2);
    let summary = lines.last().unwrap();
    assert_eq!(
        (&summary["proved"], &summary["failed"]),
        (&3.into(), &2.into())
    );
    let proofs: Vec<_> = scratch
        .left()
        .into_iter()
        .filter(|name| name.ends_with("proof.json"))
        .collect();
    assert_eq!(
        proofs,
        ["w000.proof.json", "w001.proof.json", "w003.proof.json"]
    );
    assert_eq!(scratch.left().len(), 6);
}

#[test]
fn the_partitions_of_a_proof_are_written_together_or_not_at_all() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let witnesses = folder(&scratch, 6, &[3]);
    let mut command = prove(&scratch, &files, &witnesses);
    command.args(["--partitions", "2"]);
    Run::of(command).expect(4, &["w003: the witness does not satisfy"]);
    let proofs: Vec<_> = scratch
        .left()
        .into_iter()
        .filter(|name| name.ends_with("proof.json"))
        .collect();
    let expected = ["w000", "w001", "w004", "w005"].map(|name| format!("{name}.proof.json"));
    assert_eq!(proofs, expected);
    let mut command = prove(&scratch, &files, &witnesses);
    command.args(["--partitions", "4"]);
    Run::of(command).expect(2, &["6 witnesses do not make whole proofs of 4 partitions"]);
}

#[test]
fn synthetic_partitions_are_proved() {
    let run = Run::of(cuzk([
        "prove",
        "--device",
        "cpu",
        "--synthetic",
        "5",
        "--partitions",
        "3",
        "--json",
    ]))
    .succeeds();
    let lines = lines(&run);
    let partitions: Vec<_> = lines[..3]
        .iter()
        .map(|line| line["partition"].as_u64())
        .collect();
    assert_eq!(partitions, [Some(0), Some(1), Some(2)]);
    assert!(lines[..3].iter().all(|line| line["proof"].is_object()));
}

/// CS-06: at the first signal no more proofs are begun, and those begun are written.
#[test]
fn a_signal_ends_a_batch_after_the_proofs_begun() {
    let files = Files::of("mul1");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let scratch = Scratch::new();
        let witnesses = folder(&scratch, 900, &[]);
        let mut command = prove(&scratch, &files, &witnesses);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Proofs are being written by then.
        while scratch
            .left()
            .iter()
            .filter(|name| name.starts_with('w'))
            .count()
            < 4
        {
            thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let left = scratch.left();
        assert!(left.len() < 1800, "it went on to the end");
        let of = |ending: &str| -> Vec<String> {
            let names = left.iter().filter_map(|name| name.strip_suffix(ending));
            names.map(str::to_owned).collect()
        };
        assert_eq!(of(".proof.json"), of(".public.json"));
        assert_eq!(left.len(), 2 * of(".proof.json").len(), "{left:?}");
    }
}

#[test]
fn a_second_signal_ends_a_batch_at_once() {
    let scratch = Scratch::new();
    let mut command = cuzk(["prove", "--device", "cpu", "--synthetic", "14"]);
    // One proof of many partitions: it has been begun, and takes long.
    command
        .args(["--partitions", "400", "--out-dir"])
        .arg(scratch.path("out"));
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .arg("-v");
    let mut child = command.spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    scratch.expect_nothing_left();
}

/// What is said of the engine holds for one proof too, or is refused.
#[test]
fn one_proof_takes_what_the_engine_takes() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let prove = || {
        let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
        command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
        command
    };
    let mut command = prove();
    command.args(["--workers-per-device", "1", "--concurrency", "1"]);
    command.args(["--on-gpu-error", "cpu"]);
    command.arg("--proof").arg(scratch.out("proof.json"));
    command.arg("--public").arg(scratch.out("public.json"));
    Run::of(command).succeeds();
    scratch.verify(("--zkey", &files.zkey)).succeeds();

    let mut command = prove();
    command.arg("--out-dir").arg(scratch.path("many"));
    Run::of(command).expect(2, &["--out-dir is for many proofs", "--proof and --public"]);
    assert!(!scratch.path("many").exists());
}
