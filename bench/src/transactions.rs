//! pgbench's own log of transactions: when each ended, and how long it took.

use ttl_ext_e2e::Server;

/// Transactions: when each ended, in seconds since 1970, and how long it took in ms.
pub type Log = Vec<(f64, f64)>;

/// The arguments by which pgbench writes its log where [`read`] looks for it.
pub fn arguments(server: &Server) -> [String; 2] {
    let prefix = server.dir().join("transactions");
    [
        "-l".to_owned(),
        format!("--log-prefix={}", prefix.display()),
    ]
}

/// What pgbench has logged, of that time; and removes it. A line is: client, number, microseconds,
/// script, time.
///
/// # Panics
/// If it has logged nothing.
pub fn read(server: &Server, from: f64, until: f64) -> Log {
    let mut log = Log::new();
    for entry in std::fs::read_dir(server.dir()).expect("the server's directory") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !name.starts_with("transactions.") {
            continue;
        }
        for line in std::fs::read_to_string(&path)
            .expect("pgbench's log")
            .lines()
        {
            let fields: Vec<f64> = line
                .split(' ')
                .filter_map(|field| field.parse().ok())
                .collect();
            let end = fields[4] + fields[5] / 1e6;
            if end >= from && end < until {
                log.push((end, fields[2] / 1000.0));
            }
        }
        std::fs::remove_file(&path).expect("pgbench's log");
    }
    assert!(!log.is_empty(), "pgbench has logged nothing");
    log
}
