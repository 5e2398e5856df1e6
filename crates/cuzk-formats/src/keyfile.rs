//! What bellman's and arkworks' key files have in common: a few vital points, then arrays of points
//! behind their counts, without magic, version or table of contents.
//!
//! Readers walk over all counts first, which touches a few bytes of a file of any size, then
//! compare them with each other, and only then decode.

use cuzk_field::{G1Affine, G2Affine, pairing_product_is_one};
use rayon::prelude::*;

use crate::cursor::{Cursor, fits};
use crate::detect::{FileKind, or_wrong_format};
use crate::error::{Error, ErrorKind, Note, NoteKind, Place};
use crate::model::{KeyFlavour, ProvingKey, QueryLayout, VerifyingKey};
use crate::options::{LoadOptions, Meter};
use crate::output::Output;
use crate::points::{Identity, Point, PointArray, PointForm, read_point};
use crate::source::ReadAt;

/// How a format writes the count before an array.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    BigEndian32,
    LittleEndian64,
}

/// An array that lies within the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Array {
    pub(crate) part: &'static str,
    pub(crate) offset: u64,
    pub(crate) count: u64,
}

/// Moves over a file part by part.
pub(crate) struct Walk<'a> {
    source: &'a dyn ReadAt,
    cursor: Cursor<'a>,
    form: PointForm,
    count: Count,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(source: &'a dyn ReadAt, form: PointForm, count: Count) -> Self {
        Self {
            source,
            cursor: Cursor::new(source),
            form,
            count,
        }
    }

    /// Bytes behind the parts so far.
    pub(crate) fn left(&self) -> u64 {
        self.cursor.left()
    }

    pub(crate) fn position(&self) -> u64 {
        self.cursor.position()
    }

    fn place(&self, part: &'static str) -> Place {
        Place::part(part).offset(self.cursor.position())
    }

    /// One point on which everything depends: never the identity, and always checked for the
    /// subgroup.
    pub(crate) fn vital<P: Point>(&mut self, part: &'static str) -> Result<P, Error> {
        let bytes = self.form.bytes::<P>() as u64;
        let (place, offset) = (self.place(part), self.cursor.position());
        self.cursor.skip(bytes).map_err(|error| error.at(place))?;
        let options = LoadOptions {
            subgroup_check: true,
            ..LoadOptions::default()
        };
        let meter = Meter::new(&options, 0);
        let place = Place::part(part);
        read_point(
            self.source,
            offset,
            self.form,
            Identity::Refused,
            place,
            &meter,
        )
    }

    /// Passes over a vital point.
    pub(crate) fn skip<P: Point>(&mut self, part: &'static str) -> Result<(), Error> {
        let place = self.place(part);
        let bytes = self.form.bytes::<P>() as u64;
        self.cursor.skip(bytes).map_err(|error| error.at(place))
    }

    /// An array's count, compared with the bytes left; passes over the points.
    pub(crate) fn array<P: Point>(&mut self, part: &'static str) -> Result<Array, Error> {
        let place = self.place(part);
        let count = match self.count {
            Count::BigEndian32 => self.cursor.u32_be().map(u64::from),
            Count::LittleEndian64 => self.cursor.u64_le(),
        }
        .map_err(|error| error.at(place.clone()))?;
        let bytes = self.form.bytes::<P>() as u64;
        if !fits(count, bytes, self.left()) {
            return Err(Error::new(
                ErrorKind::Truncated,
                format!("{count} points of {bytes} bytes"),
                format!("{} bytes up to the end of the file", self.left()),
            )
            .at(place)
            .hint("the file is cut short, or of another format"));
        }
        let offset = self.cursor.position();
        self.cursor.skip(count * bytes)?;
        Ok(Array {
            part,
            offset,
            count,
        })
    }

    /// The array of the inputs' points, the constant's at least.
    pub(crate) fn inputs(&mut self, part: &'static str) -> Result<Array, Error> {
        let array = self.array::<G1Affine>(part)?;
        array.expect_inputs()?;
        Ok(array)
    }

    /// What is to be said of bytes that follow the last part of `what`.
    pub(crate) fn trailing(&self, what: &str) -> Option<Note> {
        let bytes = self.left();
        let text = format!("{bytes} bytes follow {what}");
        let place = Place::default().offset(self.position());
        (bytes != 0).then(|| Note::new(NoteKind::TrailingBytes, place, text))
    }

    /// Decodes all arrays of a proving key whose other points are `front`.
    pub(crate) fn read_key(
        &self,
        front: Front,
        parts: &Parts,
        query_layout: QueryLayout,
        identity: Identity,
        options: &LoadOptions<'_>,
    ) -> Result<ProvingKey, Error> {
        let queries = &parts.queries;
        let meter = &Meter::new(options, queries.point_bytes(self.form));
        let gamma_abc_g1 = self.read(queries.ic, identity, meter)?;
        Ok(ProvingKey {
            flavour: KeyFlavour::LIBSNARK,
            domain_size: parts.domain_size,
            vk: VerifyingKey {
                gamma_abc_g1,
                ..front.vk
            },
            beta_g1: front.beta_g1,
            delta_g1: front.delta_g1,
            query_layout,
            h_query: self.read(queries.h, identity, meter)?,
            l_query: self.read(queries.l, identity, meter)?,
            a_query: self.read(queries.a, identity, meter)?,
            b_g1_query: self.read(queries.b_g1, identity, meter)?,
            b_g2_query: self.read(queries.b_g2, identity, meter)?,
        })
    }

    /// Decodes an array.
    pub(crate) fn read<P: Point>(
        &self,
        array: Array,
        identity: Identity,
        meter: &Meter<'_>,
    ) -> Result<Vec<P>, Error> {
        PointArray {
            source: self.source,
            offset: array.offset,
            count: array.count,
            form: self.form,
            identity,
            place: Place::part(array.part),
            label: array.part,
        }
        .read(meter)
        .map_err(|error| match error.place().offset {
            Some(offset) if identity == Identity::Refused && self.is_all_zero::<P>(offset) => error
                .hint(
                    "all-zero points are how snarkjs writes identities in `zkey export bellman`: \
                     prove from the .zkey itself",
                ),
            _ => error,
        })
    }

    fn is_all_zero<P: Point>(&self, offset: u64) -> bool {
        let mut bytes = vec![1; self.form.bytes::<P>()];
        self.source.read_exact_at(offset, &mut bytes).is_ok() && bytes.iter().all(|byte| *byte == 0)
    }
}

