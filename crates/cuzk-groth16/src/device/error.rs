//! What can go wrong on a device.

/// The result of proving on a device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a device made no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the CPU prover would have said as well: key, circuit, witness, a proof that does not verify.
    #[error(transparent)]
    Proof(#[from] crate::Error),
    /// A prepared key's file.
    #[error(transparent)]
    File(#[from] cuzk_formats::Error),
    /// Device or pinned memory, streams, the device itself.
    #[error(transparent)]
    Memory(#[from] cuzk_gpu_mem::Error),
    /// The device, or the limit set for it, is too small for a circuit, with the key streamed and nothing to spare.
    #[error(
        "the device has too little memory for this circuit: {needed} bytes are needed, with the key left in host \
         memory, and {free} can be had"
    )]
    TooSmall {
        /// The least that would do.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// Kernels: their images, a launch, the self-test.
    #[error(transparent)]
    Kernels(cuzk_kernels::Error),
    /// Transforms.
    #[error(transparent)]
    Ntt(cuzk_ntt::device::Error),
    /// Sums.
    #[error(transparent)]
    Msm(cuzk_msm::device::Error),
}

impl Error {
    /// Whether memory is short, of the device or of the host: another time, or elsewhere, the same may do.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::TooSmall { .. } => true,
            Self::Memory(error) => error.is_out_of_memory(),
            Self::Msm(error) => matches!(error, cuzk_msm::device::Error::TooLittleScratch { .. }),
            Self::Ntt(error) => matches!(error, cuzk_ntt::device::Error::TooLittleMemory { .. }),
            _ => false,
        }
    }
}

impl From<cuzk_kernels::Error> for Error {
    fn from(error: cuzk_kernels::Error) -> Self {
        match error {
            cuzk_kernels::Error::Memory(error) => Self::Memory(error),
            error => Self::Kernels(error),
        }
    }
}

impl From<cuzk_ntt::device::Error> for Error {
    fn from(error: cuzk_ntt::device::Error) -> Self {
        match error {
            cuzk_ntt::device::Error::Kernels(error) => error.into(),
            error => Self::Ntt(error),
        }
    }
}

impl From<cuzk_msm::device::Error> for Error {
    fn from(error: cuzk_msm::device::Error) -> Self {
        match error {
            cuzk_msm::device::Error::Memory(error) => Self::Memory(error),
            cuzk_msm::device::Error::Kernel(error) => error.into(),
            cuzk_msm::device::Error::Stopped => Self::Proof(crate::Error::Stopped),
            error => Self::Msm(error),
        }
    }
}
