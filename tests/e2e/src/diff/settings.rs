//! Random settings of a batch: every planner switch, forced parallel plans,
//! cached plans, isolation levels, roles.

use super::generator::Random;

const SWITCHES: &[(&str, u32)] = &[
    ("enable_hashjoin", 0),
    ("enable_mergejoin", 0),
    ("enable_nestloop", 0),
    ("enable_seqscan", 0),
    ("enable_indexscan", 0),
    ("enable_indexonlyscan", 0),
    ("enable_bitmapscan", 0),
    ("enable_tidscan", 0),
    ("enable_material", 0),
    ("enable_memoize", 0),
    ("enable_sort", 0),
    ("enable_incremental_sort", 0),
    ("enable_hashagg", 0),
    ("enable_partition_pruning", 0),
    ("enable_parallel_hash", 0),
    ("enable_parallel_append", 0),
    ("enable_gathermerge", 0),
    ("enable_presorted_aggregate", 16),
    ("enable_group_by_reordering", 17),
    ("enable_self_join_elimination", 18),
    ("enable_distinct_reordering", 18),
];

/// The settings of one batch of queries, as SQL; to be run by the superuser.
/// They begin with a RESET of what the batch before has set.
pub fn random(random: &mut Random, major: u32) -> String {
    let mut set = vec!["RESET ROLE".to_owned(), "RESET ALL".to_owned()];
    let mut put = |name: &str, value: &str| set.push(format!("SET {name} = {value}"));
    // Some batches switch much off, some nothing.
    let share = random.pick(&[0.0, 0.1, 0.25, 0.5]);
    for (name, since) in SWITCHES {
        if major >= *since && random.chance(share) {
            put(name, "off");
        }
    }
    for name in [
        "enable_partitionwise_join",
        "enable_partitionwise_aggregate",
    ] {
        put(name, random.pick(&["on", "off"]));
    }
    for name in ["from_collapse_limit", "join_collapse_limit"] {
        put(name, random.pick(&["8", "8", "1", "2", "20"]));
    }
    if random.chance(0.2) {
        put("geqo_threshold", "2");
        put("geqo_seed", random.pick(&["0", "0.3", "0.7"]));
    }
    put(
        "constraint_exclusion",
        random.pick(&["partition", "on", "off"]),
    );
    put("work_mem", random.pick(&["'4MB'", "'64kB'"]));
    put("random_page_cost", random.pick(&["4", "1", "0.1"]));
    put("cursor_tuple_fraction", random.pick(&["0.1", "1"]));
    put(
        "plan_cache_mode",
        random.pick(&["force_generic_plan", "auto", "force_custom_plan"]),
    );
    let levels = [
        "'read committed'",
        "'read committed'",
        "'repeatable read'",
        "serializable",
    ];
    put("default_transaction_isolation", random.pick(&levels));
    // A timestamp and a date are read as UTC, whatever the session's time zone is.
    if random.chance(0.3) {
        let zones = [
            "'Asia/Kolkata'",
            "'America/St_Johns'",
            "'Pacific/Kiritimati'",
        ];
        put("TimeZone", random.pick(&zones));
        put(
            "DateStyle",
            random.pick(&["'SQL, DMY'", "'German'", "'ISO, YMD'"]),
        );
    }
    // Rarely: starting the workers takes longer than most queries.
    if random.chance(0.15) {
        put("parallel_setup_cost", "0");
        put("parallel_tuple_cost", "0");
        put("min_parallel_table_scan_size", "0");
        put("min_parallel_index_scan_size", "0");
        put("max_parallel_workers_per_gather", random.pick(&["1", "2"]));
        if random.chance(0.5) {
            let name = if major >= 16 {
                "debug_parallel_query"
            } else {
                "force_parallel_mode"
            };
            put(name, "on");
        }
    }
    if random.chance(0.2) {
        set.push("SET ROLE app".to_owned());
    }
    set.join("; ")
}