impl Array {
    /// Refuses an array of inputs without any.
    fn expect_inputs(self) -> Result<(), Error> {
        if self.count > 0 {
            return Ok(());
        }
        let expected = "at least one point, the constant's".to_owned();
        Err(disagree(self, expected))
    }
}

/// The points of a proving key outside of its arrays; the array in `vk` is still empty.
pub(crate) struct Front {
    pub(crate) vk: VerifyingKey,
    pub(crate) beta_g1: G1Affine,
    pub(crate) delta_g1: G1Affine,
}

/// A proving key's arrays, none of them decoded and all of them compared.
pub(crate) struct Parts {
    pub(crate) domain_size: usize,
    pub(crate) queries: Queries,
}

/// Names the file, and what it is where it is of another kind.
pub(crate) fn finish_error(source: &dyn ReadAt, error: Error, wanted: &[FileKind]) -> Error {
    or_wrong_format(source, error, wanted).in_file(source.name())
}

/// The arrays of a proving key.
pub(crate) struct Queries {
    pub(crate) ic: Array,
    pub(crate) h: Array,
    pub(crate) l: Array,
    pub(crate) a: Array,
    pub(crate) b_g1: Array,
    pub(crate) b_g2: Array,
}

impl Queries {
    /// Bytes of all points.
    pub(crate) fn point_bytes(&self, form: PointForm) -> u64 {
        let g1 = [self.ic, self.h, self.l, self.a, self.b_g1]
            .iter()
            .map(|array| array.count)
            .sum::<u64>();
        // All of it lies within the file: no overflow.
        g1 * form.bytes::<G1Affine>() as u64 + self.b_g2.count * form.bytes::<G2Affine>() as u64
    }

