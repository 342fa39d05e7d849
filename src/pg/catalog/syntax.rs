//! Borrowed nodes of PostgreSQL's trees. A node's tag tells its type, and a field's type what it
//! points to, so all below a node can be read safely.

use crate::pg::abi::lists;
use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use pgrx::pg_sys::{self, NodeTag, PgNode};
use pgrx::prelude::*;
use std::ffi::CStr;

/// A node of a tree that is not changed during `'a`.
pub(crate) struct Node<'a, T = pg_sys::Node>(NonNull<T>, PhantomData<&'a T>);

impl<T> Clone for Node<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Node<'_, T> {}

impl<T> Deref for Node<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `new` requires a node that is not changed during `'a`.
        unsafe { self.0.as_ref() }
    }
}

/// # Safety
/// Every node with this tag is a `Self`; with `None`, every node is.
pub(crate) unsafe trait Tagged: PgNode + 'static {
    const TAG: Option<NodeTag>;
}

macro_rules! tagged {
    ($($node:ident $tag:ident),+) => {$(
        // SAFETY: each line of the macro's input pairs a node struct with its own tag.
        unsafe impl Tagged for pg_sys::$node {
            const TAG: Option<NodeTag> = Some(NodeTag::$tag);
        }
    )+};
}

tagged! {
    AlterDatabaseStmt T_AlterDatabaseStmt, AlterTableCmd T_AlterTableCmd,
    AlterObjectSchemaStmt T_AlterObjectSchemaStmt, AlterTableStmt T_AlterTableStmt, ColumnDef T_ColumnDef, Constraint T_Constraint,
    CopyStmt T_CopyStmt,
    CreateStmt T_CreateStmt, CreateTableAsStmt T_CreateTableAsStmt,
    CreateTrigStmt T_CreateTrigStmt, CreatedbStmt T_CreatedbStmt,
    DefElem T_DefElem, DropStmt T_DropStmt, DropdbStmt T_DropdbStmt, FuncExpr T_FuncExpr,
    IndexStmt T_IndexStmt, List T_List, NullTest T_NullTest, OpExpr T_OpExpr, PartitionCmd T_PartitionCmd, RangeVar T_RangeVar,
    RawStmt T_RawStmt, ReindexStmt T_ReindexStmt, RenameStmt T_RenameStmt,
    ResTarget T_ResTarget, ScalarArrayOpExpr T_ScalarArrayOpExpr, SecLabelStmt T_SecLabelStmt, SelectStmt T_SelectStmt,
    String T_String, TransactionStmt T_TransactionStmt, Var T_Var, ViewStmt T_ViewStmt
}
#[cfg(since16)]
tagged!(JsonConstructorExpr T_JsonConstructorExpr);
#[cfg(since18)]
tagged!(ATAlterConstraint T_ATAlterConstraint);

// SAFETY: every node struct begins with the fields of `Node`.
unsafe impl Tagged for pg_sys::Node {
    const TAG: Option<NodeTag> = None;
}

impl<'a, T> Node<'a, T> {
    /// # Safety
    /// Null, or a node of a tree as PostgreSQL makes them, which is not changed during `'a`.
    pub(crate) unsafe fn new(node: *mut T) -> Option<Self> {
        Some(Self(NonNull::new(node)?, PhantomData))
    }

    /// For functions of PostgreSQL, which only read it.
    pub(crate) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }

    /// A pointer in the node itself; asserted, as the closure could return another.
    fn field<U>(self, field: impl FnOnce(&T) -> &*mut U) -> *mut U {
        let field = field(&self);
        let at = core::ptr::from_ref(field).addr();
        assert!((self.0.addr().get()..self.0.addr().get() + size_of::<T>()).contains(&at));
        *field
    }

    /// The node to which a field points.
    pub(crate) fn node<U: PgNode>(self, field: impl FnOnce(&T) -> &*mut U) -> Option<Node<'a, U>> {
        // SAFETY: a field of a node belongs to the same tree, so it is not changed during `'a` either.
        unsafe { Node::new(self.field(field)) }
    }

    /// The text to which a field points.
    pub(crate) fn text(self, field: impl FnOnce(&T) -> &*mut c_char) -> Option<&'a CStr> {
        let text = self.field(field);
        // SAFETY: the strings of a tree are C strings, which do not change during `'a`.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }

    /// The nodes of this type in the list to which a field points.
    pub(crate) fn list<U: Tagged>(
        self,
        field: impl FnOnce(&T) -> &*mut pg_sys::List,
    ) -> impl DoubleEndedIterator<Item = Node<'a, U>> {
        self.node(field).into_iter().flat_map(Node::items)
    }
}

impl<'a> Node<'a, pg_sys::List> {
    /// Its nodes of this type.
    pub(crate) fn items<U: Tagged>(self) -> impl DoubleEndedIterator<Item = Node<'a, U>> {
        let list = if self.type_ == NodeTag::T_List {
            self.as_ptr()
        } else {
            core::ptr::null_mut()
        };
        // SAFETY: lists of pointers in trees are of nodes.
        unsafe { lists::iter::<pg_sys::Node>(list).filter_map(|item| Node::new(item)?.cast()) }
    }
}

pub(crate) enum ExpressionPart<'a> {
    Node(Node<'a>),
    /// A function that the last node calls.
    Function(pg_sys::Oid),
}

type See<'s> = &'s mut dyn FnMut(ExpressionPart<'_>) -> bool;

impl<'a> Node<'a> {
    pub(crate) fn cast<U: Tagged>(self) -> Option<Node<'a, U>> {
        let is_one = U::TAG.is_none_or(|tag| tag == self.type_);
        is_one.then(|| Node(self.0.cast(), PhantomData))
    }

    /// The type of the expression's value.
    pub(crate) fn value_type(self) -> pg_sys::Oid {
        // SAFETY: a node; raises for one that has no value.
        unsafe { pg_sys::exprType(self.as_ptr()) }
    }

    /// The columns of range table entry 1 in the expression, in order: 0 is the whole row, negative
    /// numbers are system columns.
    pub(crate) fn columns(self) -> Vec<i16> {
        let mut columns = Vec::new();
        let (mut used, mut member) = (core::ptr::null_mut(), -1);
        // SAFETY: a node; the set is read before anything can free it.
        unsafe {
            pg_sys::pull_varattnos(self.as_ptr(), 1, &mut used);
            loop {
                member = pg_sys::bms_next_member(used, member);
                if member < 0 {
                    return columns;
                }
                columns.push((member + pg_sys::FirstLowInvalidHeapAttributeNumber) as i16);
            }
        }
    }

    /// Calls `see` with the parts of the expression until it returns true; returns whether it did.
    pub(crate) fn any(self, mut see: See<'_>) -> bool {
        // SAFETY: a node; the context outlives the walk.
        unsafe { walk(self.as_ptr(), (&raw mut see).cast()) }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, see: *mut c_void) -> bool {
    // SAFETY: called with nodes of the tree and the context of `any`.
    unsafe {
        let Some(part) = Node::new(node).map(ExpressionPart::Node) else {
            return false;
        };
        (*see.cast::<See<'_>>())(part)
            || pg_sys::check_functions_in_node(node, Some(check), see)
            || pg_sys::expression_tree_walker(node, Some(walk), see)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check(function: pg_sys::Oid, see: *mut c_void) -> bool {
    // SAFETY: `any` passes the address of its closure as the walker's context.
    unsafe { (*see.cast::<See<'_>>())(ExpressionPart::Function(function)) }
}
