//! Real proofs on the CPU.

use std::sync::{Arc, Mutex};

use cuzk_field::{Fr, Scalar};
use cuzk_formats::{BytesSource, LoadOptions, Matrix, Witness, r1cs, zkey};
use cuzk_groth16::{
    Blinding, Circuit, Error as Groth16, ProveOptions, Proved, Prover, Rows, StageCallback,
    Verifier,
};
use cuzk_sched::timeline::{Report, Run, chrome, svg};
use cuzk_sched::{
    DeviceOptions, Evaluated, JobError, JobOptions, Options, Phase, Place, ProofError, Proofs,
    Scheduler, Statement,
};

/// `testdata/mul1`: c = a b, with c public.
struct Mul {
    key: zkey::Zkey,
    r1cs: cuzk_formats::R1cs,
}

impl Mul {
    fn load() -> Self {
        let case = cuzk_testkit::case("mul1");
        let (key, r1cs) = (case.zkey().unwrap(), case.r1cs().unwrap());
        let options = LoadOptions::default();
        Self {
            key: zkey::read(&BytesSource::new("circuit.zkey", &key), &options).unwrap(),
            r1cs: r1cs::read(&BytesSource::new("circuit.r1cs", &r1cs), &options)
                .unwrap()
                .r1cs,
        }
    }

    fn proofs(&self) -> Arc<Proofs<'_>> {
        let prover = Prover::new(&self.key.key).unwrap();
        Arc::new(Proofs::new(prover, Circuit::R1cs(&self.r1cs)))
    }
}

fn product(a: u64, b: u64) -> Scalar {
    (Fr::from(a) * Fr::from(b)).into()
}

fn witness(a: u64, b: u64) -> Witness {
    Witness::new(vec![
        Scalar::ONE,
        product(a, b),
        Fr::from(a).into(),
        Fr::from(b).into(),
    ])
}

fn statement(a: u64, b: u64) -> Statement<'static> {
    Statement::Witness(Arc::new(witness(a, b)))
}

fn on_cpu() -> Options {
    let mut options = Options::new([DeviceOptions::new(Place::Cpu)]);
    options.concurrency = 4;
    options
}

/// WP-15, WP-16: eight threads hand in fifty proofs each, every one with a witness of its own, and
/// each proof is verified against its own public values, and not against another's.
#[test]
fn eight_threads_of_fifty_proofs_do_not_mix() {
    let mul = Mul::load();
    let verifier = Verifier::new(&mul.key.key.vk).unwrap();
    std::thread::scope(|scope| {
        let scheduler = Scheduler::start_in(scope, on_cpu()).unwrap();
        let proofs = mul.proofs();
        std::thread::scope(|threads| {
            for thread in 0..8_u64 {
                let (scheduler, proofs, verifier) = (&scheduler, &proofs, &verifier);
                threads.spawn(move || {
                    for proof in 0..50_u64 {
                        let (a, b) = (1000 + thread, 7 + proof);
                        let job = scheduler
                            .submit(proofs, vec![statement(a, b)], JobOptions::default())
                            .unwrap();
                        let finished = job.wait().unwrap();
                        let proved = &finished.outputs[0];
                        assert!(proved.verified);
                        assert_eq!(proved.public_values, [product(a, b)]);
                        verifier.verify(&[product(a, b)], &proved.proof).unwrap();
                        if proof == 0 {
                            let other = verifier.verify(&[product(a, b + 1)], &proved.proof);
                            assert_eq!(other, Err(Groth16::InvalidProof));
                        }
                    }
                });
            }
        });
        assert_eq!(scheduler.status().held, cuzk_gpu_mem::Footprint::default());
    });
}

