//! The declarations as `cargo xtask abi` reads them: a line for each kernel, then one for each of its
//! parameters.

#![allow(clippy::print_stdout, reason = "its output is its result")]

fn main() {
    for declaration in cuzk_kernels::declarations() {
        println!(
            "kernel {} {} {}",
            declaration.module, declaration.entry, declaration.threads
        );
        for parameter in declaration.parameters {
            println!(
                "parameter {} {} {}",
                parameter.bytes,
                parameter.align,
                (parameter.c_type)()
            );
        }
    }
}
