//! The SQL script is made of what pgrx's macros leave in a section of the library
//! (`tools/schema`). No code refers to that section, so the linker is told to drop none.
//! As an argument for this one library, unlike in RUSTFLAGS, that builds no dependency a
//! second time (decision 0057).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--no-gc-sections");
    }
}
