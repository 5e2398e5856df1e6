//! The interface on emulated GPUs.

#[path = "../tests/case/mod.rs"]
mod case;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cuzk_field::Fr;
use cuzk_gpu_mem::GIB;
use cuzk_gpu_mem::driver::{Code, SimDriver};
use cuzk_groth16::QueryVariables;
use cuzk_groth16::device::Gpu;
use cuzk_groth16::synth::Shape;
use cuzk_testkit::device;

use crate::densities::Densities;
use crate::devices::{OnGpu, gpus};
use crate::engine::{apart, prove_on};
use crate::memory::Bytes;
use crate::prove::{Batch, Given};
use crate::{SRS, generate_groth16_proofs, proofs_made_on_gpus};
use case::{Case, panic_of, randomness, refuses_a_damaged_key, refuses_what_does_not_belong};

/// The GPUs of this process: two.
pub(crate) fn emulated() -> Vec<OnGpu> {
    [0, 1].map(|ordinal| emulated_gpu(ordinal).0).into()
}

fn emulated_gpu(ordinal: u32) -> (OnGpu, Arc<SimDriver>) {
    let (device, driver) = device::emulated_at(ordinal, 2 * GIB);
    (OnGpu::new(Gpu::new(&device).unwrap()), driver)
}

/// Both functions: two circuits over two GPUs; then two threads with keys of their own.
#[test]
fn circuits_are_proved_on_gpus_as_on_the_cpu() {
    let cases = [Case::new(Shape::Dense, 3), Case::new(Shape::Dense, 2)];
    let keys: [SRS; 2] = std::array::from_fn(|i| cases[i].srs());
    let (r, s) = randomness(2);
    let expected = |case: &Case, i| case.expected(r[i], s[i]);
    let (case, srs) = (&cases[0], &keys[0]);
    let before = proofs_made_on_gpus();
    assert_eq!(case.first(srs, &r, &s), [0, 1].map(|i| expected(case, i)));
    assert_eq!(proofs_made_on_gpus() - before, 2);
    let points = srs.points().unwrap();
    assert!(gpus().iter().all(|on| on.keys.has(points)));

    thread::scope(|scope| {
        for (case, srs) in cases.iter().zip(&keys) {
            let (expected, r, s) = (&expected, &r, &s);
            scope.spawn(move || {
                let mut proofs = [[0; 48]];
                let assignment = [case.assignment()];
                generate_groth16_proofs(&assignment, &r[1..2], &s[1..2], &mut proofs, srs);
                assert_eq!(proofs, [expected(case, 1)]);
            });
        }
    });
    assert_eq!(proofs_made_on_gpus() - before, 4);

    // A key goes with its last handle.
    let clone = keys[0].clone();
    drop(keys);
    assert!(gpus().iter().any(|on| on.keys.has(points)));
    drop(clone);
    assert!(!gpus().iter().any(|on| on.keys.has(points)));
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_kept() {
    let mut case = Case::new(Shape::Dense, 4);
    refuses_what_does_not_belong(&mut case);

    // Circuits of different densities in one call.
    let srs = case.srs();
    let (r, s) = randomness(2);
    let mut assignments = [case.assignment(), case.assignment()];
    let zeros = vec![0; case.b_aux.len()];
    (assignments[1].b_aux_density, assignments[1].b_aux_popcount) = (zeros.as_ptr(), 0);
    let mut proofs = [[0_u64; 48]; 2];
    let error = panic_of(|| generate_groth16_proofs(&assignments, &r, &s, &mut proofs, &srs));
    assert_eq!(
        error,
        "cuzk: densities: expected those of circuit 0, found others in circuit 1"
    );

    // No GPU's proof verifies, nor the CPU's.
    refuses_a_damaged_key(case);
}

/// A thread of the pool that waits for the pool takes up the second call, which wants what the first one holds, as a key is
/// held on its way to a GPU.
#[test]
fn calls_on_a_pool_may_wait_for_it_with_a_lock() {
    let done = &Mutex::new(0);
    let ms = Duration::from_millis;
    let call = |_: &rayon::Scope<'_>| {
        let work = || {
            let mut done = done.lock().unwrap();
            rayon::join(|| thread::sleep(ms(5)), || thread::sleep(ms(60)));
            *done += 1;
        };
        apart(work).unwrap();
    };
    rayon::in_place_scope(|scope| {
        scope.spawn(call);
        thread::sleep(ms(20));
        scope.spawn(call);
    });
    assert_eq!(*done.lock().unwrap(), 2);
}

/// No memory, then no device: the circuit is left to the CPU.
#[test]
fn what_a_gpu_cannot_do_is_left_to_the_cpu() {
    let case = Case::new(Shape::Dense, 3);
    let srs = case.srs();
    let (on, driver) = emulated_gpu(2);
    let on: &'static OnGpu = Box::leak(Box::new(on));
    let bytes = |list: &[Fr]| -> Vec<Bytes> { list.iter().map(montgomery_bytes).collect() };
    let [a, b, c] = [0, 1, 2].map(|i| bytes(&case.rows[i]));
    let values = bytes(&case.values);
    let (inputs, aux) = values.split_at(case.inputs());
    let given = [Given {
        a: &a,
        b: &b,
        c: &c,
        inputs,
        aux,
        densities: Densities {
            bits: [&[]; 3],
            len: [0; 3],
            popcounts: [0; 3],
        },
    }];
    let batch = Batch {
        given: &given,
        r: &inputs[..1],
        s: &inputs[..1],
    };
    let variables = QueryVariables::of(&case.instance.r1cs);
    let prove = || prove_on([on].into_iter(), &srs, &batch, &variables).unwrap();
    let budget = on.gpu.device().budget();
    let limit = budget.state().limit;
    budget.set_limit(1 << 10);
    assert_eq!(prove(), [None]);
    budget.set_limit(limit);
    assert!(prove()[0].is_some());
    driver.lose(Code::ECC_UNCORRECTABLE);
    assert_eq!(prove(), [None]);
}

fn montgomery_bytes(value: &Fr) -> Bytes {
    let limbs = value.montgomery_limbs().map(u64::to_le_bytes);
    limbs.concat().try_into().unwrap()
}
