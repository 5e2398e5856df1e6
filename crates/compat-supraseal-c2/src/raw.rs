//! The interface: the one module that reads and writes the caller's memory.
//!
//! Like the crate that this one stands for, these functions are safe to call by their types and rely on
//! the caller for what the types cannot say: pointers are valid for the lengths given and nobody writes
//! there meanwhile; `S` is a field element of 32 bytes in Montgomery form, little-endian words; `PR` is a
//! proof of three affine points of 96, 192 and 96 bytes in Montgomery form, whose memory need not be
//! initialised. What can be checked is: sizes of types, null pointers, lengths of slices, every element
//! below r, popcounts.
#![allow(unsafe_code)]
#![allow(
    clippy::panic,
    reason = "the callers of this interface learn of failures in no other way"
)]

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{Fr, G1Affine, G2Affine};
use cuzk_formats::Proof;
use cuzk_groth16::{Blinding, QueryVariables};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::prove::{Evaluated, prove_all, rows, witness};
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
        let a_aux = bits("A density", words(a_aux_density_bv), aux_assignments_size)?;
        let b_input = bits(
            "B density of inputs",
            words(b_g1_input_density_bv),
            input_assignments_size,
        )?;
        let b_aux = bits(
            "B density",
            words(b_g1_aux_density_bv),
            aux_assignments_size,
        )?;
        popcount("set bits of the A density", a_aux_total_density, &a_aux)?;
        popcount(
            "set bits of the B density of inputs",
            b_g1_input_total_density,
            &b_input,
        )?;
        popcount("set bits of the B density", b_g1_aux_total_density, &b_aux)?;
        let variables = variables(input_assignments_size, &a_aux, &b_input, &b_aux);
        generate(num_circuits, r_s, s_s, proofs, srs, |circuit| {
            let rows_of = |list: &[*const S], part| {
                elements(circuit, part, list[circuit], ntt_scalars_actual_size)
            };
            Ok(Values {
                a: rows_of(ntt_a_scalars, "A")?,
                b: rows_of(ntt_b_scalars, "B")?,
                c: rows_of(ntt_c_scalars, "C")?,
                inputs: elements(
                    circuit,
                    "inputs",
                    input_assignments[circuit],
                    input_assignments_size,
                )?,
                aux: elements(
                    circuit,
                    "other variables",
                    aux_assignments[circuit],
                    aux_assignments_size,
                )?,
                variables: variables.clone(),
            })
        })
    })();
    finish(result);
}

/// Proves circuits into `proofs`.
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
        let assignment = &provers[circuit];
        let (inputs, aux) = (
            assignment.inp_assignment_size,
            assignment.aux_assignment_size,
        );
        let density = |what, data: *const usize, bit_len: usize, variables| {
            if bit_len != variables {
                return Err(argument(
                    what,
                    format!("{variables} bits"),
                    format!("{bit_len}"),
                ));
            }
            bits(
                what,
                words(list(what, data, bit_len.div_ceil(usize::BITS as usize))?),
                bit_len,
            )
        };
        let a_aux = density(
            "A density",
            assignment.a_aux_density,
            assignment.a_aux_bit_len,
            aux,
        )?;
        let b_input = density(
            "B density of inputs",
            assignment.b_inp_density,
            assignment.b_inp_bit_len,
            inputs,
        )?;
        let b_aux = density(
            "B density",
            assignment.b_aux_density,
            assignment.b_aux_bit_len,
            aux,
        )?;
        popcount(
            "set bits of the A density",
            assignment.a_aux_popcount,
            &a_aux,
        )?;
        popcount(
            "set bits of the B density of inputs",
            assignment.b_inp_popcount,
            &b_input,
        )?;
        popcount(
            "set bits of the B density",
            assignment.b_aux_popcount,
            &b_aux,
        )?;
        Ok(Values {
            a: elements(circuit, "A", assignment.a, assignment.abc_size)?,
            b: elements(circuit, "B", assignment.b, assignment.abc_size)?,
            c: elements(circuit, "C", assignment.c, assignment.abc_size)?,
            inputs: elements(circuit, "inputs", assignment.inp_assignment_data, inputs)?,
            aux: elements(
                circuit,
                "other variables",
                assignment.aux_assignment_data,
                aux,
            )?,
            variables: variables(inputs, &a_aux, &b_input, &b_aux),
        })
    });
    finish(result);
}

/// A circuit's values, copied; wiped when dropped.
struct Values {
    a: Zeroizing<Vec<Fr>>,
    b: Zeroizing<Vec<Fr>>,
    c: Zeroizing<Vec<Fr>>,
    inputs: Zeroizing<Vec<Fr>>,
    aux: Zeroizing<Vec<Fr>>,
    variables: QueryVariables,
}

