//! S5 (docs/security.md): what owners share has room for each of them.

use super::quota::{Claimant, Places, Refusal};
use proptest::prelude::*;
use std::collections::HashMap;

fn owner(owner: u32) -> Claimant {
    Claimant {
        owner,
        unlimited: false,
    }
}

const SUPERUSER: Claimant = Claimant {
    owner: 10,
    unlimited: true,
};

/// How many places the claimant gets who takes all that they may.
fn take_all(places: &mut Places, claimant: Claimant) -> (u32, Refusal) {
    for taken in 0.. {
        if let Err(refusal) = places.take(claimant) {
            return (taken, refusal);
        }
    }
    unreachable!()
}

#[test]
fn one_owner_alone_gets_three_quarters() {
    let mut places = Places::new(100, []);
    let refusal = Refusal::Quota {
        has: 75,
        free: 25,
        total: 100,
    };
    assert_eq!(take_all(&mut places, owner(1)), (75, refusal));
    // what is left serves others
    assert_eq!(take_all(&mut places, owner(2)).0, 19);
    assert_eq!(take_all(&mut places, owner(3)).0, 5);
    assert_eq!(take_all(&mut places, owner(4)).0, 1);
}

#[test]
fn a_superuser_gets_all_that_is_free_and_no_more() {
    let mut places = Places::new(100, []);
    let full = Refusal::Full { total: 100 };
    assert_eq!(take_all(&mut places, SUPERUSER), (100, full));
    assert_eq!(places.take(owner(1)), Err(full));
    // but nobody loses one to a superuser
    let mut places = Places::new(100, [1; 75]);
    assert_eq!(take_all(&mut places, SUPERUSER), (25, full));
}

/// What was taken under a larger setting, or before an owner lost the right, stays.
#[test]
fn more_taken_than_there_are() {
    let mut places = Places::new(100, [1; 300]);
    assert_eq!(places.take(owner(2)), Err(Refusal::Full { total: 100 }));
}

proptest! {
    /// Owners take in any order, and give back in any order.
    #[test]
    fn no_owner_leaves_others_without(
        total in 16u32..10_000,
        steps in prop::collection::vec((1u32..6, any::<bool>(), 1u32..4000), 1..40),
    ) {
        let mut held: HashMap<u32, u32> = HashMap::new();
        for (who, gives_back, count) in steps {
            if gives_back {
                let has = held.entry(who).or_default();
                *has = has.saturating_sub(count);
                continue;
            }
            let owners = held.iter().flat_map(|(&who, &has)| std::iter::repeat_n(who, has as usize));
            let mut places = Places::new(total, owners);
            let before: u32 = held.values().sum();
            for _ in 0..count {
                let has = held.get(&who).copied().unwrap_or(0);
                let free = total - held.values().sum::<u32>();
                let admitted = places.take(owner(who)).is_ok();
                prop_assert_eq!(admitted, free > 0 && has < 3 * free);
                if !admitted {
                    break;
                }
                *held.entry(who).or_default() += 1;
            }
            let after: u32 = held.values().sum();
            prop_assert!(after <= total && after >= before);
            // Whoever takes leaves a third of what they have, rounded, to others; one place at
            // least while there are more than a handful.
            if after > before {
                let has = held.get(&who).copied().unwrap_or(0);
                prop_assert!(has <= 3 * (total - after + 1));
            }
        }
    }

    /// However many owners come one after the other, each finds its part of what is left.
    #[test]
    fn newcomers_find_room(total in 100u32..10_000, owners in 1u32..4) {
        let mut places = Places::new(total, []);
        for who in 1..=owners {
            take_all(&mut places, owner(who));
        }
        prop_assert!(places.take(owner(owners + 1)).is_ok());
    }
}