#[test]
fn partitions_come_in_order_and_the_timeline_shows_them() {
    let mul = Mul::load();
    let run = std::thread::scope(|scope| {
        let mut options = on_cpu();
        options.timeline = true;
        let scheduler = Scheduler::start_in(scope, options).unwrap();
        let statements = (0..10).map(|index| statement(index + 1, 99)).collect();
        let job = scheduler
            .submit(&mul.proofs(), statements, JobOptions::default())
            .unwrap();
        let finished = job.wait().unwrap();
        let values: Vec<Scalar> = finished
            .outputs
            .iter()
            .map(|p| p.public_values[0])
            .collect();
        let expected: Vec<Scalar> = (0..10).map(|index| product(index + 1, 99)).collect();
        assert_eq!(values, expected);
        scheduler.drain();
        scheduler.timeline().unwrap()
    });
    for phase in [Phase::Stage, Phase::Wait, Phase::Compute, Phase::Finish] {
        let of_phase = run.host.iter().filter(|span| span.phase == Some(phase));
        let mut partitions: Vec<usize> = of_phase.map(|span| span.partition).collect();
        partitions.sort_unstable();
        assert_eq!(partitions, (0..10).collect::<Vec<_>>(), "{phase}");
    }
    for stage in ["rows", "quotient", "H", "B2", "assemble", "verify"] {
        let count = run.host.iter().filter(|span| span.label == stage).count();
        assert_eq!(count, 10, "{stage}");
    }
    let text = serde_json::to_vec(&run).unwrap();
    let read = Run::from_json(&text).unwrap();
    assert_eq!(read.devices, run.devices);
    assert_eq!(read.host.len(), run.host.len());
    // Decimal and back may lose the last bit.
    for (a, b) in read.host.iter().zip(&run.host) {
        assert!((a.begin_ms - b.begin_ms).abs() < 1e-6 && (a.end_ms - b.end_ms).abs() < 1e-6);
        assert_eq!(
            (&a.label, a.phase, a.partition),
            (&b.label, b.phase, b.partition)
        );
    }
    let report = Report::of(&run);
    let device = &report.devices[0];
    let stalls: f64 = device.stalls.iter().map(|stall| stall.ms).sum();
    assert!((device.busy_ms + stalls - device.total_ms).abs() < 1e-6);
    let picture = svg::waterfall(&run);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("worker 0") && picture.contains("worker 1"));
    let mut trace = Vec::new();
    chrome::write(&run, &mut trace).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().len();
    assert!(events > run.host.len());
}

#[test]
fn a_bad_witness_fails_its_own_job_alone() {
    let mul = Mul::load();
    std::thread::scope(|scope| {
        let scheduler = Scheduler::start_in(scope, on_cpu()).unwrap();
        let proofs = mul.proofs();
        let submit = |statements| {
            scheduler
                .submit(&proofs, statements, JobOptions::default())
                .unwrap()
        };
        let mut values = witness(3, 4).values().to_vec();
        values[1] = product(3, 5);
        let wrong = Statement::Witness(Arc::new(Witness::new(values)));
        let missing = Statement::Load(Box::new(|| Err("no such file".into())));
        let bad = submit(vec![statement(1, 2), wrong]);
        let lost = submit(vec![missing]);
        let good = submit(vec![Statement::Load(Box::new(|| Ok(witness(5, 6))))]);
        assert_eq!(
            good.wait().unwrap().outputs[0].public_values,
            [product(5, 6)]
        );
        match bad.wait() {
            Err(JobError::Failed {
                partition: 1,
                attempts: 1,
                error: ProofError::Groth16(Groth16::Unsatisfied { constraint: 0 }),
            }) => {}
            other => panic!("{other:?}"),
        }
        match lost.wait() {
            Err(JobError::Failed {
                error: ProofError::Load(what),
                ..
            }) => assert_eq!(what, "no such file"),
            other => panic!("{other:?}"),
        }
    });
}

