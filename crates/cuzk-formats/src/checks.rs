//! Checks that several key formats share.

use cuzk_field::G1Affine;

use crate::error::{Note, NoteKind, Place};

/// Notes on identities among the points of the inputs: no proof binds such an input. Public values
/// are counted from 0, as constraints are and as in `public.json`; point i belongs to value i - 1.
pub(crate) fn unbound_inputs(points: &[G1Affine], place: Place) -> Option<Note> {
    let mut unbound = (0u64..)
        .zip(points)
        .filter(|(_, point)| point.is_infinity())
        .map(|(index, _)| index);
    let first = unbound.next()?;
    let more = unbound.count();
    let which = match first {
        0 => "the constant's point is the identity".to_owned(),
        _ => format!(
            "the point of public value {} (counted from 0) is the identity: any value of it verifies",
            first - 1
        ),
    };
    let text = match more {
        0 => which,
        _ => format!("{which}, and {more} more are"),
    };
    Some(Note::new(
        NoteKind::UnboundPublicInput,
        place.entry("point", first),
        text,
    ))
}
