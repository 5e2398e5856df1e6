//! Dense sums over bases and their multiples, as idle memory allows.

use std::sync::Arc;

use cuzk_field::Affine;
use cuzk_gpu_mem::Stream;
use cuzk_kernels::Launcher;
use cuzk_msm::device::{DeviceCurve, MsmPlan, Multiples, Scalars, Streams};

use crate::dense::{PLENTY, Run, sustained};
use crate::device::Bench;
use crate::values::{expected, points, random_scalar, repeated, room, words};

pub(crate) fn multiples<F: DeviceCurve>(
    bench: &mut Bench,
    launcher: &dyn Launcher,
    stream: &Stream,
    name: &str,
    sizes: &[(u32, &[u64])],
) {
    let streams = Arc::new(Streams::new(&bench.device).expect("streams"));
    let most = sizes.iter().map(|(log_n, _)| *log_n).max().unwrap_or(0);
    let (bases, exponents) = points::<F>(launcher, stream, 1 << most);
    let mut word = words(17);
    let (scalars, values) = repeated(stream, 1 << most, || random_scalar(&mut word));
    for &(log_n, idle) in sizes {
        let n = 1_usize << log_n;
        let sum = expected::<F>(n, &values, &exponents);
        let info = &bench.device.info().clone();
        for &gib in idle {
            let choice = match bench.real {
                true => Multiples::<F>::choose(info, n, gib << 30),
                false => Multiples::new(info, n, 1, 32).ok(),
            };
            let Some(choice) = choice else {
                println!("    {name} 2^{log_n}, {gib} GiB idle: none");
                continue;
            };
            let mut table = room::<Affine<F>>(stream, choice.table_len());
            let own = table.view_mut().slice(..n);
            stream.copy(bases.view().slice(..n), own).expect("a copy");
            let begin = stream.record_timed().expect("an event");
            choice
                .make(launcher, stream, table.view_mut())
                .expect("a table");
            let end = stream.record_timed().expect("an event");
            end.wait().expect("the kernels");
            let made = end.since(&begin).expect("both are reached");
            let plan = MsmPlan::with_multiples(Some(&streams), info, &choice, 1, PLENTY);
            let mut run = Run::new(launcher, stream, plan.expect("a plan"));
            let scalars = scalars.view().slice(..n);
            let (time, _) = sustained(bench, &[sum], 1.0, || {
                run.start(table.view(), Scalars::Canonical(scalars))
            });
            bench.row(format!("{name} 2^{log_n}, {gib} GiB idle"), time, "ms");
            println!(
                "    {} multiples, {} MiB, made in {:.0} ms; {}; {:?}",
                choice.count(),
                choice.extra_bytes() >> 20,
                made.as_secs_f64() * 1e3,
                run.describe(),
                choice.gain()
            );
        }
    }
}
