//! S4: policies that change all the time, in a database with many, hold deletion up by no more than a few
//! seconds. `TTL_POLICIES` is their number, `TTL_SECONDS` how long.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Server};

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn policies_that_change_hold_nothing_up() {
    let (policies, seconds) = (number("TTL_POLICIES", 100), number("TTL_SECONDS", 10));
    let most = (policies + 100).to_string();
    let server = Server::start(&[
        ("ttl.max_tables", most.as_str()),
        ("max_locks_per_transaction", "512"),
        ("autovacuum", "off"),
    ]);
    let database = server.database("churn");
    let mut disk = database.disk();
    for first in (0..policies).step_by(100) {
        disk.run(&format!(
            "DO $$BEGIN FOR n IN {first}..least({first} + 99, {policies} - 1) LOOP
               EXECUTE format('CREATE TABLE t%s (id int)', n); PERFORM ttl.enable(format('t%s', n)::regclass, 3600, index => 'none');
             END LOOP; END$$"
        ));
    }
    disk.run("CREATE TABLE x (id int PRIMARY KEY); SELECT ttl.enable('x', 1)");
    server.reload(&[("ttl.enabled", "on")]);
    disk.run("INSERT INTO x VALUES (0)");
    disk.wait_until("SELECT count(*) FROM x", "0", 4 * PATIENCE);
    let (is_over, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = database.connect();
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) {
                n = (n + 1) % policies;
                let seconds = 3600 + changes.fetch_add(1, Ordering::Relaxed);
                other.run(&format!("SELECT ttl.set_default('t{n}', {seconds})"));
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let end = Instant::now() + Duration::from_secs(seconds.into());
        let mut id = 0;
        while Instant::now() < end {
            id += 1;
            disk.run(&format!("INSERT INTO x VALUES ({id})"));
            let written = Instant::now();
            disk.wait_until("SELECT count(*) FROM x", "0", PATIENCE);
            longest = longest.max(written.elapsed().saturating_sub(Duration::from_secs(1)));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!(
        "{policies} policies, {} changes in {seconds} s: longest delay {:.1} s",
        changes.into_inner(),
        longest.as_secs_f64()
    );
}
