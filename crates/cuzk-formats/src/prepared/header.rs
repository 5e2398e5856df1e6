//! The first page, and where everything lies.

use cuzk_field::{Field as _, Fr, G1Affine, G2Affine, RootGenerator};

use super::section::Section;
use super::{KeySource, Origin};
use crate::container::SectionInfo;
use crate::error::{Error, ErrorKind, Place};
use crate::model::{HBasis, KeyFlavour};

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// Bytes under one checksum: 4096 points of G1, a multiple of a page and of every item.
pub const CHUNK_BYTES: usize = 4096 * 96;

pub(super) const MAGIC: &[u8; 8] = b"cuzkprep";
pub(super) const PAGE: u64 = 4096;
const HASH_AT: usize = PAGE as usize - 32;
const TABLE_AT: usize = 248;
const HASH_BYTES: u64 = 32;
/// alpha, beta and delta in G1; beta, gamma and delta in G2.
const VITAL_BYTES: u64 = 3 * G1_BYTES + 3 * G2_BYTES;
const G1_BYTES: u64 = size_of::<G1Affine>() as u64;
const G2_BYTES: u64 = size_of::<G2Affine>() as u64;
/// Coefficients that 16 bits tell apart.
const NARROW_MAX: u64 = 1 << 16;

/// What the first page says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Roots of unity, H basis and g.
    pub flavour: KeyFlavour,
    /// What the key was made from.
    pub origin: Origin,
    /// n.
    pub domain_size: u64,
    /// The constant ONE included.
    pub num_inputs: u64,
    /// The constant ONE included.
    pub num_variables: u64,
    /// Rows of A and of B, those of the inputs included.
    pub num_rows: u64,
    /// Distinct coefficients, 1 and -1 included.
    pub num_coefficients: u64,
    /// Entries of A and of B.
    pub num_entries: [u64; 2],
    /// Points of A and of B.
    pub num_points: [u64; 2],
    /// BLAKE3 of the section of checksums.
    pub(super) hashes_hash: [u8; 32],
}

/// Where a section lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) section: Section,
    pub(super) item_bytes: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The number of its first chunk.
    pub(super) first_chunk: u64,
}

