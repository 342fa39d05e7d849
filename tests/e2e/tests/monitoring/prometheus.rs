//! `monitoring/`: both exporters show what deletion does, under the same names; the alert rules
//! and the dashboard use no others.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ttl_ext_e2e::{PATIENCE, Server, Session, until};

use crate::programs::{self, Program};

const PROMETHEUS: &str = include_str!("../../../../monitoring/prometheus.yml");
const RULES: &str = include_str!("../../../../monitoring/rules.yml");
const RULES_TEST: &str = include_str!("../../../../monitoring/rules_test.yml");
const SQL_EXPORTER: &str = include_str!("../../../../monitoring/sql-exporter.yml");
const POSTGRES_EXPORTER: &str = include_str!("../../../../monitoring/postgres-exporter.yml");
const DOCUMENT: &str = include_str!("../../../../docs/monitoring.md");
const DASHBOARD: &str = include_str!("../../../../monitoring/grafana.json");

/// A file's text with something in it replaced that must be there.
fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "no {old} in {text}");
    text.replace(old, new)
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// The names of metrics in expressions.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = ["ttl_", "sql_exporter_", "pg_exporter_"];
    text.split(|c| !is_part(c))
        .filter(|word| starts.iter().any(|start| word.starts_with(start)) && *word != "ttl_ext")
        .map(str::to_owned)
        .collect()
}

/// Both exporters have the same metrics, and `docs/monitoring.md` lists them.
#[test]
fn the_files_agree() {
    let listed = DOCUMENT.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("| `ttl_")?.split_once('`')?;
        Some(format!("ttl_{name}"))
    });
    let mut space = String::new();
    let mut postgres = BTreeSet::new();
    for line in POSTGRES_EXPORTER.lines() {
        if let Some(name) = line
            .strip_suffix(':')
            .filter(|name| !name.starts_with([' ', '#']))
        {
            space = name.to_owned();
        }
        let name = line
            .strip_prefix("    - ")
            .and_then(|name| name.strip_suffix(':'));
        postgres.extend(name.map(|name| format!("{space}_{name}")));
    }
    let mut sql = BTreeSet::new();
    for line in SQL_EXPORTER.lines() {
        if let Some(name) = line.strip_prefix("      - name: ") {
            space = name.to_owned();
        }
        let name = line.strip_prefix("          - ");
        sql.extend(name.map(|name| format!("{space}_{name}")));
    }
    assert!(sql.contains("ttl_deletion_lag_seconds"), "{sql:?}");
    assert_eq!(listed.collect::<BTreeSet<_>>(), sql);
    let labels = [
        "ttl_datname",
        "ttl_schemaname",
        "ttl_relname",
        "ttl_worker_datname",
    ];
    postgres.retain(|name| !labels.contains(&name.as_str()));
    assert_eq!(postgres, sql);
}

/// The alerts do what they are for (`monitoring/rules_test.yml`).
#[test]
fn alerts() {
    let Some(bin) = programs::find("alerts") else {
        return;
    };
    let server = Server::start(&[]);
    for (name, text) in [("rules.yml", RULES), ("rules_test.yml", RULES_TEST)] {
        write(server.dir(), name, text);
    }
    let mut promtool = Command::new(bin.join("promtool"));
    server.must_run(
        promtool
            .args(["test", "rules"])
            .arg(server.dir().join("rules_test.yml")),
    );
    let alerts = RULES
        .lines()
        .filter_map(|line| line.split_once("- alert: "));
    for (_, alert) in alerts {
        let fires = format!("alertname: {alert}\n        exp_alerts:");
        assert!(
            RULES_TEST.contains(&fires),
            "no test in which {alert} fires"
        );
    }
}

/// Both exporters and a Prometheus that reads from them.
struct Monitoring {
    port: u16,
    _programs: [Program; 3],
}

