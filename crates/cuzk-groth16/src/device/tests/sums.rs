//! When the sums over a witness run, on paper.

use std::sync::Arc;

use cuzk_gpu_mem::driver::SimDriver;
use cuzk_gpu_mem::{Device, DeviceInfo, GIB, Settings};
use cuzk_msm::device::Streams;
use cuzk_ntt::device::QuotientForm;

use super::plan::porep;
use crate::device::plan::{KeyPlan, Part};
use crate::device::sums::{Beside, Known, SumsPlan, Turn};
use crate::device::witness_sums::WitnessTerms;

/// Of 16 GiB, what the reserve, the matrices and the tables leave.
const ROOM: u64 = 12 * GIB;

#[test]
fn streamed_sums_run_beside_what_there_is_room_for() {
    let device = Device::with_driver(Arc::new(SimDriver::new(GIB)), Settings::default());
    let streams = Arc::new(Streams::new(&device.unwrap()).unwrap());
    let info = DeviceInfo::simulated(140 * GIB);
    let turn = |form, parts: &[Part], room| {
        let mut sizes = porep(27);
        sizes.form = form;
        let key = KeyPlan::of_parts(&info, &sizes, parts).unwrap();
        let variables = sizes.num_variables;
        let known = Known {
            info: &info,
            streams: &streams,
            sizes: &sizes,
            key: &key,
            terms: WitnessTerms {
                variables,
                ones: variables / 2,
                full: variables / 125,
            },
            least_wipe_bytes: None,
        };
        let array = 32 << 27;
        let beside = Beside {
            array,
            quotient: form.arrays() as u64 * array + sizes.rows_scratch_bytes,
        };
        let plan = SumsPlan::new(known, beside, room).unwrap();
        assert!(plan.section_bytes(beside) <= room, "{form:?}");
        plan.turn
    };
    let (two, three) = (QuotientForm::OddProducts, QuotientForm::OddValues);
    assert_eq!(turn(two, &[], ROOM), Turn::BesideAll);
    assert_eq!(turn(three, &[], ROOM + GIB / 4), Turn::BesideH);
    assert_eq!(turn(three, &[], 40 * GIB), Turn::BesideAll);
    // With the key there, sums that large follow each other.
    assert_eq!(turn(three, &Part::ALL, 80 * GIB), Turn::Behind);
}
