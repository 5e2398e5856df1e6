//! The engine over emulated devices and a workload that does, fails and waits as a test wants it.

mod random;
mod rules;
mod trouble;
mod work;

/// Planned panics are not reported.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"as planned") {
                report(info);
            }
        }));
    });
}
