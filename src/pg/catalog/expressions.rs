//! Builds and recognises expression trees.

use super::Attribute;
use crate::pg::abi::externs::raising;
use crate::pg::abi::{encoding, lists};
use pgrx::pg_sys::{self, Expr, NodeTag};

/// A zeroed node of type `T` in the current memory context.
///
/// # Safety
/// `tag` is the tag of `T`, a node struct that is valid when zeroed.
unsafe fn make<T>(tag: NodeTag) -> *mut T {
    // SAFETY: palloc0 returns zeroed memory of that size; every node starts with its tag.
    unsafe {
        let node = pg_sys::palloc0(size_of::<T>()).cast::<T>();
        (*node.cast::<pg_sys::Node>()).type_ = tag;
        node
    }
}

/// A column of range table entry `varno`, at its own query's level.
pub(crate) fn var(varno: u32, column: &Attribute) -> *mut Expr {
    any_var(varno, column.attno, column.type_oid, column.typmod)
}

/// The row's `tableoid`, as [`var`].
pub(crate) fn table_oid(varno: u32) -> *mut Expr {
    any_var(
        varno,
        pg_sys::TableOidAttributeNumber as i16,
        pg_sys::OIDOID,
        -1,
    )
}

/// The row's `ctid`, as [`var`].
pub(crate) fn ctid(varno: u32) -> *mut Expr {
    any_var(
        varno,
        pg_sys::SelfItemPointerAttributeNumber as i16,
        pg_sys::TIDOID,
        -1,
    )
}

fn any_var(varno: u32, attno: i16, type_oid: pg_sys::Oid, typmod: i32) -> *mut Expr {
    let collation = pg_sys::InvalidOid;
    // PostgreSQL 15 has an unsigned range table index here, later versions a signed one.
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::makeVar(varno as _, attno, type_oid, typmod, collation, 0).cast() }
}

/// An integer constant; `None` is NULL.
pub(crate) fn int4(value: Option<i32>) -> *mut Expr {
    let datum = pg_sys::Datum::from(value.unwrap_or(0));
    // SAFETY: allocates in the current memory context.
    unsafe {
        pg_sys::makeConst(
            pg_sys::INT4OID,
            -1,
            pg_sys::InvalidOid,
            4,
            datum,
            value.is_none(),
            true,
        )
        .cast()
    }
}

pub(crate) fn null(type_oid: pg_sys::Oid) -> *mut Expr {
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::makeNullConst(type_oid, -1, pg_sys::InvalidOid).cast() }
}

pub(crate) fn text(value: &str) -> *mut Expr {
    let value = encoding::shown(value);
    // SAFETY: allocates in the current memory context.
    unsafe {
        let datum = pg_sys::Datum::from(pg_sys::cstring_to_text(value.as_ptr()));
        let collation = pg_sys::DEFAULT_COLLATION_OID;
        pg_sys::makeConst(pg_sys::TEXTOID, -1, collation, -1, datum, false, false).cast()
    }
}

/// The OID of a table, as a constant.
pub(crate) fn table(relid: pg_sys::Oid) -> *mut Expr {
    let (none, size) = (pg_sys::InvalidOid, size_of::<pg_sys::Oid>() as i32);
    let datum = pg_sys::Datum::from(relid);
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::makeConst(pg_sys::OIDOID, -1, none, size, datum, false, true).cast() }
}

pub(crate) fn call(function: pg_sys::Oid, result: pg_sys::Oid, args: &[*mut Expr]) -> *mut Expr {
    let (none, explicit) = (
        pg_sys::InvalidOid,
        pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
    );
    // SAFETY: the arguments are nodes of the current planning.
    unsafe { pg_sys::makeFuncExpr(function, result, lists::of(args), none, none, explicit).cast() }
}

