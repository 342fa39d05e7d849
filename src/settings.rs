//! The settings `ttl.*`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::pg_sys;
use std::time::Duration;

/// Workers, at most: the greatest `ttl.max_workers`.
pub(crate) const WORKERS: usize = 64;

/// Tables and partitions, at most: the greatest `ttl.max_tables`.
pub(crate) const MOST_TABLES: i32 = 10_000_000;

/// Off by default. Superusers, and those who are granted SET on it, may see and change expired
/// rows that are not deleted yet.
static SHOW_EXPIRED: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Off by default. On: statements keep the `_ts` that they give, for back-fills, instead of
/// having it replaced by the current time. Any user may set it: who can write a row can write it
/// at any time anyway.
static PRESERVE_TS: GucSetting<bool> = GucSetting::<bool>::new(false);

static ENABLED: GucSetting<bool> = GucSetting::<bool>::new(true);
static BUILD_INDEXES: GucSetting<bool> = GucSetting::<bool>::new(true);
static LOGICAL_MESSAGES: GucSetting<bool> = GucSetting::<bool>::new(false);
static REPLICATE_DELETIONS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Seconds.
static NAPTIME: GucSetting<i32> = GucSetting::<i32>::new(60);
static BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(10_000);
static MAX_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(3);
static MIN_EFFORT: GucSetting<i32> = GucSetting::<i32>::new(1);
static MAX_EFFORT: GucSetting<i32> = GucSetting::<i32>::new(100);
/// Seconds.
static MAX_LAG: GucSetting<i32> = GucSetting::<i32>::new(600);
/// Seconds; -1: by any time.
static MAX_REPLICA_LAG: GucSetting<i32> = GucSetting::<i32>::new(10);
/// Milliseconds.
static LOCK_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(500);
/// Milliseconds.
static STATEMENT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static GUARD_FRACTION: GucSetting<f64> = GucSetting::<f64>::new(0.5);
/// Seconds.
static CHANGE_DELAY: GucSetting<i32> = GucSetting::<i32>::new(300);
static TIMELINE: GucSetting<i32> = GucSetting::<i32>::new(0);
/// Kilobytes.
static AUTO_INDEX_MIN_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1024 * 1024);
/// Seconds.
static EMPTY_PARTITION_AGE: GucSetting<i32> = GucSetting::<i32>::new(86_400);
static MAX_TABLES: GucSetting<i32> = GucSetting::<i32>::new(10_000);

/// Whether rows are deleted in the background: the workers' main switch; a reload is enough.
pub(crate) fn enabled() -> bool {
    ENABLED.get()
}

/// Whether indexes are built in the background (C21); a reload is enough.
pub(crate) fn build_indexes() -> bool {
    BUILD_INDEXES.get()
}

/// Whether deletions are marked for consumers of logical decoding, some of which cannot read messages.
pub(crate) fn logical_messages() -> bool {
    LOGICAL_MESSAGES.get()
}

/// Whether subscriptions with `origin = none` receive what background workers delete.
pub(crate) fn replicate_deletions() -> bool {
    REPLICATE_DELETIONS.get()
}

/// Maximum delay between scans of a table, in microseconds.
pub(crate) fn naptime() -> i64 {
    i64::from(NAPTIME.get()) * 1_000_000
}

pub(crate) fn naptime_seconds() -> i32 {
    NAPTIME.get()
}

/// The most rows that one transaction deletes. Below that, batches adapt to the time they take.
pub(crate) fn batch_size() -> u32 {
    BATCH_SIZE.get().cast_unsigned()
}

/// The most workers at a time in all databases, out of max_worker_processes.
pub(crate) fn max_workers() -> usize {
    usize::try_from(MAX_WORKERS.get()).unwrap_or(0)
}

/// The share of its time that a worker deletes, in percent, however busy the server is.
pub(crate) fn min_effort() -> i32 {
    MIN_EFFORT.get()
}

/// The same, however idle the server is.
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

/// The longest time for one batch, triggers included.
pub(crate) fn statement_timeout() -> Duration {
    Duration::from_millis(u64::try_from(STATEMENT_TIMEOUT.get()).unwrap_or(0))
}

/// The part of a table that a change of policy may expire without being confirmed (C19); 1: all.
pub(crate) fn guard_fraction() -> f64 {
    GUARD_FRACTION.get()
}

/// How long rows stay on disk that expire by a change of policy (C24), in microseconds.
pub(crate) fn change_delay() -> i64 {
    i64::from(CHANGE_DELAY.get()) * 1_000_000
}

/// How long an empty partition stands after its bound has passed (M11), in microseconds.
pub(crate) fn empty_partition_age() -> i64 {
    i64::from(EMPTY_PARTITION_AGE.get()) * 1_000_000
}

/// Number of blocks from which a table has an index for deletion, unless its policy says otherwise (C11).
pub(crate) fn auto_index_min_blocks() -> u64 {
    let kilobytes = u64::from(AUTO_INDEX_MIN_SIZE.get().unsigned_abs());
    kilobytes * 1024 / u64::from(pg_sys::BLCKSZ)
}

/// The timeline on which rows are deleted in the background; 0 = any.
pub(crate) fn timeline() -> u32 {
    TIMELINE.get().unsigned_abs()
}

