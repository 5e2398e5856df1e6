//! Listing devices and naming one of them, without opening a context on any.

use std::fmt;
use std::str::FromStr;

use crate::driver::cuda;
use crate::error::Unavailable;
use crate::info::{DeviceInfo, PciAddress, Uuid};

/// One device, named in one of the three ways users know.
///
/// ```
/// use cuzk_gpu_mem::Selector;
///
/// assert_eq!("1".parse::<Selector>()?, Selector::Ordinal(1));
/// assert_eq!("0000:3b:00.0".parse::<Selector>()?.to_string(), "0000:3b:00.0");
/// assert!("the big one".parse::<Selector>().is_err());
/// # Ok::<(), cuzk_gpu_mem::Unavailable>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Position in the driver's list, which `CUDA_VISIBLE_DEVICES` has filtered and ordered.
    Ordinal(u32),
    /// `GPU-...` or `MIG-...`, in full or the first digits, as `CUDA_VISIBLE_DEVICES` takes it.
    Uuid(String),
    /// `domain:bus:device.0`, domain and function optional. Other functions of a card (its sound,
    /// its USB port) are no devices.
    Pci(PciAddress),
}

impl FromStr for Selector {
    type Err = Unavailable;

    fn from_str(text: &str) -> Result<Self, Unavailable> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            if let Ok(ordinal) = text.parse() {
                return Ok(Self::Ordinal(ordinal));
            }
        } else if let Some(digits) = uuid_digits(text) {
            return Ok(Self::Uuid(digits));
        } else if let Some(address) = pci_address(text) {
            return Ok(Self::Pci(address));
        }
        Err(Unavailable::BadName {
            text: text.to_owned(),
        })
    }
}

/// The hexadecimal digits of a UUID or of its beginning, lower case, without dashes.
fn uuid_digits(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("GPU-")
        .or_else(|| text.strip_prefix("MIG-"));
    let bare = text.len() == 36 && text.matches('-').count() == 4;
    let digits = rest
        .or(bare.then_some(text))?
        .replace('-', "")
        .to_ascii_lowercase();
    let valid = (1..=32).contains(&digits.len()) && digits.bytes().all(|d| d.is_ascii_hexdigit());
    valid.then_some(digits)
}

fn pci_address(text: &str) -> Option<PciAddress> {
    let (address, function) = text.split_once('.').unwrap_or((text, "0"));
    let hex = |digits: &str, longest: usize| {
        let valid = (1..=longest).contains(&digits.len()) && !digits.starts_with('+');
        valid
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    if hex(function, 1)? != 0 {
        return None;
    }
    let mut parts = address.rsplit(':');
    let device = hex(parts.next()?, 2)?;
    let bus = hex(parts.next()?, 2)?;
    let domain = match parts.next() {
        Some(domain) => hex(domain, 8)?,
        None => 0,
    };
    parts.next().is_none().then_some(PciAddress {
        domain,
        bus,
        device,
    })
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal(ordinal) => write!(f, "{ordinal}"),
            Self::Uuid(digits) => write!(f, "GPU-{digits}"),
            Self::Pci(address) => write!(f, "{address}"),
        }
    }
}

impl Selector {
    fn matches(&self, info: &DeviceInfo) -> bool {
        match self {
            Self::Ordinal(ordinal) => info.ordinal == *ordinal,
            Self::Uuid(digits) => hex_of(info.uuid).starts_with(digits),
            Self::Pci(address) => info.pci == *address,
        }
    }

    /// The one device of the list that this names.
    pub fn pick(&self, devices: &[DeviceInfo]) -> Result<DeviceInfo, Unavailable> {
        let matching: Vec<_> = devices.iter().filter(|info| self.matches(info)).collect();
        let wanted = || self.to_string();
        match matching[..] {
            [info] => Ok(info.clone()),
            [] => Err(Unavailable::NotFound {
                wanted: wanted(),
                visible: devices.iter().map(name_of).collect(),
            }),
            _ => Err(Unavailable::Ambiguous {
                wanted: wanted(),
                candidates: matching.into_iter().map(name_of).collect(),
            }),
        }
    }
}

/// A device by all its names.
fn name_of(info: &DeviceInfo) -> String {
    let DeviceInfo {
        ordinal,
        name,
        uuid,
        pci,
        ..
    } = info;
    format!("{ordinal} ({name}, GPU-{uuid}, {pci})")
}

fn hex_of(uuid: Uuid) -> String {
    uuid.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All devices that the CUDA driver shows this process and can describe, in its order.
///
/// Loads the driver's library and asks it; opens no context and takes no device memory.
/// `CUDA_VISIBLE_DEVICES` is honoured, by the driver itself.
pub fn list() -> Result<Vec<DeviceInfo>, Unavailable> {
    cuda::list()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<DeviceInfo> {
        let mut devices = vec![
            DeviceInfo::simulated(1 << 30),
            DeviceInfo::simulated(2 << 30),
        ];
        devices[0].uuid = Uuid([0x11; 16]);
        devices[1].ordinal = 1;
        devices[1].uuid = Uuid([0xab; 16]);
        devices[1].pci = PciAddress {
            domain: 1,
            bus: 0x3b,
            device: 2,
        };
        devices
    }

    #[test]
    fn a_device_is_found_by_each_of_its_names() {
        let names = [
            "1",
            " 1 ",
            "GPU-abababab-abab-abab-abab-abababababab",
            "GPU-ABAB",
            "MIG-abababab-abab-abab-abab-abababababab",
            "abababab-abab-abab-abab-abababababab",
            "0001:3b:02.0",
            "00000001:3B:02.0",
            "1:3b:2",
        ];
        for name in names {
            let selector: Selector = name.parse().unwrap();
            assert_eq!(selector.pick(&two()).unwrap().ordinal, 1, "{name}");
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for text in [
            "",
            "-1",
            "gpu",
            "GPU-",
            "GPU-xyz",
            "cuda:0",
            "0:0:0:0.0",
            "3b.0",
            "99999999999",
            "0:+1:2",
            "0001:3b:02.1",
        ] {
            let error = text.parse::<Selector>().unwrap_err();
            assert_eq!(
                error,
                Unavailable::BadName {
                    text: text.to_owned()
                }
            );
        }
    }

    #[test]
    fn a_beginning_that_two_share_is_refused_with_both() {
        let mut devices = two();
        devices[0].uuid.0[0] = 0xab;
        let selector: Selector = "GPU-ab".parse().unwrap();
        let error = selector.pick(&devices).unwrap_err();
        assert!(
            matches!(&error, Unavailable::Ambiguous { candidates, .. } if candidates.len() == 2)
        );
        let text = error.to_string();
        assert!(text.starts_with("GPU-ab names several devices: 0 (simulated device, GPU-ab1111"));
        let selector: Selector = "GPU-abab".parse().unwrap();
        assert_eq!(selector.pick(&devices).unwrap().ordinal, 1);
    }

    #[test]
    fn a_device_that_is_not_visible_is_named_with_those_that_are() {
        let error = Selector::Ordinal(7).pick(&two()).unwrap_err().to_string();
        assert!(error.starts_with(
            "no visible device is 7; visible are: 0 (simulated device, GPU-11111111-"
        ));
        let error = Selector::Ordinal(0).pick(&[]).unwrap_err().to_string();
        assert_eq!(error, "no visible device is 0; visible are: none");
    }
}
