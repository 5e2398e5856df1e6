//! Results that are on their way, and what the host does with them.

use cuzk_field::{Affine, Xyzz};
use cuzk_gpu_mem::{Event, Transfer};
use cuzk_kernels::windows::Windows;

use super::DeviceCurve;
use super::error::Result;
use super::layout::{Label, Layout};

/// Sums whose windows are on their way to the host.
///
/// Dropped, it waits for nothing: the pinned buffer goes back to its pool behind the copy.
#[derive(Debug)]
#[must_use = "wait for the sums, or drop them knowingly"]
pub struct Pending<F: DeviceCurve> {
    transfer: Transfer<Xyzz<F>>,
    labels: Vec<Label>,
    windows: Windows,
    vectors: usize,
    wiped_from: Option<usize>,
}

impl<F: DeviceCurve> Pending<F> {
    pub(super) fn new(transfer: Transfer<Xyzz<F>>, layout: &Layout<F>) -> Self {
        Self {
            transfer,
            labels: layout.labels.clone(),
            windows: layout.windows,
            vectors: layout.terms.vectors.len(),
            wiped_from: None,
        }
    }

    /// From this byte on the scratch has been wiped.
    pub(super) fn with_wiped_from(self, byte: usize) -> Self {
        Self {
            wiped_from: Some(byte),
            ..self
        }
    }

    /// The byte of the scratch from which on it was overwritten with zeros, if any was: [`MsmPlan::wiping`](super::MsmPlan::wiping).
    pub fn wiped_from(&self) -> Option<usize> {
        self.wiped_from
    }

    /// Where the stream is done with the sums: inputs and scratch are free behind it. Scratch that is wiped meanwhile
    /// ([`MsmPlan::wiping`](super::MsmPlan::wiping)) is so when its loan is given back.
    pub fn event(&self) -> &Event {
        self.transfer.event()
    }

    /// Whether [`Self::wait`] would not have to wait for the device.
    pub fn is_done(&self) -> Result<bool> {
        Ok(self.transfer.is_done()?)
    }

    /// Waits, adds up the windows, and gives one sum for each vector.
    pub fn wait(self) -> Result<Vec<Affine<F>>> {
        let points = self.transfer.wait()?;
        Ok(combine(&points, &self.labels, &self.windows, self.vectors))
    }
}

/// One sum a vector: sum_w 2^(first bit of w) (point of w), by Horner's rule, and its ones.
fn combine<F: DeviceCurve>(
    points: &[Xyzz<F>],
    labels: &[Label],
    windows: &Windows,
    vectors: usize,
) -> Vec<Affine<F>> {
    let count = windows.count();
    let mut of_windows = vec![Xyzz::INFINITY; vectors * count as usize];
    let mut ones = vec![Xyzz::INFINITY; vectors];
    for (point, label) in points.iter().zip(labels) {
        match *label {
            Label::Ones(set) => ones[set] = *point,
            Label::Window { vector, window } => {
                of_windows[vector * count as usize + window as usize] = *point;
            }
        }
    }
    let sums: Vec<Xyzz<F>> = of_windows
        .chunks(count as usize)
        .zip(ones)
        .map(|(of_windows, ones)| {
            let mut sum = Xyzz::INFINITY;
            for (window, point) in (0..count).zip(of_windows).rev() {
                for _ in 0..windows.width_of(window) {
                    sum = sum.double();
                }
                sum.add_xyzz(point);
            }
            sum.add_xyzz(&ones);
            sum
        })
        .collect();
    Xyzz::normalize_all(&sums)
}
