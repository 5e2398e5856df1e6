//! One suite for every driver: what `SimDriver` models is what a card does.
//!
//! Each test is written once and run on the emulated device everywhere, and on a card where there
//! is one. A card is filled with a ballast first, so that 16 units of memory are left; the unit is
//! 1 GiB where the card is large enough. Without a card a test says that it was skipped, and why;
//! `CUZK_REQUIRE_GPU=1` makes that a failure.

mod lost;
mod memory;
mod order;
mod processes;
mod rig;

use cuzk_gpu_mem::driver::CudaDriver;
use cuzk_gpu_mem::{Device, Error, PoolSettings, Selector, Settings, Unavailable, list};
use rig::Rig;

/// An ordinal that is not there is named, with what is.
#[test]
fn gpu_an_ordinal_out_of_range_is_refused() {
    if !rig::card_is_there() {
        return;
    }
    let there = list().unwrap().len();
    let named = |reason: &Unavailable| match reason {
        Unavailable::NotFound { wanted, visible } => wanted == "99" && visible.len() == there,
        _ => false,
    };
    let refused = Device::open(&Selector::Ordinal(99), Settings::default());
    assert!(matches!(&refused, Err(Error::Unavailable(reason)) if named(reason)));
    let refused = CudaDriver::open(99, PoolSettings::default());
    assert!(matches!(&refused, Err(reason) if named(reason)));
}

macro_rules! suite {
    ($($module:ident::$test:ident,)*) => {
        mod sim {
            $(#[test] fn $test() { super::$module::$test(&super::Rig::simulated()); })*
        }
        mod gpu {
            $(#[test] fn $test() {
                if let Some(rig) = super::Rig::card(stringify!($test)) {
                    super::$module::$test(&rig);
                }
            })*
        }
    };
}

suite! {
    memory::steps_with_threshold_zero,
    memory::steps_with_threshold_at_the_maximum,
    memory::a_section_gives_back_what_it_holds_and_has_freed,
    memory::the_phantom_out_of_memory_is_real_and_gone,
    memory::a_pool_of_ones_own_gives_way_to_plain_allocations,
    memory::a_thousand_cycles_leave_memory_flat,
    memory::two_workers_share_the_card,
    memory::a_full_card_refuses_and_then_works,
    memory::secrets_are_wiped,
    order::every_way_of_copying_copies,
    order::registrations_behave_as_modelled,
    order::streams_and_events_order_work,
    order::drops_in_any_order,
    order::threads_need_no_context_of_their_own,
    processes::two_processes_on_one_card_both_finish,
    processes::a_forked_child_is_refused,
}
