//! Prometheus and its exporters, as `scripts/monitoring.sh` fetches them, run by a test.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Where the programs are; `None`, and a line that the script counts, if they are not here.
pub fn find(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("TTL_PROMETHEUS").filter(|dir| !dir.is_empty());
    if found.is_none() {
        println!("SKIPPED test: {test}: no Prometheus here");
    }
    found.map(PathBuf::from)
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A program that runs as long as this value lives, and no longer than this process.
pub struct Program {
    shell: Child,
    log: PathBuf,
}

/// The shell waits for the end of its input, which comes when this process ends in any way.
const SCRIPT: &str = r#"
log=$1; shift
"$@" >"$log" 2>&1 </dev/null & program=$!
cat >/dev/null
kill -9 "$program"
wait "$program"
"#;

impl Program {
    pub fn start(command: &Command, log: PathBuf) -> Program {
        File::create(&log).expect("a log");
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "program"]).arg(&log);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.expect("a value"));
        }
        let shell = shell
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("cannot start sh");
        Program { shell, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = self.said();
            let last: Vec<&str> = said.lines().rev().take(10).collect();
            eprintln!("--- {}, backwards\n{}", self.log.display(), last.join("\n"));
        }
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// The body of what a local server answers; `None` if it does not, or says that it failed.
pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_well = head.split(' ').nth(1) == Some("200");
    is_well.then(|| body.to_owned())
}

/// For a query string.
pub fn encoded(text: &str) -> String {
    let encode = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.as_bytes().iter().map(encode).collect()
}
