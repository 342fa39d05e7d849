//! Rows of system catalogs, from the syscache by OID or from a scan; valid only in a callback.

use core::ffi::CStr;
use core::marker::PhantomData;
use core::ops::Deref;
use pgrx::pg_sys;

/// A row whose fixed part is an `F`.
pub(crate) struct CatalogRow<'a, F> {
    tuple: pg_sys::HeapTuple,
    form: &'a F,
    source: RowSource,
}

#[derive(Clone, Copy)]
enum RowSource {
    Cache(i32),
    Scan(pg_sys::TupleDesc),
}

impl<F> Deref for CatalogRow<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        self.form
    }
}

impl<F> CatalogRow<'_, F> {
    /// The value of a column behind the fixed part; `None` for NULL.
    pub(crate) fn value(&self, column: u32) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the row is there; a column of its catalog.
        let value = unsafe {
            match self.source {
                RowSource::Cache(cache) => {
                    pg_sys::SysCacheGetAttr(cache, self.tuple, column as i16, &raw mut is_null)
                }
                RowSource::Scan(columns) => {
                    pg_sys::heap_getattr(self.tuple, column as i32, columns, &mut is_null)
                }
            }
        };
        (!is_null).then_some(value)
    }

    /// The tuple, for functions of PostgreSQL.
    pub(in crate::pg) fn tuple(&self) -> pg_sys::HeapTuple {
        self.tuple
    }
}

/// The number of a syscache, as functions take it: bindings have another type up to 18.
#[allow(clippy::unnecessary_cast, reason = "from 19 on it is of this type")]
pub(crate) const fn cache_number(cache: pg_sys::SysCacheIdentifier::Type) -> i32 {
    cache as i32
}

/// A syscache whose key is an OID.
pub(crate) struct Cache<F> {
    id: i32,
    form: PhantomData<fn() -> F>,
}

impl<F> Cache<F> {
    /// # Safety
    /// The cache's key is one OID, and its rows begin with an `F`.
    pub(crate) const unsafe fn new(id: pg_sys::SysCacheIdentifier::Type) -> Self {
        Self {
            id: cache_number(id),
            form: PhantomData,
        }
    }

    /// Reads the row with this OID; `None` if there is none.
    pub(crate) fn get<T>(
        &self,
        key: pg_sys::Oid,
        read: impl FnOnce(&CatalogRow<'_, F>) -> T,
    ) -> Option<T> {
        // SAFETY: a look-up within a transaction; the row is released after it was read, or after
        // an error with the transaction.
        unsafe {
            let tuple = pg_sys::SearchSysCache1(self.id, pg_sys::Datum::from(key));
            if tuple.is_null() {
                return None;
            }
            let found = read(&CatalogRow {
                tuple,
                form: &*pg_sys::GETSTRUCT(tuple).cast::<F>(),
                source: RowSource::Cache(self.id),
            });
            pg_sys::ReleaseSysCache(tuple);
            Some(found)
        }
    }
}

// SAFETY: RELOID is the syscache of pg_class by OID, whose rows begin with this struct.
pub(crate) const CLASS: Cache<pg_sys::FormData_pg_class> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::RELOID) };

// SAFETY: OPEROID is the syscache of pg_operator by OID, whose rows begin with this struct.
pub(crate) const OPERATOR: Cache<pg_sys::FormData_pg_operator> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::OPEROID) };

// SAFETY: PROCOID is the syscache of pg_proc by OID, whose rows begin with this struct.
pub(crate) const FUNCTION: Cache<pg_sys::FormData_pg_proc> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::PROCOID) };

/// The value of a key's column.
#[derive(Clone, Copy)]
pub(crate) enum KeyDatum<'a> {
    Oid(pg_sys::Oid),
    Int2(i16),
    Int8(i64),
    /// Of type name.
    Name(&'a CStr),
}

/// A system catalog, and the index for its scans.
pub(crate) struct Catalog<F> {
    relation: pg_sys::Oid,
    index: Option<pg_sys::Oid>,
    form: PhantomData<fn() -> F>,
}

impl<F> Catalog<F> {
    /// # Safety
    /// The catalog's rows begin with an `F`. The index, if there is one, begins with the columns
    /// of the keys, in their order.
    pub(crate) const unsafe fn new(relation: pg_sys::Oid, index: Option<pg_sys::Oid>) -> Self {
        Self {
            relation,
            index,
            form: PhantomData,
        }
    }

    /// Calls `see` with each row whose columns have these values, until it returns true.
    pub(crate) fn scan(
        &self,
        keys: &[(i16, KeyDatum<'_>)],
        see: &mut dyn FnMut(&CatalogRow<'_, F>) -> bool,
    ) {
        let mut keys: Vec<pg_sys::ScanKeyData> = keys.iter().map(scan_key).collect();
        // SAFETY: a scan within a transaction over a locked catalog, closed before return or after
        // an error with the transaction; a row is read while the scan is positioned on it.
        unsafe {
            let lock = pg_sys::AccessShareLock.cast_signed();
            let catalog = pg_sys::table_open(self.relation, lock);
            let scan = pg_sys::systable_beginscan(
                catalog,
                self.index.unwrap_or(pg_sys::InvalidOid),
                self.index.is_some(),
                core::ptr::null_mut(),
                keys.len() as i32,
                keys.as_mut_ptr(),
            );
            loop {
                pgrx::check_for_interrupts!();
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                let row = CatalogRow {
                    tuple,
                    form: &*pg_sys::GETSTRUCT(tuple).cast::<F>(),
                    source: RowSource::Scan((*catalog).rd_att),
                };
                if see(&row) {
                    break;
                }
            }
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(catalog, lock);
        }
    }

    /// What `take` makes of such rows.
    pub(crate) fn collect<T>(
        &self,
        keys: &[(i16, KeyDatum<'_>)],
        mut take: impl FnMut(&CatalogRow<'_, F>) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        self.scan(keys, &mut |row| {
            found.extend(take(row));
            false
        });
        found
    }

    /// The first that `take` makes of such rows.
    pub(crate) fn find<T>(
        &self,
        keys: &[(i16, KeyDatum<'_>)],
        mut take: impl FnMut(&CatalogRow<'_, F>) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        self.scan(keys, &mut |row| {
            found = take(row);
            found.is_some()
        });
        found
    }
}

fn scan_key(&(column, value): &(i16, KeyDatum<'_>)) -> pg_sys::ScanKeyData {
    let (equal, value) = match value {
        KeyDatum::Oid(oid) => (pg_sys::F_OIDEQ, pg_sys::Datum::from(oid)),
        KeyDatum::Int2(number) => (pg_sys::F_INT2EQ, pg_sys::Datum::from(number)),
        KeyDatum::Int8(number) => (pg_sys::F_INT8EQ, pg_sys::Datum::from(number)),
        KeyDatum::Name(name) => (pg_sys::F_NAMEEQ, pg_sys::Datum::from(name.as_ptr())),
    };
    let mut key = pg_sys::ScanKeyData::default();
    let strategy = pg_sys::BTEqualStrategyNumber as u16;
    // SAFETY: the function compares values of the key's type.
    unsafe { pg_sys::ScanKeyInit(&mut key, column, strategy, equal.into(), value) };
    key
}