fn generate<S, PR>(
    num_circuits: usize,
    r_s: &[S],
    s_s: &[S],
    proofs: &mut [PR],
    srs: &SRS,
    values: impl Fn(usize) -> Result<Values, Error>,
) -> Result<(), Error> {
    at_least("values of r", num_circuits, r_s.len())?;
    at_least("values of s", num_circuits, s_s.len())?;
    at_least("proofs to be written", num_circuits, proofs.len())?;
    if size_of::<PR>() != PROOF_BYTES {
        let found = format!("{}", size_of::<PR>());
        return Err(argument(
            "bytes of a proof",
            format!("{PROOF_BYTES}"),
            found,
        ));
    }
    let made = prove_all(srs, num_circuits, |circuit| {
        let r = elements(circuit, "r", r_s[circuit..].as_ptr(), 1)?;
        let s = elements(circuit, "s", s_s[circuit..].as_ptr(), 1)?;
        let mut values = values(circuit)?;
        let (a, b) = (
            std::mem::take(&mut *values.a),
            std::mem::take(&mut *values.b),
        );
        Ok(Evaluated {
            rows: rows(circuit, a, b, &values.c)?,
            witness: witness(&values.inputs, &values.aux),
            variables: std::mem::replace(
                &mut values.variables,
                QueryVariables {
                    a: Vec::new(),
                    b: Vec::new(),
                },
            ),
            blinding: Blinding::from_caller(r[0].into(), s[0].into()),
        })
    })?;
    for (slot, proof) in proofs.iter_mut().zip(&made) {
        write(slot, proof);
    }
    Ok(())
}

/// By now everything but `result` is dropped.
fn finish(result: Result<(), Error>) {
    if let Err(error) = result {
        panic!("cuzk: {error}");
    }
}

const PROOF_BYTES: usize = 2 * G1Affine::UNCOMPRESSED_BYTES + G2Affine::UNCOMPRESSED_BYTES;

/// Writes a proof over memory that need not be initialised. `size_of::<PR>()` is [`PROOF_BYTES`].
fn write<PR>(slot: &mut PR, proof: &Proof) {
    let mut bytes = proof.a.to_iden3();
    bytes.extend(proof.b.to_iden3());
    bytes.extend(proof.c.to_iden3());
    assert_eq!(bytes.len(), size_of::<PR>());
    // SAFETY: the slot is exclusively ours and as large as the bytes, which hold three points as the
    // caller promises that `PR` does.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(slot).cast(), bytes.len());
    }
}

/// Elements copied from the caller's memory.
fn elements<S>(
    circuit: usize,
    part: &'static str,
    data: *const S,
    len: usize,
) -> Result<Zeroizing<Vec<Fr>>, Error> {
    if size_of::<S>() != 32 {
        let found = format!("{}", size_of::<S>());
        return Err(argument("bytes of a field element", "32".into(), found));
    }
    let elements: &[[u8; 32]] = list(part, data.cast(), len)?;
    // With room for a power of two, as the transforms want them, so that rows are not copied again.
    let mut copy = Zeroizing::new(Vec::with_capacity(len.next_power_of_two()));
    copy.par_extend(
        elements
            .par_iter()
            .map(|bytes| Fr::from_montgomery_le_bytes(bytes).unwrap_or_default()),
    );
    // Zero stands for what is not canonical: looked for only where there is one.
    let faulty = copy
        .par_iter()
        .zip(elements)
        .position_first(|(copy, bytes)| *copy == Fr::default() && *bytes != [0; 32]);
    match faulty {
        Some(index) => Err(Error::NotCanonical {
            circuit,
            part,
            index,
        }),
        None => Ok(copy),
    }
}

/// A list in the caller's memory.
fn list<'a, T>(what: &'static str, data: *const T, len: usize) -> Result<&'a [T], Error> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || !data.is_aligned() {
        return Err(argument(
            what,
            "an aligned pointer".into(),
            format!("{data:p}"),
        ));
    }
    // SAFETY: neither null nor misaligned; the caller promises that it is valid for `len` values and not
    // written meanwhile. Every bit pattern is a `T`: bytes or words.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// Words of a density as bytes.
fn words<D>(words: &[D]) -> &[u8] {
    // SAFETY: the caller promises plain words, which have no padding; bytes have no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The first `len` bits of little-endian words, on a little-endian machine.
fn bits(what: &'static str, bytes: &[u8], len: usize) -> Result<Vec<bool>, Error> {
    if cfg!(target_endian = "big") {
        return Err(argument(
            what,
            "a little-endian machine".into(),
            "another".into(),
        ));
    }
    at_least(what, len.div_ceil(8), bytes.len())?;
    Ok((0..len)
        .map(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1)
        .collect())
}

fn popcount(what: &'static str, said: usize, bits: &[bool]) -> Result<(), Error> {
    let found = bits.iter().filter(|bit| **bit).count();
    if found == said {
        return Ok(());
    }
    Err(argument(
        what,
        format!("{said} as the caller says"),
        format!("{found}"),
    ))
}

/// The variables of a bellman key's queries.
fn variables(inputs: usize, a_aux: &[bool], b_input: &[bool], b_aux: &[bool]) -> QueryVariables {
    let set = |bits: &[bool], from: usize| -> Vec<u32> {
        (from as u32..)
            .zip(bits)
            .filter_map(|(index, bit)| bit.then_some(index))
            .collect()
    };
    QueryVariables {
        a: (0..inputs as u32).chain(set(a_aux, inputs)).collect(),
        b: [set(b_input, 0), set(b_aux, inputs)].concat(),
    }
}

fn at_least(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found >= expected {
        return Ok(());
    }
    Err(argument(
        what,
        format!("at least {expected}"),
        format!("{found}"),
    ))
}

fn argument(what: &'static str, expected: String, found: String) -> Error {
    Error::Argument {
        what,
        expected,
        found,
    }
}
