//! The settings `ttl.*`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::pg_sys;
use std::time::Duration;

/// Workers, at most: the greatest `ttl.max_workers`.
pub(crate) const WORKERS: usize = 64;

/// Off by default. Superusers, and those who are granted SET on it, may see and change expired
/// rows that are not deleted yet.
static SHOW_EXPIRED: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Off by default. On: statements keep the `_ts` that they give, for back-fills, instead of
/// having it replaced by the current time. Any user may set it: who can write a row can write it
/// at any time anyway.
static PRESERVE_TS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// The background worker's main switch; a reload is enough.
static ENABLED: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Whether indexes are built in the background (C21); a reload is enough.
static BUILD_INDEXES: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Whether deletions are marked for consumers of logical decoding, some of which cannot read
/// messages.
static LOGICAL_MESSAGES: GucSetting<bool> = GucSetting::<bool>::new(false);
static REPLICATE_DELETIONS: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Seconds: the longest sleep between two looks at a table.
static NAPTIME: GucSetting<i32> = GucSetting::<i32>::new(60);

/// Rows: the most that one transaction deletes. Below that, batches adapt to the time they take.
static BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(10_000);

/// Workers at a time in all databases, out of max_worker_processes.
static MAX_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(3);

/// Percent: the share of its time that a worker deletes, however busy the server is.
static MIN_EFFORT: GucSetting<i32> = GucSetting::<i32>::new(1);

/// Percent: the share of its time that a worker deletes, however idle the server is.
static MAX_EFFORT: GucSetting<i32> = GucSetting::<i32>::new(100);

/// Seconds: by how much a table may be behind before deletion gets a larger share.
static MAX_LAG: GucSetting<i32> = GucSetting::<i32>::new(600);

/// Seconds: by how much a standby may lag before deletion slows down; -1: by any time.
static MAX_REPLICA_LAG: GucSetting<i32> = GucSetting::<i32>::new(10);

/// Milliseconds: the longest wait for a lock while deleting, [`lock_timeout_ms`].
static LOCK_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(500);

/// Seconds: the longest time for one batch, triggers included.
static STATEMENT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(60);

/// The part of a table that a change of policy may expire without being confirmed (C19); 1: all.
static GUARD_FRACTION: GucSetting<f64> = GucSetting::<f64>::new(0.5);

/// Seconds: rows that expire by a change of policy stay on disk for so long (C24).
static CHANGE_DELAY: GucSetting<i32> = GucSetting::<i32>::new(300);

/// The timeline on which rows are deleted in the background, [`timeline`].
static TIMELINE: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Seconds: so long an empty partition stands after its bound has passed (M11).
static EMPTY_PARTITION_AGE: GucSetting<i32> = GucSetting::<i32>::new(86_400);

/// Tables and partitions whose state is kept in shared memory, some 1 kB each.
static MAX_TABLES: GucSetting<i32> = GucSetting::<i32>::new(10_000);

/// Whether rows are deleted in the background.
pub(crate) fn enabled() -> bool {
    ENABLED.get()
}

/// Whether indexes are built in the background.
pub(crate) fn build_indexes() -> bool {
    BUILD_INDEXES.get()
}

/// Whether deletions are marked for consumers of logical decoding.
pub(crate) fn logical_messages() -> bool {
    LOGICAL_MESSAGES.get()
}

/// Whether subscriptions with `origin = none` receive what background workers delete.
pub(crate) fn replicate_deletions() -> bool {
    REPLICATE_DELETIONS.get()
}

/// The longest sleep between two looks at a table, in microseconds.
pub(crate) fn naptime() -> i64 {
    i64::from(NAPTIME.get()) * 1_000_000
}

/// The same in seconds.
pub(crate) fn naptime_seconds() -> i32 {
    NAPTIME.get()
}

/// The most rows that one transaction deletes.
pub(crate) fn batch_size() -> u32 {
    BATCH_SIZE.get().cast_unsigned()
}

/// The most workers at a time.
pub(crate) fn max_workers() -> usize {
    usize::try_from(MAX_WORKERS.get()).unwrap_or(0)
}

/// The least effort, in percent.
pub(crate) fn min_effort() -> i32 {
    MIN_EFFORT.get()
}

