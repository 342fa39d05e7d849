//! Which tables have outgrown being read, by what passes note of their size
//! (`docs/decisions/0094-no-index-where-none-is-needed.md`).

use super::SharedLock;
use super::state::{TableKey, with_table};
use crate::settings;
use std::collections::{HashMap, HashSet};

/// The labelled tables of a database that have outgrown being read, with their partitions.
pub(in crate::worker) fn of(database: u32) -> HashSet<u32> {
    let mut read: HashMap<u32, u64> = HashMap::new();
    SharedLock::shared().for_each(|state| {
        if state.key.database == database && state.read_blocks > 0 {
            *read.entry(state.labelled_table).or_default() += u64::from(state.read_blocks);
        }
    });
    let is_outgrown = |&(_, blocks): &(u32, u64)| blocks >= settings::auto_index_min_blocks();
    let outgrown = read.into_iter().filter(is_outgrown);
    outgrown.map(|(labelled_table, _)| labelled_table).collect()
}

/// Notes how many blocks a pass reads at a table. True if its labelled table has outgrown that just now.
pub(in crate::worker) fn note(key: TableKey, blocks: u32) -> bool {
    let before = with_table(key, |state| {
        (
            std::mem::replace(&mut state.read_blocks, blocks),
            state.labelled_table,
        )
    });
    let Some((before, labelled_table)) = before.filter(|&(before, _)| before < blocks) else {
        return false;
    };
    let mut others = 0;
    SharedLock::shared().for_each(|state| {
        if (state.key.database, state.labelled_table) == (key.database, labelled_table)
            && state.key != key
        {
            others += u64::from(state.read_blocks);
        }
    });
    let is_large = |blocks: u32| others + u64::from(blocks) >= settings::auto_index_min_blocks();
    is_large(blocks) && (before == 0 || !is_large(before))
}

/// The builder has been at a labelled table: its sizes are to be looked at anew.
pub(in crate::worker) fn forget(labelled_table: TableKey) {
    SharedLock::exclusive().for_each_mut(|state| {
        if (state.key.database, state.labelled_table)
            == (labelled_table.database, labelled_table.relid)
        {
            state.read_blocks = 0;
        }
    });
}