impl Extent {
    pub(super) fn num_chunks(&self) -> u64 {
        self.bytes.div_ceil(CHUNK_BYTES as u64)
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

impl Header {
    /// Bytes of a coefficient's index.
    pub fn id_bytes(&self) -> u32 {
        if self.num_coefficients <= NARROW_MAX {
            2
        } else {
            4
        }
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.extents().last().map_or(0, Extent::end)
    }

    /// The sections, as those of other formats are listed.
    pub fn sections(&self) -> Vec<SectionInfo> {
        let info = |extent: &Extent| SectionInfo {
            number: extent.section as u32,
            name: extent.section.name(),
            offset: extent.offset,
            bytes: extent.bytes,
        };
        self.extents().iter().map(info).collect()
    }

    /// Items and bytes of an item of each section behind the checksums. No product overflows: [`check`]
    /// bounds every count.
    fn items(&self) -> [(Section, u64, u64); 16] {
        let g1 = G1_BYTES;
        let ids = u64::from(self.id_bytes());
        let words = self.num_variables.div_ceil(64);
        let first_in_l = self.flavour.first_in_l(self.num_inputs as usize) as u64;
        let h_len = self.flavour.h_len(self.domain_size as usize) as u64;
        let [a, b] = self.num_entries;
        [
            (Section::Vital, 1, VITAL_BYTES),
            (Section::Ic, self.num_inputs, g1),
            (Section::AVariables, words, 8),
            (Section::BVariables, words, 8),
            (Section::Coefficients, self.num_coefficients, 32),
            (Section::AOffsets, self.num_rows + 1, 4),
            (Section::AColumns, a, 4),
            (Section::AIds, a, ids),
            (Section::BOffsets, self.num_rows + 1, 4),
            (Section::BColumns, b, 4),
            (Section::BIds, b, ids),
            (Section::A, self.num_points[0], g1),
            (Section::B1, self.num_points[1], g1),
            (Section::L, self.num_variables - first_in_l, g1),
            (Section::H, h_len, g1),
            (Section::B2, self.num_points[1], G2_BYTES),
        ]
    }

    /// All sections in order.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let items = self.items();
        let chunks: u64 = items
            .iter()
            .map(|(_, count, bytes)| (count * bytes).div_ceil(CHUNK_BYTES as u64))
            .sum();
        let mut extents = vec![Extent {
            section: Section::Hashes,
            item_bytes: HASH_BYTES as u32,
            offset: PAGE,
            bytes: chunks * HASH_BYTES,
            first_chunk: 0,
        }];
        let (mut end, mut first_chunk) = (PAGE + chunks * HASH_BYTES, 0);
        for (section, count, item_bytes) in items {
            let extent = Extent {
                section,
                item_bytes: item_bytes as u32,
                offset: end.next_multiple_of(PAGE),
                bytes: count * item_bytes,
                first_chunk,
            };
            first_chunk += extent.num_chunks();
            end = extent.end();
            extents.push(extent);
        }
        extents
    }

    /// The first page.
    pub(super) fn to_page(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE as usize];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            page[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let (basis, shift) = match self.flavour.h_basis {
            HBasis::OddLagrange => (1u32, Fr::ZERO),
            HBasis::TauPowers => (2, Fr::ZERO),
            HBasis::CosetLagrange { shift } => (3, shift),
        };
        let Origin {
            source,
            key_hash,
            r1cs_hash,
        } = self.origin;
        put(MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(CHUNK_BYTES as u32).to_le_bytes());
        put(&self.file_bytes().to_le_bytes());
        put(&(self.flavour.root_generator.generator() as u32).to_le_bytes());
        put(&basis.to_le_bytes());
        shift
            .montgomery_limbs()
            .iter()
            .for_each(|limb| put(&limb.to_le_bytes()));
        put(&source_number(source).to_le_bytes());
        let flags = u32::from(key_hash.is_some()) | u32::from(r1cs_hash.is_some()) << 1;
        put(&flags.to_le_bytes());
        put(&key_hash.unwrap_or_default());
        put(&r1cs_hash.unwrap_or_default());
        for count in self.counts() {
            put(&count.to_le_bytes());
        }
        put(&self.hashes_hash);
        let extents = self.extents();
        put(&(extents.len() as u32).to_le_bytes());
        put(&0u32.to_le_bytes());
        for extent in extents {
            put(&(extent.section as u32).to_le_bytes());
            put(&extent.item_bytes.to_le_bytes());
            put(&extent.offset.to_le_bytes());
            put(&extent.bytes.to_le_bytes());
        }
        let hash = blake3::hash(&page[..HASH_AT]);
        page[HASH_AT..].copy_from_slice(hash.as_bytes());
        page
    }

    fn counts(&self) -> [u64; 9] {
        let ([a, b], [points_a, points_b]) = (self.num_entries, self.num_points);
        [
            self.domain_size,
            self.num_inputs,
            self.num_variables,
            self.num_rows,
            self.num_coefficients,
            a,
            b,
            points_a,
            points_b,
        ]
    }

    /// Reads the first page of a file of `file_bytes` bytes, which begins with the magic.
    pub(super) fn parse(page: &[u8], file_bytes: u64) -> Result<Self, Error> {
        let error = |kind, expected: &'static str, found: String| {
            Error::new(kind, expected, found).at(Place::part("header"))
        };
        if page.len() < PAGE as usize {
            let found = format!("a file of {file_bytes} bytes");
            return Err(error(ErrorKind::Truncated, "a page of 4096 bytes", found)
                .hint("the file is cut short: prepare the key again"));
        }
        let word = |at: usize| crate::stream::u32_at(page, at);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let hash = |at: usize| -> [u8; 32] { std::array::from_fn(|i| page[at + i]) };
        // Before the checksum, whose place another version may change.
        let version = word(8);
        if version != VERSION {
            let age = if version < VERSION {
                "an older"
            } else {
                "a newer"
            };
            return Err(error(
                ErrorKind::Unsupported,
                "a prepared key of version 1",
                format!("version {version}"),
            )
            .hint(format!(
                "the file is of {age} cuzk, or damaged: prepare the key again with this one"
            )));
        }
        if *blake3::hash(&page[..HASH_AT]).as_bytes() != hash(HASH_AT) {
            return Err(damaged(Place::part("header")));
        }
        let out_of_range =
            |name: &'static str, found: u64| error(ErrorKind::OutOfRange, name, found.to_string());
        let root_generator = match word(24) {
            5 => RootGenerator::Five,
            7 => RootGenerator::Seven,
            other => return Err(out_of_range("a generator of 5 or 7", other.into())),
        };
        let shift =
            Fr::from_montgomery_limbs(crate::stream::limbs_at(page, 32)).ok_or_else(|| {
                let found = "one above r".to_owned();
                error(ErrorKind::NotCanonical, "a shift g below r", found)
            })?;
        let h_basis = match word(28) {
            1 => HBasis::OddLagrange,
            2 => HBasis::TauPowers,
            3 => HBasis::CosetLagrange { shift },
            other => return Err(out_of_range("an H basis from 1 to 3", other.into())),
        };
        let flags = word(68);
        if flags > 3 {
            return Err(out_of_range("flags from 0 to 3", flags.into()));
        }
        let known = |flag: u32, at: usize| (flags & flag != 0).then(|| hash(at));
        let header = Self {
            flavour: KeyFlavour {
                root_generator,
                h_basis,
            },
            origin: Origin {
                source: source_of(word(64))
                    .ok_or_else(|| out_of_range("a source from 1 to 4", word(64).into()))?,
                key_hash: known(1, 72),
                r1cs_hash: known(2, 104),
            },
            domain_size: long(136),
            num_inputs: long(144),
            num_variables: long(152),
            num_rows: long(160),
            num_coefficients: long(168),
            num_entries: [long(176), long(184)],
            num_points: [long(192), long(200)],
            hashes_hash: hash(208),
        };
        header.check()?;
        // Everything else follows from these: the page has it as it is written.
        if header.to_page() != page {
            return Err(error(
                ErrorKind::Inconsistent,
                "the sections that the counts imply",
                "others, or fields that should be zero".into(),
            ));
        }
        let expected = header.file_bytes();
        if file_bytes == expected {
            return Ok(header);
        }
        let extents = header.extents();
        let cut = extents.iter().find(|extent| extent.end() > file_bytes);
        // Without one there is more than all of them.
        let kind = cut.map_or(ErrorKind::BadLayout, |_| ErrorKind::Truncated);
        let place = cut.map_or_else(Place::default, |extent| extent.section.place());
        Err(Error::new(
            kind,
            format!("a file of {expected} bytes"),
            format!("{file_bytes}"),
        )
        .at(place.offset(file_bytes.min(expected)))
        .hint("the file was cut short or written over: prepare the key again"))
    }