fn prove<'k>(
    scheduler: &Scheduler<Proofs<'k>>,
    proofs: &Arc<Proofs<'k>>,
    statement: Statement<'k>,
) -> Result<Proved, ProofError> {
    let job = scheduler.submit(proofs, vec![statement], JobOptions::default());
    match job.unwrap().wait() {
        Ok(finished) => Ok(finished.outputs.into_iter().next().unwrap()),
        Err(JobError::Failed { error, .. }) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

/// r and s, callbacks and rows of the caller's.
#[test]
fn a_partition_has_options_and_rows_of_its_own() {
    let mul = Mul::load();
    let (told, blinding) = (Arc::new(Mutex::new(Vec::new())), || {
        Blinding::from_caller(Fr::from(5).into(), Fr::from(6).into())
    });
    let stages = Arc::clone(&told);
    let options = ProveOptions::default()
        .with_blinding(blinding())
        .with_stage_callback(StageCallback::new(move |stage| {
            stages.lock().unwrap().push(stage);
        }));
    let prover = Prover::new(&mul.key.key).unwrap();
    let expected = prover
        .prove(Circuit::R1cs(&mul.r1cs), &witness(3, 4), &options)
        .unwrap();
    told.lock().unwrap().clear();

    // The one constraint, and the rows of the two inputs.
    let evaluated = |error: u64| {
        let witness = witness(3, 4);
        let value = |column: u32| Fr::from(witness.values()[column as usize]);
        let row = |matrix: &Matrix| {
            let coefficient = |id: u32| mul.r1cs.coefficients.values()[id as usize];
            let terms = matrix.row(0);
            terms.fold(Fr::default(), |sum, (x, id)| {
                sum + coefficient(id) * value(x)
            })
        };
        let a = vec![row(&mul.r1cs.a) + Fr::from(error), value(0), value(1)];
        let b = vec![row(&mul.r1cs.b), Fr::default(), Fr::default()];
        Ok(Evaluated {
            rows: Rows::new(a, b)?,
            witness,
            options: ProveOptions::default().with_blinding(blinding()),
        })
    };
    let none = Circuit::Rows {
        rows: Rows::new(Vec::new(), Vec::new()).unwrap(),
        variables: None,
    };
    let by_rows = Arc::new(Proofs::new(Prover::new(&mul.key.key).unwrap(), none));
    std::thread::scope(|scope| {
        let scheduler = Scheduler::start_in(scope, on_cpu()).unwrap();
        let of_r1cs = mul.proofs();
        let prove = |proofs, statement| prove(&scheduler, proofs, statement);
        let with = Statement::With(Arc::new(witness(3, 4)), options.clone());
        let found = prove(&of_r1cs, with).unwrap();
        assert_eq!(found.proof, expected.proof);
        assert!(found.verified);
        assert!(told.lock().unwrap().contains(&"quotient"));
        let unverified = options.clone().without_verification();
        let with = Statement::With(Arc::new(witness(3, 4)), unverified);
        assert!(!prove(&of_r1cs, with).unwrap().verified);

        let right = || Statement::Evaluate(Box::new(|| evaluated(0)));
        assert_eq!(prove(&by_rows, right()).unwrap().proof, expected.proof);
        // Rows that are not the witness's.
        let wrong = Statement::Evaluate(Box::new(|| evaluated(1)));
        let error = prove(&by_rows, wrong).unwrap_err();
        assert!(error.to_string().contains("failed its own verification"));
        // Rows beside a circuit, and neither.
        let error = prove(&of_r1cs, right()).unwrap_err();
        assert!(error.to_string().ends_with("rows are given beside it"));
        let error = prove(&by_rows, statement(3, 4)).unwrap_err();
        assert!(error.to_string().ends_with("neither matrices nor rows"));
    });
}

/// A damaged key: every attempt fails its verification, the job fails with the reason, and the
/// engine proves with another key as before.
#[test]
fn no_proof_leaves_unverified() {
    let mul = Mul::load();
    let mut damaged = Mul::load();
    damaged.key.key.l_query[0] = damaged.key.key.beta_g1;
    std::thread::scope(|scope| {
        let scheduler = Scheduler::start_in(scope, on_cpu()).unwrap();
        let bad = scheduler
            .submit(
                &damaged.proofs(),
                vec![statement(3, 4)],
                JobOptions::default(),
            )
            .unwrap();
        match bad.wait() {
            Err(JobError::Failed {
                attempts: 3,
                error:
                    ProofError::Groth16(Groth16::ProofRejected {
                        witness_checked: true,
                    }),
                ..
            }) => {}
            other => panic!("{other:?}"),
        }
        let good = scheduler
            .submit(&mul.proofs(), vec![statement(3, 4)], JobOptions::default())
            .unwrap();
        assert!(good.wait().unwrap().outputs[0].verified);
    });
}
