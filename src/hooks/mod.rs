//! All hooks, installed here: each calls the modules below in a fixed order and decides nothing.
//! Only background processes and SQL functions enter the library another way.

pub(crate) mod analyzed;
pub(crate) mod executor_hooks;
pub(crate) mod function;
pub(crate) mod planner;
pub(crate) mod relation_info;
pub(crate) mod transaction_end;
pub(crate) mod utility;

/// Installs the hooks; called once, at load.
pub(crate) fn init() {
    transaction_end::init();
    analyzed::init();
    relation_info::init();
    planner::init();
    utility::init();
    executor_hooks::init();
    function::init();
}
