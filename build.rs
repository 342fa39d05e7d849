//! Conditions on PostgreSQL's version, and an argument for the linker.

/// The versions that a condition can begin with. The oldest one needs none.
const SINCE: [u32; 4] = [16, 17, 18, 19];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    versions();
    // The SQL script is made of what pgrx's macros leave in a section of the library
    // (`tools/schema`). No code refers to that section, so the linker is told to drop none.
    // As an argument for this one library, unlike in RUSTFLAGS, that builds no dependency a
    // second time (decision 0057).
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--no-gc-sections");
    }
}

/// `cfg(since17)` is true for 17 and all later versions.
fn versions() {
    let is_built_for =
        |version: u32| std::env::var_os(format!("CARGO_FEATURE_PG{version}")).is_some();
    for since in SINCE {
        println!("cargo::rustc-check-cfg=cfg(since{since})");
        if SINCE.into_iter().any(|v| v >= since && is_built_for(v)) {
            println!("cargo::rustc-cfg=since{since}");
        }
    }
}
