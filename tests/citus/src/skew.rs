//! A node whose clock is ahead.

use ttl_ext_e2e::Stop;

use crate::cluster::Cluster;

/// Where Debian's package `libfaketime` has it.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

impl Cluster {
    /// Start a node again with a clock that is so many seconds ahead. False, with a line that is counted, where
    /// there is no libfaketime.
    pub fn put_ahead(&self, node: usize, seconds: u32, test: &str) -> bool {
        if !std::path::Path::new(LIBRARY).exists() {
            println!(
                "SKIPPED test: {test}: there is no libfaketime (Debian: apt-get install faketime)"
            );
            return false;
        }
        let node = &self.nodes()[node];
        node.stop(Stop::Fast);
        node.launch_with(&[
            ("LD_PRELOAD", LIBRARY),
            ("FAKETIME", &format!("+{seconds}s")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]);
        true
    }
}