/// A function call of the filter: equal() to and deparsed like a user-written call, but
/// distinguishable from one.
pub(crate) fn filter_call(function: pg_sys::Oid, args: &[*mut Expr]) -> *mut Expr {
    let call = call(function, pg_sys::BOOLOID, args);
    // SAFETY: `call` is a FuncExpr that was made above, and is not shared yet.
    unsafe { (*call.cast::<pg_sys::FuncExpr>()).funcformat = FILTERS };
    call
}

/// `function(columns, constant)`, as [`filter_call`] makes it. One guard for all of it, not one
/// for each node: every planning makes it for many tables.
pub(crate) fn filter_call_on(
    function: pg_sys::Oid,
    varno: u32,
    columns: &[Attribute],
    constant: Option<i32>,
) -> *mut Expr {
    let none = pg_sys::InvalidOid;
    let value = pg_sys::Datum::from(constant.unwrap_or(0));
    let is_null = constant.is_none();
    // SAFETY: allocates nodes in the current memory context; nothing here is to be dropped
    // when an error passes.
    unsafe {
        at_boundary!(let mut args = core::ptr::null_mut();
            for column in columns {
                let (attno, type_oid) = (column.attno, column.type_oid);
                let varno = varno.cast_signed();
                let var = raising::makeVar(varno, attno, type_oid, column.typmod, none, 0);
                args = raising::lappend(args, var.cast());
            }
            let constant = raising::makeConst(pg_sys::INT4OID, -1, none, 4, value, is_null, true);
            args = raising::lappend(args, constant.cast());
            raising::makeFuncExpr(function, pg_sys::BOOLOID, args, none, none, FILTERS).cast())
    }
}

/// Whether [`filter_call`] made the expression.
///
/// # Safety
/// An expression.
pub(crate) unsafe fn is_filter_call(expression: *mut Expr) -> bool {
    // SAFETY: as required of the caller; its tag tells its type.
    unsafe {
        (*expression).type_ == NodeTag::T_FuncExpr
            && (*expression.cast::<pg_sys::FuncExpr>()).funcformat == FILTERS
    }
}

/// As [`is_filter_call`], for the call that a function is running in; for functions that users
/// must not call. Unguarded.
///
/// # Safety
/// The argument of a function in C, while it runs.
pub(crate) unsafe fn is_called_by_filter(fcinfo: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: as required of the caller: the executor gives each call its expression, or
    // none.
    unsafe {
        let info = (*fcinfo).flinfo;
        if info.is_null() {
            return false;
        }
        let call = (*info).fn_expr.cast::<Expr>();
        !call.is_null() && is_filter_call(call)
    }
}

/// Whether an argument of the call that a function is running in is a constant of the query.
///
/// # Safety
/// As [`is_called_by_filter`].
pub(crate) unsafe fn has_constant(fcinfo: pg_sys::FunctionCallInfo, argument: i32) -> bool {
    // SAFETY: as required of the caller: the executor gives each call its expression, or
    // none. A list of arguments has nodes.
    unsafe {
        let info = (*fcinfo).flinfo;
        if info.is_null() || tag((*info).fn_expr) != Some(NodeTag::T_FuncExpr) {
            return false;
        }
        let call = (*info).fn_expr.cast::<pg_sys::FuncExpr>();
        let argument = lists::nth::<pg_sys::Node>((*call).args, argument);
        argument.is_some_and(|argument| tag(argument) == Some(NodeTag::T_Const))
    }
}

/// The grammar sets it for PostgreSQL's own functions only.
const FILTERS: pg_sys::CoercionForm::Type = pg_sys::CoercionForm::COERCE_SQL_SYNTAX;

/// `left > right` by the default btree operator of `type_oid`.
pub(crate) fn greater_than(type_oid: pg_sys::Oid, left: *mut Expr, right: *mut Expr) -> *mut Expr {
    // SAFETY: the type cache entry lives as long as the backend; the rest allocates.
    unsafe {
        let operator =
            (*pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_GT_OPR.cast_signed())).gt_opr;
        let none = pg_sys::InvalidOid;
        let clause =
            pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, left, right, none, none);
        pg_sys::set_opfuncid(clause.cast());
        clause
    }
}