/// The greatest effort, in percent.
pub(crate) fn max_effort() -> i32 {
    MAX_EFFORT.get()
}

/// By how much a table may be behind before deletion gets a larger share.
pub(crate) fn max_lag() -> Duration {
    Duration::from_secs(u64::try_from(MAX_LAG.get()).unwrap_or(0))
}

/// By how much a standby may lag before deletion slows down; `None`: by any time.
pub(crate) fn max_replica_lag() -> Option<Duration> {
    u64::try_from(MAX_REPLICA_LAG.get())
        .ok()
        .map(Duration::from_secs)
}

unsafe extern "C" {
    /// proc.c: `deadlock_timeout`, in milliseconds.
    static DeadlockTimeout: core::ffi::c_int;
}

/// The longest wait for a lock while deleting, in milliseconds: shorter than `deadlock_timeout`, so that
/// in a deadlock the worker gives up before the other session looks for a victim.
pub(crate) fn lock_timeout_ms() -> i32 {
    // SAFETY: a variable of this process, which changes between statements only.
    let deadlock_timeout = unsafe { DeadlockTimeout };
    LOCK_TIMEOUT.get().min(deadlock_timeout / 2).max(1)
}

/// The longest time for one batch.
pub(crate) fn statement_timeout() -> Duration {
    Duration::from_secs(u64::try_from(STATEMENT_TIMEOUT.get()).unwrap_or(0))
}

/// The part of a table that a change of policy may expire without being confirmed.
pub(crate) fn guard_fraction() -> f64 {
    GUARD_FRACTION.get()
}

/// How long rows stay on disk that expire by a change of policy, in microseconds.
pub(crate) fn change_delay() -> i64 {
    i64::from(CHANGE_DELAY.get()) * 1_000_000
}

/// How long an empty partition stands after its bound has passed, in microseconds.
pub(crate) fn empty_partition_age() -> i64 {
    i64::from(EMPTY_PARTITION_AGE.get()) * 1_000_000
}

/// The timeline on which rows are deleted in the background; 0 = any.
pub(crate) fn timeline() -> u32 {
    TIMELINE.get().unsigned_abs()
}

/// Tables and partitions whose state is kept in shared memory.
pub(crate) fn max_tables() -> i32 {
    MAX_TABLES.get()
}

/// Whether this session sees expired rows.
pub(crate) fn show_expired() -> bool {
    SHOW_EXPIRED.get()
}

/// Whether this session's statements keep the `_ts` that they give.
pub(crate) fn preserve_ts() -> bool {
    PRESERVE_TS.get()
}

/// Both settings decide how a statement is planned, so cached plans are made again. Also runs
/// when the value is reset at the end of a transaction.
unsafe extern "C-unwind" fn replan(_new_value: bool, _extra: *mut core::ffi::c_void) {
    // SAFETY: marks the cached plans of this session as invalid; needs no transaction.
    unsafe { pg_sys::ResetPlanCache() }
}

/// Defines the settings; once, at load.
pub(crate) fn init() {
    define_reload();
    GucRegistry::define_int_guc(
        c"ttl.max_tables",
        c"Tables and partitions with a time to live whose state is kept in shared memory.",
        c"In all databases. Tables beyond that are not swept. Some 1 kB each.",
        &MAX_TABLES,
        100,
        10_000_000,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_float_guc(
        c"ttl.guard_fraction",
        c"Part of a table that a change of policy may expire without being confirmed.",
        c"Beyond it, and beyond 5000 rows, the change is refused; 1 = never.",
        &GUARD_FRACTION,
        0.0,
        1.0,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.logical_messages",
        c"Marks deletions of expired rows by messages in the stream of logical decoding.",
        c"With wal_level = logical. Some consumers fail at messages.",
        &LOGICAL_MESSAGES,
        GucContext::Suset,
        GucFlags::default(),
    );
    // SAFETY: the hook neither panics nor keeps its arguments. The prefix is reserved after its
    // settings are defined.
    unsafe {
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.show_expired",
            c"Shows expired rows that are not deleted yet.",
            c"Statements of this session see and modify expired rows like any others. For inspection and repair.",
            &SHOW_EXPIRED,
            GucContext::Suset,
            GucFlags::default(),
            None,
            Some(replan),
            None,
        );
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.preserve_ts",
            c"Keeps the time of last modification that a statement gives.",
            c"INSERT and UPDATE do not set the time-to-live clock of the rows they write; for back-fills and imports.",
            &PRESERVE_TS,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(replan),
            None,
        );
        pg_sys::MarkGUCPrefixReserved(c"ttl".as_ptr());
    }
}