    /// Compares what both formats ask of the lengths: inputs, domain, both B queries.
    ///
    /// Returns the domain size.
    pub(crate) fn check(&self) -> Result<usize, Error> {
        self.ic.expect_inputs()?;
        if self.b_g2.count != self.b_g1.count {
            let expected = format!("{} points, as in {}", self.b_g1.count, self.b_g1.part);
            return Err(disagree(self.b_g2, expected));
        }
        let domain_size = self.h.count + 1;
        if !domain_size.is_power_of_two() || domain_size > 1 << 32 {
            let expected = "2^k - 1 points for a domain of 2^k, k at most 32".to_owned();
            let error = disagree(self.h, expected);
            return Err(if self.h.count.is_power_of_two() {
                error.hint(
                    "2^k points is what a circom zkey has, whose H basis (odd Lagrange points) and \
                     roots of unity are others: a key converted from one gives invalid proofs. \
                     Prove from the .zkey itself",
                )
            } else {
                error
            });
        }
        if domain_size < self.ic.count {
            let expected = format!(
                "at least {} points: the domain has a row for each of {} inputs",
                self.ic.count.next_power_of_two() - 1,
                self.ic.count
            );
            return Err(disagree(self.h, expected));
        }
        usize::try_from(domain_size).map_err(|_| Error::out_of_memory(self.h.count))
    }

    /// Variables: inputs and the rest.
    pub(crate) fn num_variables(&self) -> u64 {
        self.ic.count + self.l.count
    }
}

/// The error of an array whose length contradicts another's.
pub(crate) fn disagree(array: Array, expected: String) -> Error {
    Error::new(
        ErrorKind::Inconsistent,
        expected,
        format!("{} points", array.count),
    )
    .at(Place::part(array.part).offset(array.offset))
}

/// Checks that beta and delta have the same exponents in both groups: e(beta1, delta2) =
/// e(delta1, beta2), which holds whatever generators the key was made with.
pub(crate) fn check_exponents(
    (beta_g1, beta_g2): (G1Affine, G2Affine),
    (delta_g1, delta_g2): (G1Affine, G2Affine),
) -> Result<(), Error> {
    if pairing_product_is_one(&[(beta_g1, delta_g2), (-delta_g1, beta_g2)]) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Inconsistent,
        "beta and delta to be the same in G1 and in G2",
        "that a pairing tells them apart",
    )
    .hint("the key is damaged; get it again"))
}

/// Checks a key that is to be written, so that our own readers take it.
pub(crate) fn check_writable(key: &ProvingKey) -> Result<(), Error> {
    let array = |part, count: usize| Array {
        part,
        offset: 0,
        count: count as u64,
    };
    let queries = Queries {
        ic: array("gamma_abc_g1", key.vk.gamma_abc_g1.len()),
        h: array("h_query", key.h_query.len()),
        l: array("l_query", key.l_query.len()),
        a: array("a_query", key.a_query.len()),
        b_g1: array("b_g1_query", key.b_g1_query.len()),
        b_g2: array("b_g2_query", key.b_g2_query.len()),
    };
    if queries.check()? != key.domain_size {
        let expected = format!("{} points", key.domain_size.saturating_sub(1));
        return Err(disagree(queries.h, expected));
    }
    Ok(())
}

/// Points encoded at a time, by all cores.
const BLOCK_POINTS: usize = 1 << 14;

/// Writes an array's points.
pub(crate) fn write_points<P: Point>(
    out: &mut Output<'_>,
    form: PointForm,
    points: &[P],
) -> Result<(), Error> {
    let width = form.bytes::<P>();
    let mut block = Vec::new();
    for points in points.chunks(BLOCK_POINTS) {
        block.resize(points.len() * width, 0);
        block
            .par_chunks_exact_mut(width)
            .zip(points)
            .for_each(|(bytes, point)| form.encode(point, bytes));
        out.bytes(&block)?;
    }
    Ok(())
}
