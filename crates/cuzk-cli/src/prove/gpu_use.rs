//! What proofs take of a GPU, for the result.

use cuzk_gpu_mem::{Bytes, Device, Direction, Recorder, Tier};
use cuzk_groth16::device::{DeviceProver, Gpu, Residency};
use serde_json::{Value, json};

use crate::device;
use crate::report::Lines;

/// A GPU with the key that proofs are made with.
#[derive(Debug)]
pub(super) struct GpuUse {
    name: String,
    device: Device,
    residency: Residency,
    key_bytes: u64,
    pinned_key_bytes: u64,
    proof: Option<Traffic>,
}

/// What one proof brought over the bus.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    tier: Tier,
    /// Up and down; none where the device's clock was not to be had.
    bytes: Option<[u64; 2]>,
}

impl GpuUse {
    /// By any number of proofs.
    pub(super) fn of(gpu: &Gpu, prover: &DeviceProver<'_, '_>) -> Self {
        let key = prover.key();
        Self {
            name: device::name_of(gpu),
            device: gpu.device().clone(),
            residency: key.plan().residency(),
            key_bytes: key.bytes(),
            pinned_key_bytes: key.host_bytes(),
            proof: None,
        }
    }

    /// The device's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// By one proof, of which so much was staged before its section.
    pub(super) fn with_proof(mut self, tier: Tier, recorder: &Recorder) -> Self {
        let timeline = recorder.timeline().inspect_err(|error| {
            tracing::debug!(%error, "transfers not counted");
        });
        let bytes = timeline.ok().map(|timeline| {
            [Direction::Up, Direction::Down].map(|direction| {
                let transfers = timeline.transfers.iter();
                transfers
                    .filter(|transfer| transfer.direction == direction)
                    .map(|transfer| transfer.bytes)
                    .sum()
            })
        });
        self.proof = Some(Traffic { tier, bytes });
        self
    }

    fn peak_bytes(&self) -> u64 {
        self.device.budget().state().peak_committed
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = json!({
            "device": self.name,
            "residency": self.residency.to_string(),
            "key_bytes": self.key_bytes,
            "pinned_key_bytes": self.pinned_key_bytes,
            "peak_bytes": self.peak_bytes(),
        });
        if let Some(Traffic { tier, bytes }) = &self.proof {
            object["tier"] = tier.to_string().into();
            object["bytes_up"] = bytes.map(|[up, _]| up).into();
            object["bytes_down"] = bytes.map(|[_, down]| down).into();
        }
        object
    }

    pub(super) fn to_text(&self, lines: &mut Lines) {
        let (key, pinned) = (Bytes(self.key_bytes), Bytes(self.pinned_key_bytes));
        lines.line(
            "GPU memory",
            format_args!(
                "{} at most; key {} ({key} there, {pinned} pinned)",
                Bytes(self.peak_bytes()),
                self.residency
            ),
        );
        if let Some(Traffic {
            tier,
            bytes: Some([up, down]),
        }) = self.proof
        {
            lines.line(
                "moved by the proof",
                format_args!(
                    "{} up, {} down; staged before: {tier}",
                    Bytes(up),
                    Bytes(down)
                ),
            );
        }
    }
}
