//! C13: drivers that read results in pieces get all rows. C17: they give seconds in any type.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use ttl_ext_e2e::Server;

const JDBC: &str = "/usr/share/java/postgresql.jar";

/// A port of this machine that leads to the server's socket: JDBC knows no others.
fn port_of(server: &Server) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let socket = server.dir().join(".s.PGSQL.5432");
    thread::spawn(move || {
        for client in listener.incoming() {
            connect(client.expect("a client"), &socket);
        }
    });
    port
}

fn connect(client: TcpStream, socket: &PathBuf) {
    let server = UnixStream::connect(socket).expect("the server");
    let (mut from, mut to) = (
        client.try_clone().expect("a socket"),
        server.try_clone().expect("a socket"),
    );
    thread::spawn(move || io::copy(&mut from, &mut to));
    let (mut from, mut to) = (server, client);
    thread::spawn(move || io::copy(&mut from, &mut to));
}

/// `setFetchSize` without autocommit: JDBC once got 50 of 1,000 rows. Repeated with more time if
/// the machine is too slow to begin in time.
#[test]
fn jdbc() {
    let server = Server::start(&[]);
    let program = server.dir().join("FetchSize.java");
    std::fs::write(&program, include_str!("drivers/FetchSize.java")).expect("a file");
    let port = port_of(&server);
    let mut told = String::new();
    for seconds in [3, 15, 60] {
        let name = format!("d{seconds}");
        server.database(&name);
        let mut java = Command::new("java");
        java.args(["-cp", JDBC]).arg(&program);
        java.arg(format!("jdbc:postgresql://127.0.0.1:{port}/{name}"));
        let output = server.must_run(java.arg(seconds.to_string()));
        told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if told == "1000 0" {
            return;
        }
    }
    panic!("{told:?}");
}

/// `FETCH_COUNT` of psql, which once got 500 of 1,000 rows: reading all rows takes longer than they
/// live. Repeated with more time if the machine is too slow to begin in time.
#[test]
fn psql() {
    let server = Server::start(&[]);
    let mut told = String::new();
    for seconds in [3, 15, 60] {
        let database = server.database(&format!("d{seconds}"));
        let script = server.dir().join("fetch_count.sql");
        let each = f64::from(seconds) / 75.0;
        std::fs::write(
            &script,
            format!(
                "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', {seconds}) \\gset
                 INSERT INTO t SELECT generate_series(1, 100);
                 \\set FETCH_COUNT 10
                 SELECT id FROM t, LATERAL (SELECT pg_sleep({each}) WHERE t.id > 0 OFFSET 0) AS slowly ORDER BY id;
                 SELECT 'left', count(*) FROM t;"
            ),
        )
        .expect("a file");
        let mut psql = database.tool("psql");
        let output = server.must_run(
            psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-f"])
                .arg(&script),
        );
        told = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = told.lines().collect();
        if lines.len() == 101 && lines.last() == Some(&"left|0") {
            return;
        }
    }
    panic!("{told:?}");
}

/// C17: a parameter of each type, with the type that the driver sends, or none.
#[test]
fn jdbc_gives_seconds() {
    let server = Server::start(&[]);
    let program = server.dir().join("Seconds.java");
    std::fs::write(&program, include_str!("drivers/Seconds.java")).expect("a file");
    let port = port_of(&server);
    server.database("seconds");
    let mut java = Command::new("java");
    java.args(["-cp", JDBC]).arg(&program);
    java.arg(format!("jdbc:postgresql://127.0.0.1:{port}/seconds"));
    let output = server.must_run(&mut java);
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(told, "11 12 13 14 15 16 17 18 19 20 null");
}
