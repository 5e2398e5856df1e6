//! Flags, variables, output paths, help.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::files::Files;
use crate::run::{Run, Scratch, cuzk, run};

#[test]
fn help_reads_well_to_a_stranger() {
    for args in [
        &["--help"][..],
        &["help", "prove"],
        &["prove", "--help"],
        &["verify", "--help"],
        &["inspect", "--help"],
        &["devices", "--help"],
    ] {
        let text = run(args).succeeds().stdout;
        assert!(text.contains("Usage: cuzk"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 110),
            "{text}"
        );
    }
    let text = run(["prove", "--help"]).stdout;
    for words in [
        "--zkey",
        "--params",
        "--pk",
        "--wtns",
        "--r1cs",
        "--synthetic",
        "--proof",
        "--public",
        "--device",
        "CUZK_ZKEY",
        "CUZK_DEVICE",
        "--no-verify",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        run(["--help"])
            .stdout
            .contains("Exit codes: 0 ok; 1 a proof does not verify")
    );
    assert!(run(["--version"]).succeeds().stdout.starts_with("cuzk 0."));
}

#[test]
fn wrong_command_lines_are_refused() {
    for args in [
        &[][..],
        &["prov"],
        &["prove", "--zkye", "x"],
        &["prove", "--threads", "0"],
        &["prove", "--threads", "many"],
        &["prove", "--device", "gpu"],
        &["prove", "--synthetic", "0"],
        &["prove", "--synthetic", "29"],
        &["prove", "--synthetic", "4", "--shape", "round"],
        &["prove", "--host-limit", "much"],
        &["prove", "--log", "loud", "--synthetic", "4"],
        &["prove", "--key-blake3", "12", "--zkey", "x"],
        &["verify"],
        &["inspect"],
    ] {
        let run = run(args).expect(2, &[]);
        assert_eq!(run.stdout, "");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn inputs_must_make_sense_together() {
    for (args, words) in [
        (&["prove"][..], "no key: give one of"),
        (&["prove", "--zkey", "a"], "no witness: give --wtns"),
        (
            &["prove", "--zkey", "a", "--wtns", "w", "--partitions", "2"],
            "--partitions needs as many witnesses",
        ),
        (
            &["prove", "--zkey", "a", "--wtns", "w", "--witnesses", "l"],
            "--witnesses says what is proved",
        ),
        (
            &[
                "prove",
                "--synthetic",
                "4",
                "--partitions",
                "2",
                "--proof",
                "p",
            ],
            "--proof is for one proof",
        ),
        (
            &["prove", "--zkey", "a", "--params", "b", "--wtns", "w"],
            "--zkey and --params",
        ),
        (
            &["prove", "--pk", "a", "--params", "b", "--wtns", "w"],
            "--params and --pk",
        ),
        (
            &["prove", "--synthetic", "4", "--zkey", "a"],
            "--zkey cannot be used with --synthetic",
        ),
        (
            &["prove", "--synthetic", "4", "--wtns", "a"],
            "--wtns cannot be used with",
        ),
        (
            &["prove", "--zkey", "a", "--wtns", "w", "--shape", "porep"],
            "--shape is for --synthetic",
        ),
    ] {
        run(args).expect(2, &[words]);
    }
}

/// Every flag has its twin; the flag wins; nonsense is refused; typos are warned of.
#[test]
fn variables_stand_in_for_flags() {
    let files = Files::of("mul1");
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = cuzk(args);
        command.envs(variables.iter().copied());
        Run::of(command)
    };
    let zkey = files.zkey.to_str().unwrap();
    let wtns = files.wtns.to_str().unwrap();
    let json = with(
        &["prove"],
        &[
            ("CUZK_ZKEY", zkey),
            ("CUZK_WTNS", wtns),
            ("CUZK_JSON", "1"),
            ("CUZK_THREADS", "1"),
        ],
    )
    .succeeds()
    .json();
    assert_eq!(json["device"]["threads"], 1);

    // The flag wins, also where it names a key of another kind.
    let args = ["prove", "--synthetic", "4", "--threads", "2", "--json"];
    let run = with(
        &args,
        &[
            ("CUZK_THREADS", "1"),
            ("CUZK_PARAMS", "x"),
            ("CUZK_WTNS", "y"),
        ],
    );
    assert_eq!(run.succeeds().json()["device"]["threads"], 2);

    for (name, value) in [
        ("CUZK_THREADS", "none"),
        ("CUZK_DEVICE", "gpu"),
        ("CUZK_JSON", "perhaps"),
        ("CUZK_PROOF_FORMAT", "xml"),
        ("CUZK_HOST_LIMIT", "1 parsec"),
    ] {
        with(&["prove", "--synthetic", "4"], &[(name, value)]).expect(2, &[value, name]);
    }
    with(&["prove", "--synthetic", "4"], &[("CUZK_LOG", "loud")]).expect(2, &["loud"]);

    let run = with(&["prove", "--synthetic", "4"], &[("CUZK_THREAD", "1")]);
    run.expect(0, &["CUZK_THREAD has no effect", "CUZK_THREADS"]);
    with(&["prove", "--synthetic", "4"], &[("CUZK_REQUIRE_GPU", "1")]).succeeds();
}

/// An output is never an input, by whatever name.
#[test]
fn inputs_are_never_overwritten() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let zkey = scratch.file("c.zkey", files.case.zkey().unwrap());
    let wtns = scratch.file("w.wtns", files.case.wtns().unwrap());
    let soft = scratch.path("soft");
    symlink(&zkey, &soft).unwrap();
    let hard = scratch.path("hard");
    fs::hard_link(&wtns, &hard).unwrap();
    let around = scratch.path("out/../c.zkey");
    let prove = |flag: &str, path: &Path, more: &[&str]| {
        let mut command = cuzk(["prove", "--zkey"]);
        command
            .arg(&zkey)
            .arg("--wtns")
            .arg(&wtns)
            .arg(flag)
            .arg(path)
            .args(more);
        Run::of(command)
    };
    for flag in ["--proof", "--public"] {
        for path in [&zkey, &wtns, &soft, &hard, &around] {
            prove(flag, path, &[]).expect(2, &[flag, "is one of the inputs"]);
        }
    }
    assert_eq!(fs::read(&zkey).unwrap(), files.case.zkey().unwrap());
    assert_eq!(fs::read(&wtns).unwrap(), files.case.wtns().unwrap());

    let both = scratch.out("both.json");
    let name = both.to_str().unwrap();
    prove("--proof", &both, &["--public", name]).expect(2, &["the output of --proof, too"]);
    let missing = scratch.path("missing/proof.json");
    prove("--proof", &missing, &[]).expect(2, &["--proof", "folder"]);
    prove("--proof", &scratch.path("out"), &[]).expect(2, &["is a folder"]);
    prove("--proof", Path::new("/dev/null"), &[]).expect(2, &["not a regular file"]);
    scratch.expect_nothing_left();

    // A link to another file is followed.
    let target = scratch.file("target.json", "old");
    let link = scratch.out("link.json");
    symlink(&target, &link).unwrap();
    prove("--proof", &link, &[]).succeeds();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("pi_a"));
}

