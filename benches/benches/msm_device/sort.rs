//! The sort alone: all windows of random and of skewed scalars.

use std::time::Duration;

use cuzk_field::Scalar;
use cuzk_gpu_mem::{DeviceBuf, DeviceViewMut, Stream};
use cuzk_kernels::bucket_sort::{
    BaseIndices, Part, PartShape, Scalars, SortShape, SortTarget, sort,
};
use cuzk_kernels::windows::Windows;
use cuzk_kernels::{Launcher, Result};

use crate::device::{self, Bench};
use crate::values::{random_scalar, repeated, words};

/// Median of timed runs, after one that is not counted.
fn timed(bench: &Bench, stream: &Stream, mut run: impl FnMut() -> Result<()>) -> Duration {
    let mut times = Vec::new();
    for round in 0..=bench.rounds(5) {
        let begin = stream.record_timed().expect("an event");
        run().expect("a launch");
        let end = stream.record_timed().expect("an event");
        end.wait().expect("the kernel");
        if round > 0 {
            times.push(end.since(&begin).expect("both are reached"));
        }
    }
    device::median(times)
}

type Values = Box<dyn FnMut() -> Scalar>;

/// The sort alone: all windows of random and of skewed scalars.
pub(crate) fn sorts(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream) {
    let sizes: &[(u32, u32)] = if bench.real {
        &[(20, 16), (22, 15), (24, 13), (26, 12), (27, 12)]
    } else {
        &[(6, 51)]
    };
    for &(log_n, windows) in sizes {
        let mut word = words(7);
        let random: Vec<Scalar> = (0..5).map(|_| random_scalar(&mut word)).collect();
        let mut kinds: Vec<(&str, Values)> =
            vec![("random", Box::new(move || random_scalar(&mut word)))];
        if log_n == 26 {
            let mut word = words(9);
            let (one, few) = (random[0], random);
            kinds.push(("one value", Box::new(move || one)));
            kinds.push((
                "four values",
                Box::new(move || few[1 + (word() >> 30) as usize % 4]),
            ));
            let mut word = words(11);
            kinds.push((
                "99% one value",
                Box::new(move || {
                    if word().is_multiple_of(100) {
                        random_scalar(&mut word)
                    } else {
                        one
                    }
                }),
            ));
            let mut word = words(13);
            kinds.push(("bits", Box::new(move || Scalar::from(word() >> 63))));
        }
        for (kind, value) in kinds {
            let n = 1_usize << log_n;
            let values = repeated(stream, n, value).0;
            sort_of(
                bench,
                launcher,
                stream,
                &values,
                (windows, None),
                &format!("2^{log_n} {kind}"),
            );
        }
    }
}

fn sort_of(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    values: &DeviceBuf<Scalar>,
    (count, low_bits): (u32, Option<u32>),
    name: &str,
) {
    let n = values.len();
    let windows = Windows::new(count);
    let part = PartShape {
        scalars: n,
        windows: 0..count,
    };
    let mut shape = SortShape::new(windows, vec![part]).expect("a shape");
    if let Some(log) = low_bits {
        shape = shape.with_low_bits(log);
    }
    let device = stream.device();
    let alloc = |len| device.alloc::<u32>("bench", len, stream).expect("memory");
    let mut entries = alloc(shape.max_entries());
    let mut offsets = alloc(shape.buckets() + 1);
    let mut recoded = alloc(8 * n);
    let mut scratch = device
        .alloc::<u8>("scratch", shape.scratch_bytes(), stream)
        .expect("memory");
    let mut run = |scalars: Scalars<'_>, recoded: Option<DeviceViewMut<'_, u32>>| {
        sort(
            launcher,
            stream,
            &shape,
            &[Part {
                scalars,
                bases: BaseIndices::From(0),
                multiple_stride: 0,
                recoded,
            }],
            SortTarget {
                first_entry: 0,
                entries: entries.view_mut(),
                offsets: offsets.view_mut(),
            },
            scratch.view_mut(),
        )
    };
    let time = timed(bench, stream, || {
        run(Scalars::Canonical(values.view()), Some(recoded.view_mut()))
    });
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    bench.row(format!("sort {name}, {count} windows"), ms(time), "ms");
    let recoded = recoded.view();
    let time = timed(bench, stream, || run(Scalars::Recoded(recoded), None));
    bench.row(format!("sort {name}, recoded before"), ms(time), "ms");
    let time = timed(bench, stream, || {
        run(Scalars::Canonical(values.view()), None)
    });
    bench.row(format!("sort {name}, recoding each time"), ms(time), "ms");
}

/// Columns of other sizes than the sort's own.
pub(crate) fn columns(bench: &mut Bench, launcher: &dyn Launcher, stream: &Stream) {
    let choices: &[(u32, u32, &[u32])] = if bench.real {
        &[
            (26, 12, &[10, 11, 12]),
            (24, 13, &[8, 9, 10, 11]),
            (20, 17, &[6, 7, 8]),
        ]
    } else {
        &[(6, 51, &[2])]
    };
    for &(log_n, windows, logs) in choices {
        let mut word = words(7);
        let values = repeated(stream, 1 << log_n, || random_scalar(&mut word)).0;
        for &log in logs {
            let name = format!("2^{log_n}, columns of 2^{log}");
            sort_of(
                bench,
                launcher,
                stream,
                &values,
                (windows, Some(log)),
                &name,
            );
        }
    }
}