    /// Bounds every count, and holds them against each other.
    pub(super) fn check(&self) -> Result<(), Error> {
        let n = self.domain_size;
        let fault = |what: String, found: u64| {
            Err(Error::new(ErrorKind::OutOfRange, what, found.to_string())
                .at(Place::part("header")))
        };
        if !n.is_power_of_two() || n > 1 << 32 {
            return fault("a domain of 2^k, k at most 32".into(), n);
        }
        if self.num_variables == 0 || self.num_variables > 1 << 32 {
            return fault("1 to 2^32 variables".into(), self.num_variables);
        }
        let bounded = [
            ("inputs", self.num_inputs, 1, self.num_variables.min(n)),
            ("rows", self.num_rows, 0, n),
            ("coefficients", self.num_coefficients, 2, u32::MAX.into()),
            ("entries of A", self.num_entries[0], 0, u32::MAX.into()),
            ("entries of B", self.num_entries[1], 0, u32::MAX.into()),
            ("points of A", self.num_points[0], 0, self.num_variables),
            ("points of B", self.num_points[1], 0, self.num_variables),
        ];
        for (noun, found, least, most) in bounded {
            if found < least || found > most {
                return fault(format!("{least} to {most} {noun}"), found);
            }
        }
        let fits = match self.flavour.h_basis {
            HBasis::OddLagrange => {
                self.flavour.root_generator == RootGenerator::Five && (2..1 << 32).contains(&n)
            }
            HBasis::TauPowers => self.flavour.root_generator == RootGenerator::Seven,
            HBasis::CosetLagrange { shift } => !shift.is_zero() && shift.pow(n) != Fr::ONE,
        };
        if fits {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Inconsistent,
            "roots of 5 with odd Lagrange points, of 7 with tau powers, or a g with g^n other than 1",
            "another combination",
        )
        .at(Place::part("header")))
    }
}

/// The error of a checksum that does not match.
pub(super) fn damaged(place: Place) -> Error {
    Error::new(
        ErrorKind::Checksum,
        "bytes of the checksum that was written with them",
        "others",
    )
    .at(place)
    .hint("the file is damaged: prepare the key again")
}

fn source_number(source: KeySource) -> u32 {
    match source {
        KeySource::Zkey => 1,
        KeySource::BellmanParams => 2,
        KeySource::Arkworks => 3,
        KeySource::Synthetic => 4,
    }
}

fn source_of(number: u32) -> Option<KeySource> {
    [
        KeySource::Zkey,
        KeySource::BellmanParams,
        KeySource::Arkworks,
        KeySource::Synthetic,
    ]
    .into_iter()
    .find(|source| source_number(*source) == number)
}

const _: () = assert!(
    TABLE_AT + 24 * Section::ALL.len() <= HASH_AT
        && CHUNK_BYTES.is_multiple_of(PAGE as usize)
        && CHUNK_BYTES.is_multiple_of(size_of::<G2Affine>())
);