/// A failure leaves what was there before.
#[test]
fn an_older_output_survives_a_failure() {
    let files = Files::of("mul1");
    let scratch = Scratch::new();
    let proof = scratch.out("proof.json");
    fs::write(&proof, "old").unwrap();
    let wtns = scratch.file("cut.wtns", &files.case.wtns().unwrap()[..100]);
    let mut command = cuzk(["prove", "--zkey"]);
    command
        .arg(&files.zkey)
        .arg("--wtns")
        .arg(wtns)
        .arg("--proof")
        .arg(&proof);
    Run::of(command).expect(3, &[]);
    assert_eq!(fs::read_to_string(&proof).unwrap(), "old");
    assert_eq!(scratch.left(), ["proof.json"]);
}

/// With --json a failure is an object, too.
#[test]
fn failures_are_json_where_asked_for() {
    let json = run(["prove", "--json", "--zkey", "missing.zkey", "--wtns", "w"])
        .expect(3, &["missing.zkey"])
        .json();
    assert_eq!(json["exit_code"], 3);
    assert!(json["error"].as_str().unwrap().contains("missing.zkey"));
    // Also one of the command line itself.
    for args in [
        &["prove", "--json", "--threads", "0"][..],
        &["prove", "--json", "--no-such-flag"],
        &["verify", "--json"],
    ] {
        let run = run(args).expect(2, &["error: "]);
        assert_eq!(run.json()["exit_code"], 2);
        assert_eq!(run.stdout.lines().count(), 1);
    }
    let mut command = cuzk(["prove", "--threads", "0"]);
    command.env("CUZK_JSON", "1");
    let json = Run::of(command).expect(2, &[]).json();
    assert!(json["error"].as_str().unwrap().contains("--threads"));
}