/// The conjunction of all; true for none.
pub(crate) fn and(conditions: &[*mut Expr]) -> *mut Expr {
    // SAFETY: boolean nodes; a list of one is that one.
    unsafe { pg_sys::make_ands_explicit(lists::of(conditions)) }
}

/// The constant false.
pub(crate) fn never() -> *mut Expr {
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::makeBoolConst(false, false).cast() }
}

pub(crate) fn is_not_true(arg: *mut Expr) -> *mut Expr {
    // SAFETY: BooleanTest is valid when zeroed apart from what is set.
    unsafe {
        let test = make::<pg_sys::BooleanTest>(NodeTag::T_BooleanTest);
        (*test).arg = arg;
        (*test).booltesttype = pg_sys::BoolTestType::IS_NOT_TRUE;
        (*test).location = -1;
        test.cast()
    }
}

pub(crate) fn or(a: *mut Expr, b: *mut Expr) -> *mut Expr {
    // SAFETY: the callers pass boolean expressions.
    unsafe { pg_sys::makeBoolExpr(pg_sys::BoolExprType::OR_EXPR, lists::of(&[a, b]), -1) }
}

pub(crate) fn is_null(arg: *mut Expr) -> *mut Expr {
    // SAFETY: NullTest is valid when zeroed apart from what is set.
    unsafe {
        let test = make::<pg_sys::NullTest>(NodeTag::T_NullTest);
        (*test).arg = arg;
        (*test).nulltesttype = pg_sys::NullTestType::IS_NULL;
        (*test).location = -1;
        test.cast()
    }
}

/// `CASE WHEN condition THEN yes ELSE no END`, of type timestamptz.
pub(crate) fn case_timestamptz(condition: *mut Expr, yes: *mut Expr, no: *mut Expr) -> *mut Expr {
    // SAFETY: both structs are valid when zeroed apart from what is set.
    unsafe {
        let when = make::<pg_sys::CaseWhen>(NodeTag::T_CaseWhen);
        (*when).expr = condition;
        (*when).result = yes;
        (*when).location = -1;
        let case = make::<pg_sys::CaseExpr>(NodeTag::T_CaseExpr);
        (*case).casetype = pg_sys::TIMESTAMPTZOID;
        (*case).args = lists::of(&[when]);
        (*case).defresult = no;
        (*case).location = -1;
        case.cast()
    }
}

/// The function that is the condition of an expression made by [`case_timestamptz`].
///
/// # Safety
/// An expression.
pub(crate) unsafe fn case_asks(expression: *mut Expr) -> Option<pg_sys::Oid> {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        if tag(expression) != Some(NodeTag::T_CaseExpr) {
            return None;
        }
        let case = expression.cast::<pg_sys::CaseExpr>();
        let when = lists::nth::<pg_sys::CaseWhen>((*case).args, 0)?;
        let condition = (*when).expr;
        (tag(condition) == Some(NodeTag::T_FuncExpr))
            .then(|| (*condition.cast::<pg_sys::FuncExpr>()).funcid)
    }
}

/// Whether the two trees are the same expression.
///
/// # Safety
/// Both are valid node trees or null.
pub(crate) unsafe fn same<A, B>(a: *mut A, b: *mut B) -> bool {
    // SAFETY: as required of the caller; equal() only reads.
    unsafe { pg_sys::equal(a.cast(), b.cast()) }
}

/// The tag of a node; `None` for a null pointer.
///
/// # Safety
/// `node` is null or points to a node.
pub(crate) unsafe fn tag<T>(node: *mut T) -> Option<NodeTag> {
    // SAFETY: every node starts with its tag.
    unsafe { node.cast::<pg_sys::Node>().as_ref() }.map(|n| n.type_)
}
