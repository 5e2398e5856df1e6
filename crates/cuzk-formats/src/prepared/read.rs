//! Reading: by positioned reads of whole chunks, each verified by the thread that reads it.

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use cuzk_field::{Affine, CurveField, Fp, Fr, G1Affine, G2Affine};
use rayon::prelude::*;

use super::PreparedKey;
use super::check;
use super::header::{CHUNK_BYTES, Extent, Header, MAGIC, PAGE, damaged};
use super::section::Section;
use crate::ab_matrices::AbMatrices;
use crate::checks::unbound_inputs;
use crate::detect::{FileKind, guess_format};
use crate::error::{Error, ErrorKind, Note};
use crate::keyfile::check_exponents;
use crate::model::{
    CoefficientTable, Matrix, ProvingKey, QueryLayout, QueryVariables, VerifyingKey,
};
use crate::options::{LoadOptions, Meter};
use crate::source::ReadAt;

/// A prepared key as it was read.
#[derive(Clone, Debug)]
pub struct PreparedFile {
    /// What the first page says.
    pub header: Header,
    /// The key.
    pub key: PreparedKey,
    /// What was odd.
    pub notes: Vec<Note>,
}

/// Reads the first page, which says everything but the points and rows themselves, and checks it.
///
/// # Errors
/// What is wrong with the file, as far as that is seen without reading on.
pub fn read_header(source: &(impl ReadAt + ?Sized)) -> Result<Header, Error> {
    let source: &dyn ReadAt = &source;
    header_of(source).map_err(|error| error.in_file(source.name()))
}

fn header_of(source: &dyn ReadAt) -> Result<Header, Error> {
    let mut page = vec![0; source.len().min(PAGE) as usize];
    source.read_exact_at(0, &mut page)?;
    if !page.starts_with(MAGIC) {
        let found = guess_format(source).unwrap_or("another beginning");
        let expected = FileKind::PreparedKey.name();
        return Err(Error::new(ErrorKind::WrongFormat, expected, found));
    }
    Header::parse(&page, source.len())
}

/// Reads a whole prepared key. Memory is the key's.
///
/// # Errors
/// The first fault: a checksum, a count, an index, a coordinate not below p, a point off its curve (and,
/// where [`LoadOptions::subgroup_check`] asks for it, outside the subgroup).
pub fn read(
    source: &(impl ReadAt + ?Sized),
    options: &LoadOptions<'_>,
) -> Result<PreparedFile, Error> {
    let source: &dyn ReadAt = &source;
    Reader::open_dyn(source)
        .and_then(|reader| reader.read(options))
        .map_err(|error| error.in_file(source.name()))
}