/// Tables and partitions whose state is kept in shared memory, some 1 kB each.
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
        c"Maximum number of tables and partitions with a time to live, in all databases.",
        c"Expired rows of further tables are hidden but not removed. Each takes about 1 kB of shared memory.",
        &MAX_TABLES,
        100,
        MOST_TABLES,
        GucContext::Postmaster,
        GucFlags::default(),
    );
    GucRegistry::define_float_guc(
        c"ttl.guard_fraction",
        c"Fraction of a table that a change of policy may expire without confirm => true.",
        c"A change that would expire a larger fraction, and more than 5000 rows, is refused. 1 disables the check.",
        &GUARD_FRACTION,
        0.0,
        1.0,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.logical_messages",
        c"Writes logical decoding messages around deletions of expired rows.",
        c"Takes effect if wal_level is logical. Some logical decoding plugins cannot handle messages.",
        &LOGICAL_MESSAGES,
        GucContext::Suset,
        GucFlags::default(),
    );
    // SAFETY: the hook neither panics nor keeps its arguments. The prefix is reserved after its
    // settings are defined.
    unsafe {
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.show_expired",
            c"Shows expired rows that have not been removed yet.",
            c"Statements of the session read and modify expired rows like live rows. Use it for inspection and repair.",
            &SHOW_EXPIRED,
            GucContext::Suset,
            GucFlags::default(),
            None,
            Some(replan),
            None,
        );
        GucRegistry::define_bool_guc_with_hooks(
            c"ttl.preserve_ts",
            c"Keeps the time of last modification that a statement supplies.",
            c"INSERT and UPDATE do not set the time-to-live clock of the rows they write. Use it for back-fills and imports.",
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
        c"Replicates deletions by background workers to subscriptions with origin = none.",
        c"When off, each node of a bidirectional replication removes its own expired rows.",
        &REPLICATE_DELETIONS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.enabled",
        c"Enables removal of expired rows by background workers.",
        c"When off, expired rows stay hidden but are not removed.",
        &ENABLED,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"ttl.build_indexes",
        c"Enables building of indexes for deletion by background workers.",
        c"When off, expired rows of a table that waits for such an index are not removed.",
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
        c"Maximum delay between scans of a table for expired rows.",
        c"A scan starts earlier if a row is known to expire.",
        &NAPTIME,
        (1, 86_400),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.batch_size",
        c"Maximum number of rows deleted per transaction.",
        c"Fewer rows are deleted per transaction if it would take too long.",
        &BATCH_SIZE,
        (1, 1_000_000),
        plain,
    );
    define(
        c"ttl.max_workers",
        c"Maximum number of workers that remove expired rows at the same time.",
        c"Counts the workers of all databases. They are taken from the pool defined by max_worker_processes.",
        &MAX_WORKERS,
        (1, most_workers),
        plain,
    );
    define(
        c"ttl.min_effort",
        c"Minimum percentage of its time that a worker spends deleting.",
        c"A worker spends this percentage even on a busy server. 100 disables throttling.",
        &MIN_EFFORT,
        (1, 100),
        plain,
    );
    define(
        c"ttl.max_effort",
        c"Maximum percentage of its time that a worker spends deleting.",
        c"Takes precedence over ttl.min_effort.",
        &MAX_EFFORT,
        (1, 100),
        plain,
    );
    define(
        c"ttl.max_lag",
        c"Lag of deletion in a table above which workers raise the effort.",
        c"At twice this lag, a worker spends half of its time deleting, even on a busy server.",
        &MAX_LAG,
        (1, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.max_replica_lag",
        c"Replication lag above which workers fall back to ttl.min_effort.",
        c"The lag is that in pg_stat_replication. -1 disables the check.",
        &MAX_REPLICA_LAG,
        (-1, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.lock_timeout",
        c"Maximum time to wait for a lock while expired rows are deleted.",
        c"Applies to locks that triggers and foreign keys need. Workers do not wait for locks on the table itself.",
        &LOCK_TIMEOUT,
        (1, i32::MAX),
        GucFlags::UNIT_MS,
    );
    define(
        c"ttl.change_delay",
        c"Time during which a change of policy that expires rows can be taken back.",
        c"Workers remove no rows of the table until it has passed. 0 disables the delay.",
        &CHANGE_DELAY,
        (0, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.empty_partition_age",
        c"Time after which an empty partition whose upper bound has passed is dropped.",
        c"Applies to tables with drop_partitions. A partition whose rows have all expired is dropped at once.",
        &EMPTY_PARTITION_AGE,
        (0, i32::MAX),
        GucFlags::UNIT_S,
    );
    define(
        c"ttl.auto_index_min_size",
        c"Minimum size of a table for which index => 'auto' builds an index for deletion.",
        c"Smaller tables are read, which keeps writes cheap. The size of a partitioned table is that of its partitions.",
        &AUTO_INDEX_MIN_SIZE,
        (0, i32::MAX),
        GucFlags::UNIT_KB,
    );
    define(
        c"ttl.timeline",
        c"Timeline on which background workers remove expired rows.",
        c"After a point-in-time recovery, which starts a new timeline, no rows are removed until this is changed. 0 means any timeline.",
        &TIMELINE,
        (0, i32::MAX),
        plain,
    );
    define(
        c"ttl.statement_timeout",
        c"Maximum duration of one batch of deletions, including triggers.",
        c"A batch that takes longer is canceled and retried in smaller parts.",
        &STATEMENT_TIMEOUT,
        (1000, i32::MAX),
        GucFlags::UNIT_MS,
    );
}
