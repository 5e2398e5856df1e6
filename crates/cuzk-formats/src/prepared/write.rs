//! Writing: checksums first, by all threads, then the file front to back.

use std::borrow::Cow;
use std::io::Write;

use bytemuck::{bytes_of, cast_slice};
use rayon::prelude::*;

use super::header::{CHUNK_BYTES, Header, PAGE};
use super::section::Section;
use super::{PreparedKey, check};
use crate::ab_matrices::AbMatrices;
use crate::error::{Error, ErrorKind};
use crate::options::{Progress, ProgressFn};
use crate::output::Output;

/// Bytes between two reports of progress.
const STEP: usize = 64 * CHUNK_BYTES;

/// Writes a prepared key. `progress` is told of the bytes written.
///
/// # Errors
/// When the parts of the key contradict each other, or writing fails.
pub fn write(
    key: &PreparedKey,
    out: &mut dyn Write,
    progress: Option<ProgressFn<'_>>,
) -> Result<(), Error> {
    check::key(key)?;
    let mut header = header_of(key);
    header.check()?;
    let bodies = bodies(key, &header);
    let hashes: Vec<u8> = bodies
        .par_iter()
        .flat_map(|(_, body)| body.par_chunks(CHUNK_BYTES))
        .flat_map_iter(|chunk| *blake3::hash(chunk).as_bytes())
        .collect();
    header.hashes_hash = *blake3::hash(&hashes).as_bytes();

    let total_bytes = header.file_bytes();
    let mut out = Output::new(out);
    out.bytes(&header.to_page())?;
    out.bytes(&hashes)?;
    let mut end = PAGE + hashes.len() as u64;
    let extents = header.extents();
    for (extent, (section, body)) in extents[1..].iter().zip(&bodies) {
        if extent.section != *section || extent.bytes != body.len() as u64 {
            return Err(Error::new(
                ErrorKind::Inconsistent,
                format!("{} bytes", extent.bytes),
                body.len().to_string(),
            )
            .at(section.place()));
        }
        out.bytes(&vec![0; (extent.offset - end) as usize])?;
        end = extent.offset;
        for step in body.chunks(STEP) {
            out.bytes(step)?;
            end += step.len() as u64;
            if let Some(progress) = progress {
                progress(Progress {
                    label: section.name(),
                    done_bytes: end,
                    total_bytes,
                });
            }
        }
    }
    out.finish()
}

fn header_of(prepared: &PreparedKey) -> Header {
    let PreparedKey {
        key,
        variables,
        matrices,
        origin,
    } = prepared;
    Header {
        flavour: key.flavour,
        origin: *origin,
        domain_size: key.domain_size as u64,
        num_inputs: key.num_inputs() as u64,
        num_variables: key.num_variables() as u64,
        num_rows: matrices.a.num_rows() as u64,
        num_coefficients: matrices.coefficients.values().len() as u64,
        num_entries: [&matrices.a, &matrices.b].map(|matrix| matrix.num_entries() as u64),
        num_points: [&variables.a, &variables.b].map(|list| list.len() as u64),
        hashes_hash: [0; 32],
    }
}

/// The bytes of each section behind the checksums.
fn bodies<'a>(prepared: &'a PreparedKey, header: &Header) -> Vec<(Section, Cow<'a, [u8]>)> {
    let PreparedKey {
        key,
        variables,
        matrices,
        ..
    } = prepared;
    let vk = &key.vk;
    let mut vital = Vec::new();
    for point in [vk.alpha_g1, key.beta_g1, key.delta_g1] {
        vital.extend_from_slice(bytes_of(&point));
    }
    for point in [vk.beta_g2, vk.gamma_g2, vk.delta_g2] {
        vital.extend_from_slice(bytes_of(&point));
    }
    let bits = |list: &[u32]| -> Cow<'a, [u8]> {
        let mut words = vec![0u64; (header.num_variables as usize).div_ceil(64)];
        for variable in list {
            words[*variable as usize / 64] |= 1 << (variable % 64);
        }
        Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    };
    let ids = |ids: &'a [u32]| -> Cow<'a, [u8]> {
        if header.id_bytes() == 2 {
            Cow::Owned(
                ids.iter()
                    .flat_map(|id| (*id as u16).to_le_bytes())
                    .collect(),
            )
        } else {
            cast_slice(ids).into()
        }
    };
    let AbMatrices { a, b, coefficients } = matrices;
    vec![
        (Section::Vital, vital.into()),
        (Section::Ic, cast_slice(&vk.gamma_abc_g1).into()),
        (Section::AVariables, bits(&variables.a)),
        (Section::BVariables, bits(&variables.b)),
        (
            Section::Coefficients,
            cast_slice(coefficients.values()).into(),
        ),
        (Section::AOffsets, cast_slice(a.row_offsets()).into()),
        (Section::AColumns, cast_slice(a.columns()).into()),
        (Section::AIds, ids(a.coefficients())),
        (Section::BOffsets, cast_slice(b.row_offsets()).into()),
        (Section::BColumns, cast_slice(b.columns()).into()),
        (Section::BIds, ids(b.coefficients())),
        (Section::A, cast_slice(&key.a_query).into()),
        (Section::B1, cast_slice(&key.b_g1_query).into()),
        (Section::L, cast_slice(&key.l_query).into()),
        (Section::H, cast_slice(&key.h_query).into()),
        (Section::B2, cast_slice(&key.b_g2_query).into()),
    ]
}