/// A reader that has gone away: quietly, and not with 0.
#[test]
fn a_closed_stdout_is_no_panic() {
    for args in [
        &["prove", "--synthetic", "4"][..],
        &["prove", "--synthetic", "4", "--json"],
        &["devices"],
        &["prove", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = cuzk(args);
        let output = command
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let status = output.status;
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(status.code(), Some(1..)), "{args:?}: {status}");
        assert_eq!(stderr, "", "{args:?}");
    }
}

/// Neither is a closed stderr.
#[test]
fn a_closed_stderr_is_no_panic() {
    let mut command = cuzk(["prove", "-vvv", "--synthetic", "4"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
}

/// A disk that is full.
#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return;
    };
    let mut command = cuzk(["devices"]);
    command.stdout(full).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write the result"), "{stderr}");
}

#[test]
fn logs_go_to_stderr_and_the_result_to_stdout() {
    let run = run(["prove", "--synthetic", "4", "--json", "-vv"]).expect(0, &["stage="]);
    run.json();
}

/// Names that cannot work are refused before anything is proved.
#[test]
fn outputs_that_cannot_be_written_are_refused_at_once() {
    let scratch = Scratch::new();
    let dangling = scratch.path("dangling");
    symlink(scratch.path("nowhere"), &dangling).unwrap();
    let long = scratch.path(&"n".repeat(300));
    let folder = format!("{}/", scratch.path("folder").display());
    for (path, word) in [
        (dangling.as_os_str(), "leads to no file"),
        (long.as_os_str(), "cannot be written"),
        (folder.as_ref(), "names a folder"),
    ] {
        let mut command = cuzk(["prove", "--synthetic", "4", "--proof"]);
        command.arg(path);
        Run::of(command).expect(2, &["--proof", word]);
    }
    assert!(dangling.is_symlink(), "the link was replaced");
}

/// The result on stdout would be lost under the file that is renamed over it.
#[test]
fn the_file_behind_stdout_is_no_output() {
    let scratch = Scratch::new();
    let result = scratch.file("result.json", "");
    let stdout = fs::File::options().write(true).open(&result).unwrap();
    let output = cuzk(["prove", "--synthetic", "4", "--json", "--proof"])
        .arg(&result)
        .stdout(stdout)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn an_output_that_is_replaced_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let proof = scratch.file("proof.json", "old");
    fs::set_permissions(&proof, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = cuzk(["prove", "--synthetic", "4", "--proof"]);
    command.arg(&proof);
    Run::of(command).expect(0, &[]);
    assert_ne!(fs::read_to_string(&proof).unwrap(), "old");
    assert_eq!(
        fs::metadata(&proof).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn control_characters_of_file_names_are_escaped() {
    let run = run(["inspect", "na\nme\u{1b}[31m.zkey"]).expect(3, &["\\u{1b}[31m"]);
    assert!(!run.stderr.contains('\u{1b}'), "{run:#?}");
}

/// One thread per core unless `--threads` says otherwise, whatever rayon's own variable says.
/// Variables of the libraries are known, and a value that would be ignored is refused.
#[test]
fn variables_without_a_flag_are_known() {
    for (name, value) in [("CUZK_CPU", "portable"), ("CUZK_REQUIRE_GPU", "0")] {
        let mut command = cuzk(["devices"]);
        command.env(name, value);
        Run::of(command).succeeds();
    }
    let mut command = cuzk(["devices"]);
    command.env("CUZK_CPU", "protable");
    Run::of(command).expect(2, &["CUZK_CPU=protable", "portable"]);
    let mut command = cuzk(["devices"]);
    command.env("CUZK_CPV", "portable");
    Run::of(command).expect(0, &["CUZK_CPV has no effect; is CUZK_CPU meant?"]);
}

#[test]
fn threads_are_ours_to_count() {
    let mut command = cuzk(["prove", "--synthetic", "4", "--json", "--threads", "2"]);
    command.env("RAYON_NUM_THREADS", "1");
    assert_eq!(Run::of(command).succeeds().json()["device"]["threads"], 2);
    let mut command = cuzk(["prove", "--synthetic", "4", "--json"]);
    command.env("RAYON_NUM_THREADS", "999999");
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(
        Run::of(command).succeeds().json()["device"]["threads"],
        cores
    );
}
