//! Expressions as the catalogs store them, and conditions from a user's text: parsed and analyzed,
//! never executed.

use super::syntax::Node;
use crate::pg::abi::encoding;
use crate::pg::catalog;
use pgrx::pg_sys::{self, Expr, RawParseMode};
use std::cell::OnceCell;
use std::ffi::{CStr, CString};
use std::hash::{Hash, Hasher};

/// The text of an expression on the columns of one table, written by `nodeToString`.
///
/// It is simplified on first use, not when it is read: simplifying computes constants, which can be
/// slow, and code that reads all tables of a database must not wait for that.
#[derive(Debug, Clone)]
pub(crate) struct StoredTree {
    text: CString,
    simplified: OnceCell<Box<Self>>,
}

impl PartialEq for StoredTree {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for StoredTree {}

impl Hash for StoredTree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl StoredTree {
    /// # Safety
    /// The text was written by `nodeToString`.
    pub(in crate::pg) unsafe fn new(text: &CStr) -> Self {
        Self {
            text: text.to_owned(),
            simplified: OnceCell::new(),
        }
    }

    pub(crate) fn of(tree: Node<'_>) -> Self {
        // SAFETY: a `Node` is a valid tree, whose text is a C string.
        unsafe { Self::new(CStr::from_ptr(pg_sys::nodeToString(tree.as_ptr().cast()))) }
    }

    /// Parses the text in the current memory context.
    pub(in crate::pg) fn read(&self) -> *mut pg_sys::Node {
        // SAFETY: `new` requires that the text is one that nodeToString() wrote.
        unsafe { pg_sys::stringToNode(self.text.as_ptr()).cast() }
    }

    /// Simplified as PostgreSQL does before it compares conditions, which calls functions; for the
    /// range table entry `varno`.
    pub(crate) fn simplified(&self, varno: u32) -> *mut Expr {
        let tree = self.simple().read();
        // SAFETY: the tree is new. It lacks the functions of operators, which are set here.
        unsafe {
            pg_sys::ChangeVarNodes(tree, 1, varno.cast_signed(), 0);
            pg_sys::fix_opfuncids(tree);
        }
        tree.cast()
    }

    fn simple(&self) -> &Self {
        // Simplifying calls functions that may use this tree: hold no borrow.
        self.simplified.get().unwrap_or_else(|| {
            // SAFETY: a tree that was just made; the result is one.
            let simple = unsafe {
                let simple = pg_sys::eval_const_expressions(core::ptr::null_mut(), self.read());
                let simple = pg_sys::canonicalize_qual(simple.cast(), false);
                Self::new(CStr::from_ptr(pg_sys::nodeToString(simple.cast())))
            };
            self.simplified.get_or_init(|| Box::new(simple))
        })
    }

    /// The numbers of the columns that it names, in order.
    pub(crate) fn columns(&self) -> Vec<i16> {
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        unsafe { Node::new(self.read()) }.map_or(vec![], Node::columns)
    }

    /// The function and the column, if it calls a function with one column, an integer of any size
    /// that may be cast.
    pub(crate) fn call_on_integer(&self) -> Option<(pg_sys::Oid, i16)> {
        let casts = [
            pg_sys::F_INT8_INT4,
            pg_sys::F_FLOAT8_INT4,
            pg_sys::F_FLOAT8_INT8,
        ];
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        let call = unsafe { Node::new(self.read()) }?.cast::<pg_sys::FuncExpr>()?;
        let mut value = only_argument(call)?;
        if let Some(cast) = value.cast::<pg_sys::FuncExpr>() {
            if !casts.contains(&cast.funcid.to_u32()) {
                return None;
            }
            value = only_argument(cast)?;
        }
        let column = value.cast::<pg_sys::Var>()?;
        (column.varattno > 0).then_some((call.funcid, column.varattno))
    }

    pub(crate) fn is(&self, tree: Node<'_>) -> bool {
        // SAFETY: equal() only reads both trees, which are valid.
        unsafe { pg_sys::equal(self.read().cast(), tree.as_ptr().cast()) }
    }

    /// Whether both conditions hold for the same rows, as far as PostgreSQL can tell.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let (one, other) = (self.simple().read(), other.simple().read());
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        unsafe { pg_sys::equal(one.cast(), other.cast()) }
    }

