${upgrades}