impl Monitoring {
    fn start(bin: &Path, server: &Server, database: &str) -> Monitoring {
        let dir = server.dir();
        let [sql, postgres, port] = [(); 3].map(|()| programs::free_port());
        let host = format!("host={}", dir.display());
        let text = with(SQL_EXPORTER, "host=/run/postgresql", &host);
        let text = with(
            &text,
            "postgres://postgres@/app",
            &format!("postgres://watcher@/{database}"),
        );
        write(
            dir,
            "sql-exporter.yml",
            &with(&text, "interval: 15s", "interval: 1s"),
        );
        write(dir, "postgres-exporter.yml", POSTGRES_EXPORTER);
        write(dir, "rules.yml", RULES);
        let text = with(PROMETHEUS, "localhost:9237", &format!("127.0.0.1:{sql}"));
        let text = with(&text, "localhost:9187", &format!("127.0.0.1:{postgres}"));
        write(
            dir,
            "prometheus.yml",
            &with(&text, "interval: 15s", "interval: 1s"),
        );

        let mut sql_exporter = Command::new(bin.join("prometheus-sql-exporter"));
        sql_exporter
            .arg(format!(
                "-config.file={}",
                dir.join("sql-exporter.yml").display()
            ))
            .arg(format!("-web.listen-address=127.0.0.1:{sql}"));
        let mut postgres_exporter = Command::new(bin.join("prometheus-postgres-exporter"));
        let source = server
            .conninfo(database)
            .replace("user=postgres", "user=watcher");
        postgres_exporter
            .env("DATA_SOURCE_NAME", format!("{source} sslmode=disable"))
            .arg(format!(
                "--extend.query-path={}",
                dir.join("postgres-exporter.yml").display()
            ))
            .args(["--disable-default-metrics", "--disable-settings-metrics"])
            .args(["--no-collector.database", "--no-collector.bgwriter"])
            .arg(format!("--web.listen-address=127.0.0.1:{postgres}"));
        let mut prometheus = Command::new(bin.join("prometheus"));
        prometheus
            .arg(format!(
                "--config.file={}",
                dir.join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("metrics").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let start = |command: &Command, name: &str| Program::start(command, dir.join(name));
        Monitoring {
            port,
            _programs: [
                start(&sql_exporter, "sql-exporter.log"),
                start(&postgres_exporter, "postgres-exporter.log"),
                start(&prometheus, "prometheus.log"),
            ],
        }
    }

    /// What its API answers, as an expression of SQL.
    fn json(&self, path: &str) -> Option<String> {
        let body = programs::get(self.port, &format!("/api/v1/{path}"))?;
        Some(format!("$json${body}$json$::jsonb"))
    }

    /// The jobs for which an expression has a value, and that value.
    fn values(&self, disk: &mut Session, expression: &str) -> Option<Vec<Vec<String>>> {
        let json = self.json(&format!("query?query={}", programs::encoded(expression)))?;
        Some(disk.rows(&format!(
            "SELECT r -> 'metric' ->> 'job', r -> 'metric' ->> 'schemaname', r -> 'metric' ->> 'relname', r -> 'value' ->> 1
               FROM jsonb_array_elements({json} -> 'data' -> 'result') AS r ORDER BY 1, 2, 3"
        )))
    }

    /// Waits until both exporters have shown this value for the table `t`, which `{t}` stands for.
    #[track_caller]
    fn wait_for(&self, disk: &mut Session, expression: &str, value: &str) {
        let expected = ["ttl_ext_postgres", "ttl_ext_sql"].map(|job| [job, "public", "t", value]);
        let mut last = None;
        let what = format!("{expression} = {value}");
        until(&what, PATIENCE, || {
            let values = self.values(disk, &expression.replace("{t}", "{relname=\"t\"}"))?;
            let found = values == expected;
            if !found && last.as_ref() != Some(&values) {
                println!("{expression}: {values:?}");
            }
            last = Some(values);
            found.then_some(())
        });
    }
}

/// While rows expire and are deleted, until counters are reset.
#[test]
fn metrics_while_rows_expire() {
    let Some(bin) = programs::find("metrics_while_rows_expire") else {
        return;
    };
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
         CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600);
         CREATE TABLE referring (id integer REFERENCES t)",
    );
    let monitoring = Monitoring::start(&bin, &server, "app");
    disk.insert_expired("t", 1, 100);
    monitoring.wait_for(&mut disk, "ttl_rows_deleted_total{t}", "100");
    monitoring.wait_for(&mut disk, "ttl_deletion_lag_known{t}", "1");
    monitoring.wait_for(&mut disk, "ttl_blocked_rows{t}", "0");

    // One that a foreign key keeps.
    server.reload(&[("ttl.enabled", "off")]);
    monitoring.wait_for(&mut disk, "ttl_problems{t}", "1");
    monitoring.wait_for(&mut disk, "ttl_deletion_lag_seconds{t}", "NaN");
    disk.run("INSERT INTO t VALUES (1); INSERT INTO referring VALUES (1)");
    disk.run_preserving("UPDATE t SET _ts = now() - interval '1 day'");
    server.reload(&[("ttl.enabled", "on")]);
    monitoring.wait_for(&mut disk, "ttl_blocked_rows{t}", "1");
    monitoring.wait_for(&mut disk, "ttl_backlog_rows{t}", "1");
    monitoring.wait_for(&mut disk, "ttl_deletion_lag_seconds{t} > bool 82000", "1");

    let names = until("names", PATIENCE, || {
        monitoring.json("label/__name__/values")
    });
    let names = disk.column(&format!(
        "SELECT jsonb_array_elements_text({names} -> 'data')"
    ));
    let expressions = disk.column(&format!(
        "SELECT jsonb_path_query($json${DASHBOARD}$json$::jsonb, '$.panels[*].targets[*].expr') #>> '{{}}'"
    ));
    let rules = RULES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    for expression in expressions.iter().map(String::as_str).chain(rules) {
        let used = metrics(expression);
        assert!(!used.is_empty(), "no metric in {expression}");
        for metric in used {
            assert!(
                names.contains(&metric),
                "no metric {metric} among {names:?}"
            );
        }
        let mut query = expression.replace("$__rate_interval", "1m");
        for variable in ["$instance", "$datname", "$relname"] {
            query = query.replace(variable, ".*");
        }
        assert!(monitoring.values(&mut disk, &query).is_some(), "{query}");
    }
    // Those of the menus.
    for metric in metrics(DASHBOARD) {
        assert!(
            names.contains(&metric),
            "no metric {metric} among {names:?}"
        );
    }

    disk.run("SELECT ttl.reset_stats()");
    monitoring.wait_for(&mut disk, "ttl_rows_deleted_total{t}", "0");
    monitoring.wait_for(
        &mut disk,
        "ttl_stats_reset_timestamp_seconds{t} > bool 0",
        "1",
    );
}