    /// The expression for a table that inherits from its table, where columns have the same names
    /// but other numbers. `None` if a column is missing.
    pub(crate) fn translate(&self, from: pg_sys::Oid, to: pg_sys::Oid) -> Option<Self> {
        let tree = self.read();
        let (mut numbers, mut whole_row) = (vec![], false);
        // SAFETY: just made; the map has an entry for each column.
        unsafe {
            for attno in Node::new(tree)?.columns() {
                if let Ok(count @ 1..) = usize::try_from(attno) {
                    let name = catalog::column_name(from, attno);
                    numbers.resize(count, 0);
                    numbers[count - 1] = catalog::attribute(to, &name)?.attno;
                }
            }
            let map = pg_sys::AttrMap {
                attnums: numbers.as_mut_ptr(),
                maplen: i32::try_from(numbers.len()).ok()?,
            };
            let none = pg_sys::InvalidOid;
            let tree = pg_sys::map_variable_attnos(tree, 1, 0, &map, none, &mut whole_row);
            Node::new(tree).map(Self::of)
        }
    }

    /// As SQL. PostgreSQL locks the table for it, and the composite types whose fields it names.
    /// `None` if the table does not exist.
    pub(crate) fn to_sql(&self, table: pg_sys::Oid) -> Option<String> {
        // SAFETY: the function takes the text of an expression and returns a text.
        unsafe {
            let text = pg_sys::Datum::from(pg_sys::cstring_to_text(self.text.as_ptr()));
            let arguments = [Some(text), Some(table.into())];
            pgrx::direct_function_call_as_datum(pg_sys::pg_get_expr, &arguments)
                .map(|datum| encoding::from_datum(datum))
        }
    }
}

fn only_argument<'a>(call: Node<'a, pg_sys::FuncExpr>) -> Option<Node<'a>> {
    let mut arguments = call.list::<pg_sys::Node>(|call| &call.args);
    let first = arguments.next()?;
    arguments.next().is_none().then_some(first)
}

/// Calls `read` with a query on the table that has this condition; `None` if the text is not one
/// expression. Raises the parser's errors.
pub(crate) fn analyzed<T>(
    table: pg_sys::Oid,
    condition: &str,
    read: impl FnOnce(Node<'_, pg_sys::Query>) -> T,
) -> Option<T> {
    let bare = encoding::to_server(condition)?;
    if !parsed(&bare, RawParseMode::RAW_PARSE_PLPGSQL_EXPR).is_some_and(is_expression) {
        return None;
    }
    // On its own line: the text may end with a comment.
    let table = catalog::qualified_name(table);
    let text = encoding::query(&format!("SELECT FROM ONLY {table} WHERE (\n{condition}\n)"));
    let tree = parsed(&text, RawParseMode::RAW_PARSE_DEFAULT)?.as_ptr();
    let (types, none) = (core::ptr::null(), core::ptr::null_mut());
    // SAFETY: a statement without parameters that is not used again.
    let query = unsafe {
        let query = pg_sys::parse_analyze_fixedparams(tree, text.as_ptr(), types, 0, none);
        Node::new(query)
    };
    query.map(read)
}

/// The first statement of the text, in the current memory context.
fn parsed(text: &CStr, mode: RawParseMode::Type) -> Option<Node<'_, pg_sys::RawStmt>> {
    // SAFETY: the parser copies what it keeps of the text.
    unsafe {
        Node::new(pg_sys::raw_parser(text.as_ptr(), mode))?
            .items()
            .next()
    }
}

/// Whether the parsed statement has only one expression, and no other clause of a SELECT.
fn is_expression(statement: Node<'_, pg_sys::RawStmt>) -> bool {
    let statement = statement.node(|raw| &raw.stmt);
    let Some(select) = statement.and_then(Node::cast::<pg_sys::SelectStmt>) else {
        return false;
    };
    let mut targets = select.list::<pg_sys::ResTarget>(|select| &select.targetList);
    let only = targets.next().filter(|_| targets.next().is_none());
    let bare = pg_sys::SelectStmt {
        type_: select.type_,
        targetList: select.targetList,
        ..Default::default()
    };
    // SAFETY: equal() only reads both trees, which are valid.
    let is_bare = unsafe { pg_sys::equal((&raw const bare).cast(), select.as_ptr().cast()) };
    is_bare && only.is_some_and(|target| target.name.is_null())
}
