//! The interface. What its callers promise is in `memory`.
#![allow(
    clippy::panic,
    reason = "the callers of this interface learn of failures in no other way"
)]

use crate::densities::Densities;
use crate::error::Error;
use crate::memory::{self, PROOF_BYTES, argument, at_least, elements, list, words};
use crate::prove::{Given, prove_all};
use crate::srs::SRS;

/// A synthesised circuit. Bits of densities are little-endian in their words; rows include those of the
/// inputs.
#[repr(C)]
#[derive(Debug)]
pub struct Assignment<S> {
    /// Which auxiliary variables occur in A.
    pub a_aux_density: *const usize,
    /// Bits of it.
    pub a_aux_bit_len: usize,
    /// Bits of it that are set.
    pub a_aux_popcount: usize,
    /// Which inputs occur in B.
    pub b_inp_density: *const usize,
    /// Bits of it.
    pub b_inp_bit_len: usize,
    /// Bits of it that are set.
    pub b_inp_popcount: usize,
    /// Which auxiliary variables occur in B.
    pub b_aux_density: *const usize,
    /// Bits of it.
    pub b_aux_bit_len: usize,
    /// Bits of it that are set.
    pub b_aux_popcount: usize,
    /// A w.
    pub a: *const S,
    /// B w.
    pub b: *const S,
    /// C w.
    pub c: *const S,
    /// Rows of each.
    pub abc_size: usize,
    /// Values of the inputs, the constant ONE first.
    pub inp_assignment_data: *const S,
    /// How many.
    pub inp_assignment_size: usize,
    /// Values of the other variables.
    pub aux_assignment_data: *const S,
    /// How many.
    pub aux_assignment_size: usize,
}

/// Proves `num_circuits` circuits of one shape into `proofs`, whose densities are those given.
///
/// # Panics
/// With the text of an [`Error`] when there is no valid proof.
#[allow(clippy::too_many_arguments, reason = "the interface")]
pub fn generate_groth16_proof<S, D, PR>(
    ntt_a_scalars: &[*const S],
    ntt_b_scalars: &[*const S],
    ntt_c_scalars: &[*const S],
    ntt_scalars_actual_size: usize,
    input_assignments: &[*const S],
    aux_assignments: &[*const S],
    input_assignments_size: usize,
    aux_assignments_size: usize,
    a_aux_density_bv: &[D],
    b_g1_input_density_bv: &[D],
    b_g1_aux_density_bv: &[D],
    a_aux_total_density: usize,
    b_g1_input_total_density: usize,
    b_g1_aux_total_density: usize,
    num_circuits: usize,
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
) {
    let (rows, inputs, aux) = (
        ntt_scalars_actual_size,
        input_assignments_size,
        aux_assignments_size,
    );
    let densities = Densities {
        bits: [
            words(a_aux_density_bv),
            words(b_g1_input_density_bv),
            words(b_g1_aux_density_bv),
        ],
        len: [aux, inputs, aux],
        popcounts: [
            a_aux_total_density,
            b_g1_input_total_density,
            b_g1_aux_total_density,
        ],
    };
    let lists = [
        ("pointers to rows of A", ntt_a_scalars.len()),
        ("pointers to rows of B", ntt_b_scalars.len()),
        ("pointers to rows of C", ntt_c_scalars.len()),
        ("pointers to inputs", input_assignments.len()),
        ("pointers to other variables", aux_assignments.len()),
    ];
    let result = (|| {
        for (what, len) in lists {
            at_least(what, num_circuits, len)?;
        }
        generate(num_circuits, r_s, s_s, proofs, srs, |circuit| {
            Ok(Given {
                a: elements("A", ntt_a_scalars[circuit], rows)?,
                b: elements("B", ntt_b_scalars[circuit], rows)?,
                c: elements("C", ntt_c_scalars[circuit], rows)?,
                inputs: elements("inputs", input_assignments[circuit], inputs)?,
                aux: elements("other variables", aux_assignments[circuit], aux)?,
                densities,
            })
        })
    })();
    finish(result);
}

/// Proves circuits of one shape into `proofs`.
///
/// # Panics
/// As [`generate_groth16_proof`].
pub fn generate_groth16_proofs<S, PR>(
    provers: &[Assignment<S>],
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
) {
    let result = generate(provers.len(), r_s, s_s, proofs, srs, |circuit| {
        let given = &provers[circuit];
        let (inputs, aux) = (given.inp_assignment_size, given.aux_assignment_size);
        let density = |what, data: *const usize, bit_len: usize, variables| {
            if bit_len != variables {
                let expected = format!("{variables} bits");
                return Err(argument(what, expected, format!("{bit_len}")));
            }
            let len = bit_len.div_ceil(usize::BITS as usize);
            Ok(words(list(what, data, len)?))
        };
        Ok(Given {
            a: elements("A", given.a, given.abc_size)?,
            b: elements("B", given.b, given.abc_size)?,
            c: elements("C", given.c, given.abc_size)?,
            inputs: elements("inputs", given.inp_assignment_data, inputs)?,
            aux: elements("other variables", given.aux_assignment_data, aux)?,
            densities: Densities {
                bits: [
                    density("A density", given.a_aux_density, given.a_aux_bit_len, aux)?,
                    density(
                        "B density of inputs",
                        given.b_inp_density,
                        given.b_inp_bit_len,
                        inputs,
                    )?,
                    density("B density", given.b_aux_density, given.b_aux_bit_len, aux)?,
                ],
                len: [aux, inputs, aux],
                popcounts: [
                    given.a_aux_popcount,
                    given.b_inp_popcount,
                    given.b_aux_popcount,
                ],
            },
        })
    });
    finish(result);
}

fn generate<'a, S, PR>(
    num_circuits: usize,
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
    given: impl Fn(usize) -> Result<Given<'a>, Error>,
) -> Result<(), Error> {
    at_least("values of r", num_circuits, r_s.len())?;
    at_least("values of s", num_circuits, s_s.len())?;
    at_least("proofs to be written", num_circuits, proofs.len())?;
    if size_of::<PR>() != PROOF_BYTES {
        let expected = format!("{PROOF_BYTES}");
        let found = format!("{}", size_of::<PR>());
        return Err(argument("bytes of a proof", expected, found));
    }
    let r = elements("r", r_s.as_ptr(), num_circuits)?;
    let s = elements("s", s_s.as_ptr(), num_circuits)?;
    let given: Vec<Given<'_>> = (0..num_circuits).map(given).collect::<Result<_, _>>()?;
    let made = prove_all(srs, &given, r, s)?;
    for (slot, proof) in proofs.iter_mut().zip(&made) {
        memory::write(slot, proof);
    }
    Ok(())
}

/// By now everything but `result` is dropped.
fn finish(result: Result<(), Error>) {
    if let Err(error) = result {
        panic!("cuzk: {error}");
    }
}
