use super::vain::Vain;

#[test]
fn ranges_are_told_when_read_to_their_ends() {
    let mut vain = Vain::new(128, 1000);
    assert!(vain.read(0, 100, false).is_empty());
    assert_eq!(vain.read(100, 300, false), vec![0, 128]);
    assert_eq!(vain.read(300, 384, false), vec![256]);
    assert!(vain.read(384, 500, false).is_empty());
}

#[test]
fn what_was_found_counts_for_all_that_was_read_with_it() {
    let mut vain = Vain::new(128, 1000);
    assert!(vain.read(0, 64, true).is_empty());
    assert_eq!(vain.read(64, 256, false), vec![128]);
    assert!(vain.read(256, 320, false).is_empty());
    assert!(vain.read(320, 390, true).is_empty());
    assert_eq!(vain.read(390, 640, false), vec![512]);
}

#[test]
fn a_gap_ends_a_range() {
    let mut vain = Vain::new(128, 1000);
    assert!(vain.read(0, 64, false).is_empty());
    assert_eq!(vain.read(128, 256, false), vec![128]);
    assert!(vain.read(300, 384, false).is_empty());
}

/// The last range, if it is not full, is left to those who fill it.
#[test]
fn the_end_of_the_table() {
    let mut vain = Vain::new(128, 200);
    assert_eq!(vain.read(0, 200, false), vec![0]);
    let mut vain = Vain::new(128, 256);
    assert_eq!(vain.read(0, 256, false), vec![0, 128]);
    let mut vain = Vain::new(4096, 1000);
    assert!(vain.read(0, 1000, false).is_empty());
}
