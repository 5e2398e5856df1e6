//! `cuzk prove --timeline`, and `cuzk timeline`.

use crate::files::Files;
use crate::run::{Run, Scratch, cuzk};

#[test]
fn a_run_is_recorded_read_and_drawn() {
    let (scratch, files) = (Scratch::new(), Files::of("mul1"));
    let recorded = scratch.path("run.json");
    let mut command = cuzk(["prove", "--device", "cpu", "--zkey"]);
    command.arg(&files.zkey).arg("--wtns").arg(&files.wtns);
    command.arg("--timeline").arg(&recorded);
    command.arg("--proof").arg(scratch.out("proof.json"));
    command.arg("--public").arg(scratch.out("public.json"));
    Run::of(command).succeeds();
    assert_eq!(scratch.left(), ["proof.json", "public.json"]);
    scratch.verify(("--zkey", &files.zkey)).succeeds();

    let (svg, trace) = (scratch.out("run.svg"), scratch.out("trace.json"));
    let mut command = cuzk(["timeline"]);
    command
        .arg(&recorded)
        .arg("--svg")
        .arg(&svg)
        .arg("--trace")
        .arg(&trace);
    let run = Run::of(command).succeeds();
    assert!(
        run.stdout.contains("device 0 (cpu): it computed "),
        "{run:#?}"
    );
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("worker 0"));
    let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 8);

    let mut command = cuzk(["timeline", "--json"]);
    let json = Run::of({
        command.arg(&recorded);
        command
    })
    .succeeds()
    .json();
    let share = json["devices"][0]["share"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&share));
}

#[test]
fn what_is_no_timeline_is_refused() {
    let scratch = Scratch::new();
    let empty = r#""devices":[],"kernels":[],"transfers":[],"notes":[]"#;
    let endless = format!(
        r#"{{"format":"cuzk-timeline-1",{empty},"host":[{{"device":0,"worker":0,"job":0,
        "partition":0,"attempt":0,"label":"x","phase":null,"begin_ms":-1e300,"end_ms":1e300}}]}}"#
    );
    let device = r#"{"number":3,"name":"x","is_gpu":true,"workers":2}"#;
    let twice = format!(
        r#"{{"format":"cuzk-timeline-1","devices":[{device},{device}],"kernels":[],"transfers":[],
        "notes":[],"host":[]}}"#
    );
    for (text, words) in [
        ("", "a file of 0 bytes"),
        ("{", "EOF"),
        ("[1, 2]", "invalid"),
        (
            &format!(r#"{{"format":"other",{empty},"host":[]}}"#),
            "cuzk-timeline-1",
        ),
        (&endless, "within ten years"),
        (&twice, "device 3 is there twice"),
    ] {
        let mut command = cuzk(["timeline"]);
        command.arg(scratch.file("run.json", text));
        command.arg("--svg").arg(scratch.out("run.svg"));
        Run::of(command).expect(3, &["run.json", words]);
        scratch.expect_nothing_left();
    }
    Run::of(cuzk(["timeline", "missing.json"])).expect(3, &["missing.json"]);
}
