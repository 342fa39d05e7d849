//! Who may take another place of those that all owners share. Pure.

use std::collections::HashMap;

/// An owner takes a place only while they have fewer than this many times the places that are free.
/// So one owner alone gets three quarters of them, two get three sevenths each, and for one more a
/// few are always left.
const TIMES_FREE: u32 = 3;

/// For whom a place is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// A role's OID; 0 if it is not known: such places count as one owner's.
    pub(crate) owner: u32,
    /// A superuser, who may take every free place.
    pub(crate) unlimited: bool,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// None is free.
    Full { total: u32 },
    /// The owner has this number of places; the free ones are for other owners.
    Quota { has: u32, free: u32, total: u32 },
}

/// Places, and who has how many of them.
#[derive(Debug)]
pub(in crate::worker) struct Places {
    total: u32,
    taken: u32,
    of_owner: HashMap<u32, u32>,
}

impl Places {
    /// This number of places, which have these owners.
    pub(in crate::worker) fn new(total: u32, owners: impl IntoIterator<Item = u32>) -> Self {
        let mut places = Self {
            total,
            taken: 0,
            of_owner: HashMap::new(),
        };
        owners.into_iter().for_each(|owner| places.note(owner));
        places
    }

    fn note(&mut self, owner: u32) {
        self.taken = self.taken.saturating_add(1);
        let has = self.of_owner.entry(owner).or_default();
        *has = has.saturating_add(1);
    }

    /// Whether the claimant may take one more.
    pub(in crate::worker) fn admits(&self, claimant: Claimant) -> Result<(), Refusal> {
        let (total, free) = (self.total, self.total.saturating_sub(self.taken));
        let has = self.of_owner.get(&claimant.owner).copied().unwrap_or(0);
        match free {
            0 => Err(Refusal::Full { total }),
            _ if claimant.unlimited || has < free.saturating_mul(TIMES_FREE) => Ok(()),
            _ => Err(Refusal::Quota { has, free, total }),
        }
    }

    /// Takes a place for the claimant.
    pub(in crate::worker) fn take(&mut self, claimant: Claimant) -> Result<(), Refusal> {
        self.admits(claimant).map(|()| self.note(claimant.owner))
    }
}
