//! Prepared keys and a GPU: `cargo xtask bench prepared_device -- --log-n 20 --gib 10 --path /tmp/key`. Transforms over
//! points with known logarithms, and a file's points loaded into device memory: from the page cache, and once more where
//! the system lets go of its pages.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench reports on its standard streams"
)]

mod device;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cuzk_field::{Field as _, Fr, G1Affine, RootGenerator, Scalar};
use cuzk_formats::prepared::{Reader, Section};
use cuzk_formats::{FileSource, prepared as file};
use cuzk_groth16::device::{Gpu, load_points};
use cuzk_groth16::prepared::{self, Origin, PreparedKey, Rows};
use cuzk_groth16::synth::{Instance, KeyFamily, Shape, proving_key};
use cuzk_msm::FixedBase;
use cuzk_ntt::{Direction, Domain, bit_reverse_permute};
use device::Bench;

fn main() {
    let mut bench = Bench::open("prepared_device");
    let number =
        |name: &str, other: f64| option(name).map_or(other, |text| text.parse().expect("a number"));
    let log_n = number("--log-n", if bench.real { 17.0 } else { 4.0 }) as u32;
    let gib = number("--gib", if bench.real { 1.0 } else { 0.001 });
    let path =
        option("--path").map_or_else(|| std::env::temp_dir().join("cuzk-prepared"), PathBuf::from);
    let gpu = Gpu::new(&bench.device).unwrap_or_else(|error| {
        eprintln!("prepared_device: {error}");
        std::process::exit(1);
    });
    transforms(&mut bench, &gpu, log_n);
    loading(&mut bench, &gpu, gib, &path);
    bench.finish();
}

fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.nth(1)
}

/// A transform over multiples of the generator against the transform of the multipliers.
fn transforms(bench: &mut Bench, gpu: &Gpu, log_n: u32) {
    let n = 1_usize << log_n;
    let step = Fr::from(0x9e37_79b9_7f4a_7c15);
    let mut value = Fr::from(3);
    let mut logarithms: Vec<Fr> = (0..n)
        .map(|_| {
            value = value * step + Fr::ONE;
            value
        })
        .collect();
    let scalars: Vec<Scalar> = logarithms.iter().map(|value| (*value).into()).collect();
    let generator = FixedBase::new(&G1Affine::generator());
    let mut points = generator.multiply_all(&scalars);
    let family = RootGenerator::Seven;
    let root = family.root_of_unity(log_n).expect("a domain");
    let begun = Instant::now();
    prepared::device::transform(gpu, &mut points, root, &|_| {}).expect("a transform");
    let seconds = begun.elapsed().as_secs_f64();
    let multiplications = (n / 2 * log_n as usize - (n - 1)) as f64;
    bench.row(
        format!("transform over 2^{log_n} points"),
        seconds * 1e3,
        "ms",
    );
    bench.row(
        "its scalar multiplications".to_owned(),
        multiplications / seconds / 1e6,
        "M/s",
    );
    let domain = Domain::new(n, family).expect("a domain");
    domain.natural_to_bit_reversed(&mut logarithms, Direction::Forward);
    bit_reverse_permute(&mut logarithms);
    let places: Vec<usize> = (0..64).map(|i| i * 0x9e37 % n).collect();
    let scalars: Vec<Scalar> = places.iter().map(|i| logarithms[*i].into()).collect();
    for (i, expected) in places.iter().zip(generator.multiply_all(&scalars)) {
        assert!(
            points[*i] == expected,
            "point {i} of the transform is wrong"
        );
    }
    let time = prepared::device::measure_multiplication(gpu).expect("a measurement");
    bench.row(
        "one scalar multiplication, as estimated".to_owned(),
        time.as_secs_f64() * 1e9,
        "ns",
    );
}

/// A key with so many points, whose values do not matter as long as they are on the curve.
fn loading(bench: &mut Bench, gpu: &Gpu, gib: f64, path: &Path) {
    let key = large_key(gib);
    let count = key.key.l_query.len();
    let begun = Instant::now();
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    file::write(&key, &mut out, None).expect("the key is written");
    drop(out);
    drop(key);
    bench.row("written".to_owned(), begun.elapsed().as_secs_f64(), "s");
    let stream = gpu.device().stream("load").expect("a stream");
    for pass in ["from the page cache", "again", "from the disk"] {
        if pass == "from the disk" && !forget_pages(path) {
            continue;
        }
        let source = FileSource::open(path).expect("the file");
        let reader = Reader::open(&source).expect("the file");
        let mut target = gpu
            .device()
            .alloc::<G1Affine>("L", count, &stream)
            .expect("room");
        let begun = Instant::now();
        load_points(gpu, &stream, &reader, Section::L, target.view_mut()).expect("points");
        let seconds = begun.elapsed().as_secs_f64();
        let bytes = (count * size_of::<G1Affine>()) as f64;
        bench.row(
            format!("{:.2} GiB to the device, {pass}", bytes / (1 << 30) as f64),
            bytes / seconds / 1e9,
            "GB/s",
        );
    }
    let _ = std::fs::remove_file(path);
}

/// Has the system write the file out and let go of its pages.
fn forget_pages(path: &Path) -> bool {
    let of = format!("of={}", path.display());
    let dd = Command::new("dd")
        .args([&of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"])
        .output();
    dd.is_ok_and(|output| output.status.success())
}

fn large_key(gib: f64) -> PreparedKey {
    let instance = Instance::new(Shape::Dense, 4, 1).expect("a circuit");
    let key = proving_key(&instance.r1cs, KeyFamily::Bellman, 1).expect("a key");
    let mut key =
        prepared::prepare(key, Rows::Of(&instance.r1cs), Origin::SYNTHETIC).expect("a key");
    let points: Vec<G1Affine> = key.key.l_query.clone();
    let count = (gib * f64::from(1 << 30)) as usize / size_of::<G1Affine>();
    key.key.l_query = points.iter().cycle().take(count).copied().collect();
    key
}