/// An opened prepared key, whose sections are read chunk by chunk, in any order and by any thread: into
/// pinned memory, say. Points read this way are verified bytes and **not yet checked**.
pub struct Reader<'a> {
    source: &'a dyn ReadAt,
    header: Header,
    extents: Vec<Extent>,
    /// Of every chunk.
    hashes: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// Reads and checks the first page, the checksums and what lies between sections.
    ///
    /// # Errors
    /// As [`read_header`]; [`ErrorKind::Checksum`] where the checksums themselves, or the zeros between
    /// sections, are damaged.
    pub fn open<S: ReadAt>(source: &'a S) -> Result<Self, Error> {
        Self::open_dyn(source).map_err(|error| error.in_file(source.name()))
    }

    fn open_dyn(source: &'a dyn ReadAt) -> Result<Self, Error> {
        let header = header_of(source)?;
        let extents = header.extents();
        let mut hashes = Vec::new();
        let mut end = PAGE;
        for extent in &extents {
            let mut between = vec![0; (extent.offset - end) as usize];
            source.read_exact_at(end, &mut between)?;
            if between.iter().any(|byte| *byte != 0) {
                return Err(damaged(extent.section.place().offset(end)));
            }
            end = extent.end();
            if extent.section == Section::Hashes {
                hashes = zeroed::<u8>(extent.bytes)?;
                source.read_exact_at(extent.offset, &mut hashes)?;
            }
        }
        if *blake3::hash(&hashes).as_bytes() != header.hashes_hash {
            return Err(damaged(Section::Hashes.place().offset(PAGE)));
        }
        Ok(Self {
            source,
            header,
            extents,
            hashes,
        })
    }

    /// What the first page says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of a section.
    pub fn section_bytes(&self, section: Section) -> u64 {
        self.extent(section).bytes
    }

    fn extent(&self, section: Section) -> &Extent {
        // In the order of their numbers, from 1.
        &self.extents[section as usize - 1]
    }

    /// Fills `chunk` with chunk `index` of a section, [`CHUNK_BYTES`] or, for the last, what is left, and
    /// verifies it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] for a chunk or length that the section does not have,
    /// [`ErrorKind::Checksum`] for bytes that are not those written, and what reading may give.
    pub fn read_chunk(&self, section: Section, index: u64, chunk: &mut [u8]) -> Result<(), Error> {
        let extent = self.extent(section);
        let begin = index.saturating_mul(CHUNK_BYTES as u64);
        let wanted = extent.bytes.saturating_sub(begin).min(CHUNK_BYTES as u64);
        if wanted == 0 || wanted != chunk.len() as u64 || section == Section::Hashes {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!("chunk {index} to have {wanted} bytes"),
                format!("room for {}", chunk.len()),
            )
            .at(section.place()));
        }
        let offset = extent.offset + begin;
        self.source.read_exact_at(offset, chunk)?;
        let at = 32 * (extent.first_chunk + index) as usize;
        if self.hashes.get(at..at + 32) == Some(blake3::hash(chunk).as_bytes().as_slice()) {
            return Ok(());
        }
        let place = extent.section.place();
        Err(damaged(place.entry("chunk", index).offset(offset)))
    }

    /// The verifying key alone, and notes on it.
    ///
    /// # Errors
    /// As [`read`], of these points.
    pub fn verifying_key(
        &self,
        options: &LoadOptions<'_>,
    ) -> Result<(VerifyingKey, Vec<Note>), Error> {
        let bytes = [Section::Vital, Section::Ic].map(|section| self.section_bytes(section));
        let meter = &Meter::new(options, bytes.iter().sum());
        let mut notes = Vec::new();
        self.vital(meter)
            .and_then(|key| {
                note_unbound(&key.vk, options, &mut notes)?;
                Ok((key.vk, notes))
            })
            .map_err(|error| error.in_file(self.source.name()))
    }

    fn read(&self, options: &LoadOptions<'_>) -> Result<PreparedFile, Error> {
        let behind_hashes = &self.extents[1..];
        let total = behind_hashes.iter().map(|extent| extent.bytes).sum();
        let meter = &Meter::new(options, total);
        let mut file = self.parts(meter)?;
        let key = &mut file.key.key;
        key.a_query = self.points(Section::A, meter)?;
        key.b_g1_query = self.points(Section::B1, meter)?;
        key.l_query = self.points(Section::L, meter)?;
        key.h_query = self.points(Section::H, meter)?;
        key.b_g2_query = self.points(Section::B2, meter)?;
        check::key(&file.key)?;
        Ok(file)
    }

    /// Everything but the points of the queries, which are empty in what is returned.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read_without_queries(&self, options: &LoadOptions<'_>) -> Result<PreparedFile, Error> {
        let before_points = &self.extents[1..Section::A as usize - 1];
        let total = before_points.iter().map(|extent| extent.bytes).sum();
        self.parts(&Meter::new(options, total))
            .map_err(|error| error.in_file(self.source.name()))
    }

    /// Fills `points` with those of a section, verified and checked by all threads.
    ///
    /// # Errors
    /// As [`read`]; [`ErrorKind::OutOfRange`] unless the section has as many points.
    pub fn read_points<F: CurveField>(
        &self,
        section: Section,
        points: &mut [Affine<F>],
    ) -> Result<(), Error>
    where
        Affine<F>: Pod,
    {
        let extent = self.extent(section);
        let found = size_of_val(points) as u64;
        if extent.bytes != found {
            let expected = format!("room for {} bytes", extent.bytes);
            return Err(
                Error::new(ErrorKind::OutOfRange, expected, found.to_string())
                    .at(section.place())
                    .in_file(self.source.name()),
            );
        }
        let options = &LoadOptions::default();
        let check = |first, points: &[Affine<F>]| {
            check::points(points, first, extent.offset, false, section)
        };
        self.fill_checked(section, &Meter::new(options, found), points, check)
            .map_err(|error| error.in_file(self.source.name()))
    }

    /// A key without the points of its queries.
    fn parts(&self, meter: &Meter<'_>) -> Result<PreparedFile, Error> {
        let mut notes = Vec::new();
        let header = &self.header;
        let vk = self.vital(meter)?;
        note_unbound(&vk.vk, meter.options(), &mut notes)?;
        let matrices = self.matrices(meter)?;
        let variables = QueryVariables {
            a: self.variables(Section::AVariables, header.num_points[0], meter)?,
            b: self.variables(Section::BVariables, header.num_points[1], meter)?,
        };
        let key = ProvingKey {
            domain_size: usize::try_from(header.domain_size)
                .map_err(|_| Error::out_of_memory(header.domain_size))?,
            ..vk
        };
        Ok(PreparedFile {
            header: header.clone(),
            key: PreparedKey {
                key,
                variables,
                matrices,
                origin: header.origin,
            },
            notes,
        })
    }

    /// A key without its queries.
    fn vital(&self, meter: &Meter<'_>) -> Result<ProvingKey, Error> {
        let words: Vec<Fp> = self.items(Section::Vital, meter)?;
        let (g1, g2) = words.split_at(6);
        let g1: &[G1Affine] = &copied(g1);
        let g2: &[G2Affine] = &copied(g2);
        let (&[alpha_g1, beta_g1, delta_g1], &[beta_g2, gamma_g2, delta_g2]) = (g1, g2) else {
            return Err(damaged(Section::Vital.place()));
        };
        let offset = self.extent(Section::Vital).offset;
        check::vital(g1, offset)?;
        check::vital(g2, offset + size_of_val(g1) as u64)?;
        check_exponents((beta_g1, beta_g2), (delta_g1, delta_g2))?;
        Ok(ProvingKey {
            flavour: self.header.flavour,
            domain_size: 0,
            vk: VerifyingKey {
                alpha_g1,
                beta_g2,
                gamma_g2,
                delta_g2,
                gamma_abc_g1: self.points(Section::Ic, meter)?,
            },
            beta_g1,
            delta_g1,
            query_layout: QueryLayout::Compact,
            a_query: Vec::new(),
            b_g1_query: Vec::new(),
            b_g2_query: Vec::new(),
            h_query: Vec::new(),
            l_query: Vec::new(),
        })
    }

    fn matrices(&self, meter: &Meter<'_>) -> Result<AbMatrices, Error> {
        let values: Vec<Fr> = self.items(Section::Coefficients, meter)?;
        let coefficients = check::coefficients(values)?;
        use Section::{AColumns, AIds, AOffsets, BColumns, BIds, BOffsets};
        let a = self.matrix([AOffsets, AColumns, AIds], &coefficients, meter)?;
        let b = self.matrix([BOffsets, BColumns, BIds], &coefficients, meter)?;
        Ok(AbMatrices { a, b, coefficients })
    }

    fn matrix(
        &self,
        [offsets, columns, ids]: [Section; 3],
        coefficients: &CoefficientTable,
        meter: &Meter<'_>,
    ) -> Result<Matrix, Error> {
        let row_offsets: Vec<u32> = self.items(offsets, meter)?;
        let column_list: Vec<u32> = self.items(columns, meter)?;
        let id_list: Vec<u32> = if self.header.id_bytes() == 2 {
            let narrow: Vec<u16> = self.items(ids, meter)?;
            let mut wide = zeroed::<u32>(narrow.len() as u64)?;
            wide.par_iter_mut()
                .zip(&narrow)
                .for_each(|(wide, narrow)| *wide = u32::from(*narrow));
            wide
        } else {
            self.items(ids, meter)?
        };
        check::indices(&column_list, self.header.num_variables, columns)?;
        check::indices(&id_list, coefficients.values().len() as u64, ids)?;
        Matrix::from_parts(row_offsets, column_list, id_list).map_err(|_| {
            Error::new(
                ErrorKind::Inconsistent,
                "rows that begin one behind the other, up to the last entry",
                "others",
            )
            .at(offsets.place())
        })
    }

    fn variables(
        &self,
        section: Section,
        num_points: u64,
        meter: &Meter<'_>,
    ) -> Result<Vec<u32>, Error> {
        let words: Vec<u64> = self.items(section, meter)?;
        check::variables(&words, self.header.num_variables, num_points, section)
    }

    fn points<F: CurveField>(
        &self,
        section: Section,
        meter: &Meter<'_>,
    ) -> Result<Vec<Affine<F>>, Error>
    where
        Affine<F>: Pod,
    {
        let offset = self.extent(section).offset;
        let subgroup = meter.options().subgroup_check;
        self.items_checked(section, meter, |first, points| {
            check::points(points, first, offset, subgroup, section)
        })
    }

    fn items<T: Pod + Send + Sync>(
        &self,
        section: Section,
        meter: &Meter<'_>,
    ) -> Result<Vec<T>, Error> {
        self.items_checked(section, meter, |_, _| Ok(()))
    }

    /// The items of a section, read, verified and checked by all threads, in place. `check` gets the
    /// number of the first item with each chunk.
    fn items_checked<T: Pod + Send + Sync>(
        &self,
        section: Section,
        meter: &Meter<'_>,
        check: impl Fn(u64, &[T]) -> Result<(), Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let bytes = self.section_bytes(section);
        let mut items = zeroed::<T>(bytes / size_of::<T>() as u64)?;
        self.fill_checked(section, meter, &mut items, check)?;
        Ok(items)
    }

    fn fill_checked<T: Pod + Send + Sync>(
        &self,
        section: Section,
        meter: &Meter<'_>,
        items: &mut [T],
        check: impl Fn(u64, &[T]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let fault = cast_slice_mut::<T, u8>(items)
            .par_chunks_mut(CHUNK_BYTES)
            .enumerate()
            .find_map_first(|(index, chunk)| {
                let first = (index * (CHUNK_BYTES / size_of::<T>())) as u64;
                self.read_chunk(section, index as u64, chunk)
                    .and_then(|()| check(first, cast_slice(chunk)))
                    .and_then(|()| meter.advance(section.name(), chunk.len() as u64))
                    .err()
            });
        fault.map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("source", &self.source.name())
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

fn note_unbound(
    vk: &VerifyingKey,
    options: &LoadOptions<'_>,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    match unbound_inputs(&vk.gamma_abc_g1, Section::Ic.place()) {
        Some(note) => options.note(notes, note),
        None => Ok(()),
    }
}

/// Points from words, which need not be aligned as points are.
fn copied<T: Pod>(words: &[Fp]) -> Vec<T> {
    let bytes: &[u8] = cast_slice(words);
    let items = bytes.chunks_exact(size_of::<T>());
    items.map(bytemuck::pod_read_unaligned).collect()
}

/// Zeros that the system gives page by page, as they are first written: by all threads.
fn zeroed<T: Zeroable>(count: u64) -> Result<Vec<T>, Error> {
    let out_of_memory = || Error::out_of_memory(count.saturating_mul(size_of::<T>() as u64));
    let count = usize::try_from(count).map_err(|_| out_of_memory())?;
    let boxed = bytemuck::allocation::try_zeroed_slice_box(count).map_err(|()| out_of_memory())?;
    Ok(boxed.into_vec())
}
