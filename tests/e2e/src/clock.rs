//! Servers whose wall clock and disk a test sets.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::server::Server;
use crate::tools::Tools;

/// The wall clock of a server, which is set as `date --set` sets a machine's; and its disk, which can be full.
#[derive(Debug)]
pub struct Clock {
    file: File,
    path: String,
    library: String,
    ahead: i64,
}

impl Server {
    /// As [`Server::start_sweeping`], with a clock that can be set. `TTL_CLOCK_LIBRARY` is the
    /// library that the server is started with.
    pub fn start_with_clock(settings: &[(&str, &str)]) -> (Server, Clock) {
        let library = std::env::var("TTL_CLOCK_LIBRARY").expect("TTL_CLOCK_LIBRARY: tests/clock");
        let mut all = crate::workers::EAGER.to_vec();
        all.extend(settings);
        let server = Server::create(Tools::from_env(), &[], &all);
        let path = server.dir().join("clock");
        // Two numbers: tests/clock.
        std::fs::write(&path, [0_u8; 16]).expect("the clock's file");
        let file = File::options()
            .write(true)
            .open(&path)
            .expect("the clock's file");
        let path = path.to_str().expect("a path in UTF-8").to_owned();
        let clock = Clock {
            file,
            path,
            library,
            ahead: 0,
        };
        clock.launch(&server);
        (server, clock)
    }
}

impl Clock {
    /// Start the server, which is stopped, with this clock.
    pub fn launch(&self, server: &Server) {
        server.launch_with(&[("LD_PRELOAD", &self.library), ("TTL_CLOCK", &self.path)]);
    }

    /// Set it forward by so many seconds, or back.
    pub fn step(&mut self, seconds: i64) {
        self.ahead += seconds * 1_000_000;
        let bytes = self.ahead.to_ne_bytes();
        self.file.write_all_at(&bytes, 0).expect("the clock's file");
    }

    /// From now on no file of a database can grow, or all can.
    pub fn fill_disk(&self, is_full: bool) {
        let bytes = i64::from(is_full).to_ne_bytes();
        self.file.write_all_at(&bytes, 8).expect("the clock's file");
    }
}
