//! A table whose rows take their time to be deleted, so that a test can do
//! something in the middle.

use crate::database::Database;
use crate::session::Session;

/// How many rows it has at first.
const ROWS: i64 = 3000;

/// A table `public.slow` of expired rows with a trigger that sleeps for each row, as slow user
/// code. No test waits for the sleep itself.
#[derive(Debug, Clone, Copy)]
pub struct SlowTable;

impl SlowTable {
    /// Settings with which deletion commits often.
    pub const SETTINGS: [(&str, &str); 1] = [("ttl.batch_size", "50")];

    /// Make it; its deletion takes a minute.
    pub fn create(database: &Database<'_>) -> SlowTable {
        let mut session = database.connect();
        session.run(
            "CREATE TABLE public.pace (seconds double precision);
             INSERT INTO public.pace VALUES (0.02);
             CREATE TABLE public.slow (id integer PRIMARY KEY);
             SELECT ttl.enable('public.slow', 3600);
             CREATE FUNCTION public.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM pg_catalog.pg_sleep(seconds) FROM public.pace;
                 RETURN OLD;
             END $$;
             CREATE TRIGGER dawdle AFTER DELETE ON public.slow
                 FOR EACH ROW EXECUTE FUNCTION public.dawdle();
             INSERT INTO public.slow VALUES (0)",
        );
        session.insert_expired("public.slow", 1, ROWS as i32);
        SlowTable
    }

    /// Wait until it is being deleted, with most of it still to come. Where many tables are as
    /// slow, on a busy machine, its turn may be long in coming.
    pub fn wait_until_begun(self, disk: &mut Session) {
        let begun = format!("SELECT count(*) <= {ROWS} FROM public.slow");
        disk.wait_until(&begun, "t", 300);
        assert!(disk.count("public.slow") > 1, "it is over already");
    }

    /// Let the rest go fast, and wait until only the live row is left.
    pub fn finish(self, disk: &mut Session) {
        disk.run("UPDATE public.pace SET seconds = 0");
        disk.wait_for_ids("public.slow", "0");
    }
}