/// The settings of background workers: a reload is enough.
fn define_reload() {
    GucRegistry::define_bool_guc(
        c"ttl.replicate_deletions",
        c"Replicates what background workers delete to subscriptions with origin = none.",
        c"Off: each side of a replication in both directions deletes for itself.",
        &REPLICATE_DELETIONS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.enabled",
        c"Deletes expired rows in the background.",
        c"Off: they stay on disk, hidden as ever.",
        &ENABLED,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.build_indexes",
        c"Builds indexes for deletion in the background.",
        c"Off: a table that was enabled concurrently, and has no index yet, is not swept.",
        &BUILD_INDEXES,
        GucContext::Sighup,
        GucFlags::default(),
    );
    let most_workers = i32::try_from(WORKERS).unwrap_or(1);
    use GucContext::Sighup;
    let plain = GucFlags::default();
    let define = |name, short, long, setting, (min, max), flags| {
        GucRegistry::define_int_guc(name, short, long, setting, min, max, Sighup, flags);
    };
    define(
        c"ttl.naptime",
        c"Longest sleep between two looks at a table for expired rows.",
        c"Looks come earlier where it is known that a row expires.",
        &NAPTIME,
        (1, 86_400),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.batch_size",
        c"Most expired rows that one transaction deletes.",
        c"Batches are smaller where they would take too long.",
        &BATCH_SIZE,
        (1, 1_000_000),
        plain,
    );
    define(
        c"ttl.max_workers",
        c"Most workers that delete expired rows at a time.",
        c"In all databases; taken from max_worker_processes.",
        &MAX_WORKERS,
        (1, most_workers),
        plain,
    );
    define(
        c"ttl.min_effort",
        c"Percentage of its time that a worker deletes however busy the server is.",
        c"100 = without regard to anybody.",
        &MIN_EFFORT,
        (1, 100),
        plain,
    );
    define(
        c"ttl.max_effort",
        c"Percentage of its time that a worker deletes however idle the server is.",
        c"Wins over ttl.min_effort.",
        &MAX_EFFORT,
        (1, 100),
        plain,
    );
    define(
        c"ttl.max_lag",
        c"Time by which the deletion in a table may be behind before it is given more effort.",
        c"Up to half of a worker's time, however busy the server is, when behind by twice as much.",
        &MAX_LAG,
        (1, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.max_replica_lag",
        c"Time by which a standby or subscriber may be behind before deletion goes down to ttl.min_effort.",
        c"As pg_stat_replication shows it; -1 = they are not looked at.",
        &MAX_REPLICA_LAG,
        (-1, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.lock_timeout",
        c"Longest wait for a lock while expired rows are deleted.",
        c"For locks that triggers and foreign keys need; locks on the table itself are not waited for.",
        &LOCK_TIMEOUT,
        (1, i32::MAX),
        GucFlags::UNIT_MS,
    );
    define(
        c"ttl.change_delay",
        c"Time for which rows that expire by a change of policy stay on disk.",
        c"Until then a wrong change can be undone with revive_expired => true; 0 = none.",
        &CHANGE_DELAY,
        (0, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.empty_partition_age",
        c"Time after which a partition is dropped that is empty, and whose bound has passed.",
        c"With drop_partitions. A partition whose rows have expired is dropped at once.",
        &EMPTY_PARTITION_AGE,
        (0, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.timeline",
        c"Timeline on which expired rows are deleted in the background.",
        c"A point-in-time recovery begins another one, on which nothing is deleted until this is changed; 0 = any.",
        &TIMELINE,
        (0, i32::MAX),
        plain,
    );
    define(
        c"ttl.statement_timeout",
        c"Longest time for one batch of deletions, triggers included.",
        c"A batch that takes longer is cancelled and tried again in smaller parts.",
        &STATEMENT_TIMEOUT,
        (1, i32::MAX / 1000),
        GucFlags::UNIT_S,
    );
}
