//! pg_cron, where the server's tree has it (scripts/bench.sh puts it there for 15).

use ttl_ext_e2e::Server;

use crate::context::Context;
use crate::fixtures::{number, wait};

/// Jobs of pg_cron.
pub struct Cron;

impl Cron {
    /// Whether the server has pg_cron; if not, why.
    pub fn available(context: &Context) -> Result<(), String> {
        let server = context.server();
        let mut session = server.connect("postgres", "postgres");
        let sql = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_cron'";
        if session.value(sql) == "1" {
            Ok(())
        } else {
            Err("pg_cron is not installed in this server".to_owned())
        }
    }

    /// A server of one's own, with pg_cron if it is there. The jobs run in background
    /// workers, so no connection is made for them.
    pub fn server(context: &Context, cron: bool, settings: &[(&str, &str)]) -> Server {
        let mut all = settings.to_vec();
        if cron {
            all.push(("shared_preload_libraries", "ttl_ext, pg_cron"));
            all.push(("cron.use_background_workers", "on"));
        }
        let server = context.own_server(&all);
        if cron {
            server
                .connect("postgres", "postgres")
                .run("CREATE EXTENSION pg_cron");
        }
        server
    }

    /// Run a job once, at the server's start, so as not to wait for the next minute; how
    /// long it took, as pg_cron has it.
    pub fn run_once(server: &Server, database: &str, command: &str) -> f64 {
        let mut session = server.connect("postgres", "postgres");
        session.run(&format!(
            "TRUNCATE cron.job_run_details;
             SELECT cron.schedule_in_database('bench', '@reboot', $job${command}$job$, '{database}')"
        ));
        drop(session);
        server.restart();
        let seconds = Cron::finished(server);
        let mut session = server.connect("postgres", "postgres");
        session.run("SELECT cron.unschedule('bench')");
        seconds
    }

    /// Wait for the end of the only job; how long it took.
    pub fn finished(server: &Server) -> f64 {
        let mut session = server.connect("postgres", "postgres");
        let sql = "SELECT count(*) FROM cron.job_run_details WHERE end_time IS NOT NULL";
        wait(&mut session, sql, "1", 20, 600);
        let how = session.value("SELECT status || ' ' || return_message FROM cron.job_run_details");
        assert!(how.starts_with("succeeded"), "the job of pg_cron: {how}");
        number(
            &mut session,
            "SELECT extract(epoch FROM end_time - start_time) FROM cron.job_run_details",
        )
    }
}
