//! What holds while something runs in this session, such as a statement or the planning of a query.
//!
//! The code that begins it also ends it, unless an error passes. Then it ends with the transaction or
//! subtransaction in which it began; what began outside that goes on.

use super::xact;
use crate::pg::abi::variable::Variable;
use std::cell::{Cell, RefCell};

/// A stack of what runs, the innermost last.
pub(crate) struct Scoped<T> {
    /// Each with the transaction nesting level at which it began.
    entries: Variable<RefCell<Vec<(T, i32)>>>,
    is_registered: Variable<Cell<bool>>,
}

/// What [`Scoped::leave`] needs: the number of entries outside. `Copy`: code over whose frame an
/// error may pass holds it.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Scope(usize);

/// The stack of any type.
trait Unwind {
    /// Forgets what began at this nesting level or a deeper one. Raises no error.
    fn unwind(&self, level: i32);
}

/// All stacks that have been used in this session.
static ALL: Variable<RefCell<Vec<&'static dyn Unwind>>> = Variable::new(RefCell::new(Vec::new()));

/// Called when a transaction (0), or a subtransaction of this nesting level, is rolled back. Raises
/// no error.
pub(crate) fn at_abort(level: i32) {
    ALL.with_borrow(|all| all.iter().for_each(|stack| stack.unwind(level)));
}

impl<T> Scoped<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Variable::new(RefCell::new(Vec::new())),
            is_registered: Variable::new(Cell::new(false)),
        }
    }

    /// Ends the innermost ones down to what [`Self::enter`] began, and returns that.
    pub(crate) fn leave(&self, scope: Scope) -> Option<T> {
        self.entries.with_borrow_mut(|entries| {
            entries.truncate(scope.0.saturating_add(1));
            // After an error that was caught, it may be gone already.
            let is_there = entries.len() > scope.0;
            entries.pop_if(|_| is_there).map(|(value, _)| value)
        })
    }

    /// Ends the innermost one, if there is any: for what returns, or is passed by an error, in the order in which it began.
    pub(crate) fn leave_innermost(&self) {
        self.entries.with_borrow_mut(Vec::pop);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.with_borrow(Vec::is_empty)
    }

    pub(crate) fn change<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.entries
            .with_borrow_mut(|entries| entries.last_mut().map(|(value, _)| work(value)))
    }

    /// Changes those that it is for, the innermost last. `work` uses no stack of this type.
    pub(crate) fn for_each(&self, mut work: impl FnMut(&mut T)) {
        self.entries
            .with_borrow_mut(|entries| entries.iter_mut().for_each(|(value, _)| work(value)));
    }
}

impl<T: Copy> Scoped<T> {
    /// The innermost one.
    #[inline]
    pub(crate) fn current(&self) -> Option<T> {
        self.entries
            .with_borrow(|entries| entries.last().map(|&(value, _)| value))
    }

    /// The first that is so, the outermost before the others.
    pub(crate) fn find<R>(&self, is_so: impl FnMut(T) -> Option<R>) -> Option<R> {
        self.entries.with_borrow(|entries| {
            let mut all = entries.iter().map(|&(value, _)| value);
            all.find_map(is_so)
        })
    }
}

impl<T> Scoped<T>
where
    Self: 'static,
{
    /// Begins something; [`Self::leave`] ends it, or an error.
    pub(crate) fn enter(&'static self, value: T) -> Scope {
        if !self.is_registered.replace(true) {
            ALL.with_borrow_mut(|all| all.push(self));
        }
        let level = xact::nest_level();
        self.entries.with_borrow_mut(|entries| {
            entries.push((value, level));
            Scope(entries.len() - 1)
        })
    }

    /// Runs `work`, during which it holds. It also ends if `work` panics.
    pub(crate) fn during<R>(&'static self, value: T, work: impl FnOnce() -> R) -> R {
        struct EndsOnDrop<T: 'static>(&'static Scoped<T>, Scope);
        impl<T: 'static> Drop for EndsOnDrop<T> {
            fn drop(&mut self) {
                self.0.leave(self.1);
            }
        }
        let _ends = EndsOnDrop(self, self.enter(value));
        work()
    }
}

impl<T> Unwind for Scoped<T> {
    fn unwind(&self, level: i32) {
        self.entries
            .with_borrow_mut(|entries| entries.retain(|&(_, began)| began < level));
    }
}
