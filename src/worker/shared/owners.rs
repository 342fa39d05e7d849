//! How much time each owner has used lately, in all databases. Under the lock.
//!
//! Kept apart from the tables' states, which end with their tables: dropping a table and
//! creating another does not reset it.

use super::{ExclusiveLock, SharedLock};
use crate::worker::queue::fairness::{self, Used};
use crate::worker::shared;

/// The most owners that are remembered.
pub(in crate::worker) const OWNERS: usize = 4096;
/// In how many entries an owner can be.
const PLACES: usize = 8;

/// An owner. Valid when zeroed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Account {
    /// 0: the entry is free.
    owner: u32,
    used: Used,
    /// When a table of this owner was last found to be slow; 0 = never.
    slow_at: i64,
}

/// An owner's used time, and whether the owner counts as slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::worker) struct Standing {
    pub(in crate::worker) rank: i64,
    pub(in crate::worker) has_slow_table: bool,
}

fn places(owner: u32) -> impl Iterator<Item = usize> {
    let first = (owner.wrapping_mul(0x9E37_79B9) >> 16) as usize;
    (first..first + PLACES).map(|place| place % OWNERS)
}

pub(in crate::worker) fn standing(lock: &SharedLock, owner: u32, now: i64) -> Standing {
    let accounts = shared::control().owners.get(lock);
    let account = places(owner)
        .filter_map(|place| accounts.get(place))
        .find(|account| account.owner == owner && owner != 0);
    account.map_or(Standing::default(), |account| Standing {
        rank: fairness::rank(account.used.now(now)),
        has_slow_table: fairness::has_slow_table(account.slow_at, now),
    })
}

/// Charges the owner with the time; `slow`: at a slow table.
pub(in crate::worker) fn charge(
    lock: &mut ExclusiveLock,
    owner: u32,
    took: i64,
    slow: bool,
    now: i64,
) {
    if owner == 0 {
        return;
    }
    let accounts = shared::control().owners.get_mut(lock);
    let weight = |account: &Account| match account {
        account if account.owner == owner => (0, 0),
        account if account.owner == 0 => (1, 0),
        // Forgets the owner who has used least and does not count as slow.
        account => (
            2 + u8::from(fairness::has_slow_table(account.slow_at, now)),
            account.used.now(now),
        ),
    };
    let place = places(owner).min_by_key(|&place| accounts.get(place).map(weight));
    let Some(account) = place.and_then(|place| accounts.get_mut(place)) else {
        return;
    };
    if account.owner != owner {
        *account = Account {
            owner,
            used: Used::default(),
            slow_at: 0,
        };
    }
    account.used.add(took, now);
    if slow {
        account.slow_at = now;
    }
}
