//! A circuit with its key, evaluated as bellperson does; what the CPU's prover makes of it.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuzk_field::encoding::PointEncoding as _;
use cuzk_field::{Field as _, Fr};
use cuzk_formats::{Matrix, ProvingKey, bellman};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_groth16::{Blinding, Circuit, ProveOptions, Prover, QueryVariables};
use supraseal_c2::{Assignment, SRS, generate_groth16_proof};

pub(crate) type Proof = [u64; 48];

/// A circuit with its key, evaluated as bellperson does.
pub(crate) struct Case {
    pub(crate) instance: Instance,
    pub(crate) key: ProvingKey,
    pub(crate) rows: [Vec<Fr>; 3],
    pub(crate) values: Vec<Fr>,
    pub(crate) a_aux: Vec<usize>,
    b_input: Vec<usize>,
    pub(crate) b_aux: Vec<usize>,
    pub(crate) popcounts: [usize; 3],
}

fn words(bits: impl Iterator<Item = bool>) -> Vec<usize> {
    let mut words = Vec::new();
    for (index, bit) in bits.enumerate() {
        if index % 64 == 0 {
            words.push(0);
        }
        *words.last_mut().unwrap() |= usize::from(bit) << (index % 64);
    }
    words
}

impl Case {
    pub(crate) fn new(shape: Shape, log_n: u32) -> Self {
        let instance = Instance::new(shape, log_n, 3).unwrap();
        let r1cs = &instance.r1cs;
        let key = proving_key(r1cs, KeyFamily::Bellman, 4).unwrap();
        let values: Vec<Fr> = instance
            .witness
            .values()
            .iter()
            .map(|v| Fr::from(*v))
            .collect();
        let evaluate = |matrix: &Matrix| -> Vec<Fr> {
            let row = |row| {
                matrix
                    .row(row)
                    .fold(Fr::ZERO, |sum, (column, coefficient)| {
                        sum + r1cs.coefficients.values()[coefficient as usize]
                            * values[column as usize]
                    })
            };
            (0..matrix.num_rows()).map(row).collect()
        };
        let mut rows = [&r1cs.a, &r1cs.b, &r1cs.c].map(evaluate);
        for input in &values[..r1cs.num_inputs] {
            rows[0].push(*input);
            rows[1].push(Fr::ZERO);
            rows[2].push(Fr::ZERO);
        }
        let variables = QueryVariables::of(r1cs);
        let inputs = 0..r1cs.num_inputs as u32;
        let aux = inputs.end..r1cs.num_variables as u32;
        let set = |list: &[u32], range: std::ops::Range<u32>| -> Vec<usize> {
            words(range.map(|index| list.binary_search(&index).is_ok()))
        };
        let count = |words: &[usize]| words.iter().map(|word| word.count_ones() as usize).sum();
        let a_aux = set(&variables.a, aux.clone());
        let (b_input, b_aux) = (set(&variables.b, inputs), set(&variables.b, aux));
        Self {
            popcounts: [count(&a_aux), count(&b_input), count(&b_aux)],
            a_aux,
            b_input,
            b_aux,
            rows,
            values,
            key,
            instance,
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.instance.r1cs.num_inputs
    }

    pub(crate) fn srs(&self) -> SRS {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        bellman::write_params(&self.key, &mut file).unwrap();
        file.flush().unwrap();
        // The file is gone when this returns, as in bellperson's tests.
        SRS::try_new(file.path().to_owned(), false).unwrap()
    }

    /// The first function, for `circuits` copies.
    pub(crate) fn first(&self, srs: &SRS, r: &[Fr], s: &[Fr]) -> Vec<Proof> {
        let circuits = r.len();
        let mut proofs = vec![[0; 48]; circuits];
        let pointers = |list: &[Fr]| vec![list.as_ptr(); circuits];
        let (inputs, aux) = self.values.split_at(self.inputs());
        generate_groth16_proof(
            &pointers(&self.rows[0]),
            &pointers(&self.rows[1]),
            &pointers(&self.rows[2]),
            self.rows[0].len(),
            &pointers(inputs),
            &pointers(aux),
            inputs.len(),
            aux.len(),
            &self.a_aux,
            &self.b_input,
            &self.b_aux,
            self.popcounts[0],
            self.popcounts[1],
            self.popcounts[2],
            circuits,
            r,
            s,
            &mut proofs,
            srs,
        );
        proofs
    }

    pub(crate) fn assignment(&self) -> Assignment<Fr> {
        let (inputs, aux) = self.values.split_at(self.inputs());
        Assignment {
            a_aux_density: self.a_aux.as_ptr(),
            a_aux_bit_len: aux.len(),
            a_aux_popcount: self.popcounts[0],
            b_inp_density: self.b_input.as_ptr(),
            b_inp_bit_len: inputs.len(),
            b_inp_popcount: self.popcounts[1],
            b_aux_density: self.b_aux.as_ptr(),
            b_aux_bit_len: aux.len(),
            b_aux_popcount: self.popcounts[2],
            a: self.rows[0].as_ptr(),
            b: self.rows[1].as_ptr(),
            c: self.rows[2].as_ptr(),
            abc_size: self.rows[0].len(),
            inp_assignment_data: inputs.as_ptr(),
            inp_assignment_size: inputs.len(),
            aux_assignment_data: aux.as_ptr(),
            aux_assignment_size: aux.len(),
        }
    }

    pub(crate) fn expected(&self, r: Fr, s: Fr) -> Proof {
        let blinding = Blinding::from_caller(r.into(), s.into());
        let options = ProveOptions::default().with_blinding(blinding);
        let proof = Prover::new(&self.key)
            .unwrap()
            .prove(
                Circuit::R1cs(&self.instance.r1cs),
                &self.instance.witness,
                &options,
            )
            .unwrap()
            .proof;
        let bytes = [proof.a.to_iden3(), proof.b.to_iden3(), proof.c.to_iden3()].concat();
        let mut words = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        std::array::from_fn(|_| words.next().unwrap())
    }
}

pub(crate) fn randomness(circuits: usize) -> (Vec<Fr>, Vec<Fr>) {
    let power = |base: u64| {
        (0..circuits as u64)
            .map(|i| Fr::from(base).pow(1000 + i))
            .collect()
    };
    (power(3), power(5))
}

/// The text of a panic.
pub(crate) fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

/// What both functions refuse wherever they prove: the key of another circuit, rows that violate a constraint, densities of
/// another circuit.
pub(crate) fn refuses_what_does_not_belong(case: &mut Case) {
    let srs = case.srs();
    let one = [Fr::ONE];
    let fails = |case: &Case, srs: &SRS| panic_of(|| drop(case.first(srs, &one, &one)));

    let other = Case::new(Shape::Dense, 5).srs();
    assert!(fails(case, &other).contains("not made for this circuit: the key has 32 rows"));

    case.rows[2][3] += Fr::ONE;
    let violated = fails(case, &srs);
    assert!(
        violated.contains(
            "circuit 0: the witness does not satisfy the circuit: constraint 3 (counted from 0)"
        ),
        "{violated}"
    );
    case.rows[2][3] += -Fr::ONE;

    // With equal counts.
    let words = case.a_aux.clone();
    case.a_aux[0] ^= 1;
    case.popcounts[0] = case.a_aux[0].count_ones() as usize;
    assert!(fails(case, &srs).contains("points in A"));
    (case.a_aux, case.popcounts[0]) = (words, case.popcounts[0] + 1);
}

/// A proof that does not verify is not handed out.
pub(crate) fn refuses_a_damaged_key(mut case: Case) {
    case.key.l_query.swap(5, 6);
    let error = panic_of(|| drop(case.first(&case.srs(), &[Fr::ONE], &[Fr::ONE])));
    assert!(error.contains("failed its own verification"), "{error}");
}
