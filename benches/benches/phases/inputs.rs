//! What a proof is made from, in host memory.

use std::ops::Deref;

use cuzk_field::{Field as _, Fr, G1Affine, G2Affine, Scalar};
use cuzk_formats::{QueryVariables, VerifyingKey};
use cuzk_gpu_mem::{Device, PinnedBuf, Pod};
use cuzk_groth16::device::{DeviceMatrices, Gpu, HostMatrices, PinnedWitness, synthetic_key};
use cuzk_groth16::synth::{Instance, KeyExponents};

/// An array as a program has it.
pub(crate) enum Array<T: Pod> {
    /// In a `Vec`, touched.
    Pageable(Vec<T>),
    /// In pinned memory.
    Pinned(PinnedBuf<T>),
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Pageable(values) => values,
            Self::Pinned(values) => values,
        }
    }
}

impl<T: Pod> Array<T> {
    fn pin(&mut self, label: &'static str, device: &Device) {
        if let Self::Pageable(values) = self {
            let pinned = device.host().pinned_from(label, values);
            *self = Self::Pinned(pinned.expect("pinned memory"));
        }
    }
}

/// Rows, key and values of one partition; the partitions have the same.
pub(crate) struct Inputs {
    pub(crate) vk: VerifyingKey,
    pub(crate) public: Vec<Scalar>,
    pub(crate) rows: [Array<Fr>; 2],
    pub(crate) h: Array<G1Affine>,
    /// L, A, B in G1: the points, and the values that they are multiplied by.
    pub(crate) g1: [(Array<G1Affine>, Array<Scalar>); 3],
    pub(crate) g2: (Array<G2Affine>, Array<Scalar>),
}

impl Inputs {
    pub(crate) fn new(gpu: &Gpu, instance: &Instance, exponents: &KeyExponents) -> Self {
        let Instance { r1cs, witness } = instance;
        let values = witness.values();
        let variables = QueryVariables::of(r1cs);
        let pick = |of: &[u32]| -> Array<Scalar> {
            Array::Pageable(of.iter().map(|v| values[*v as usize]).collect())
        };
        let key = synthetic_key(gpu, exponents).expect("a key");
        Self {
            rows: rows(gpu, HostMatrices::of_r1cs(r1cs), values),
            public: values[1..r1cs.num_inputs].to_vec(),
            h: Array::Pageable(key.h_query),
            g1: [
                (
                    Array::Pageable(key.l_query),
                    Array::Pageable(values[r1cs.num_inputs..].to_vec()),
                ),
                (Array::Pageable(key.a_query), pick(&variables.a)),
                (Array::Pageable(key.b_g1_query), pick(&variables.b)),
            ],
            g2: (Array::Pageable(key.b_g2_query), pick(&variables.b)),
            vk: key.vk,
        }
    }

    /// Puts all of it into pinned memory.
    pub(crate) fn pin(&mut self, device: &Device) {
        for rows in &mut self.rows {
            rows.pin("rows", device);
        }
        self.h.pin("bases", device);
        for (points, values) in &mut self.g1 {
            points.pin("bases", device);
            values.pin("values", device);
        }
        self.g2.0.pin("bases", device);
        self.g2.1.pin("values", device);
    }
}

/// A w and B w.
pub(crate) fn rows(gpu: &Gpu, matrices: HostMatrices<'_>, values: &[Scalar]) -> [Array<Fr>; 2] {
    let (device, stream) = (gpu.device(), gpu.upload());
    let witness = PinnedWitness::pack(device.host(), values).expect("pinned memory");
    let witness = witness.upload(stream).expect("a witness");
    let matrices = DeviceMatrices::upload(stream, matrices, values.len()).expect("matrices");
    let rows = matrices.num_rows();
    let alloc = |len| device.alloc::<Fr>("rows", len, stream).expect("memory");
    let (mut a, mut b, mut scratch) = (alloc(rows), alloc(rows), alloc(matrices.scratch_len()));
    matrices
        .evaluate(
            gpu.launcher(),
            stream,
            witness.view(),
            scratch.view_mut(),
            a.view_mut(),
            b.view_mut(),
        )
        .expect("rows");
    [a, b].map(|on_device| {
        let mut values = vec![Fr::ZERO; rows];
        stream
            .download_slice(&on_device, &mut values)
            .expect("rows");
        Array::Pageable(values)
    })
}
