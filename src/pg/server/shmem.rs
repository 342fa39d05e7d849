//! Shared memory: one structure, one hash table, one lock for both.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::Deref;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// A C string that begins with the extension's name; a NUL inside is a compile error.
macro_rules! named {
    ($what:literal) => {
        const {
            let name = concat!(env!("CARGO_PKG_NAME"), $what, "\0");
            match CStr::from_bytes_with_nul(name.as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        }
    };
}

/// The lock's tranche name, shown in wait events.
const TRANCHE: &CStr = named!("");

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;
static mut CONTROL: *mut core::ffi::c_void = core::ptr::null_mut();
static mut TABLE: *mut pg_sys::HTAB = core::ptr::null_mut();
static mut LOCK: *mut pg_sys::LWLock = core::ptr::null_mut();

/// The contents of the memory: a structure, zeroed at first, and a hash table.
///
/// # Safety
/// Only one type implements it, and it is used only after the server's start. A zeroed `Control` is
/// valid. A `Key` is plain data without padding; an `Entry` is plain data that begins with its key.
pub(crate) unsafe trait Contents: Sized + 'static {
    type Control: Sync;
    type Key: Copy;
    type Entry: Copy;
    /// Called when the memory was created, at the server's start or after a crash. Runs in the
    /// postmaster, before any other process exists.
    const STARTED: fn(&mut Exclusive<Self>);
    /// Called when the server stops cleanly; in the postmaster, when no other process exists.
    const STOPPING: fn(&mut Exclusive<Self>);

    /// The number of entries of the hash table, which never has more.
    fn entries() -> i64;
}

/// Requests the memory; called once, while libraries are preloaded.
pub(crate) fn init<C: Contents>() {
    // SAFETY: _PG_init() runs once, in the postmaster, which has one thread.
    unsafe {
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request::<C>);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup::<C>);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request<C: Contents>() {
    // SAFETY: in the postmaster, where the hook belongs.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            at_boundary!(previous());
        }
        let table = pg_sys::hash_estimate_size(C::entries(), size_of::<C::Entry>());
        pg_sys::RequestAddinShmemSpace(size_of::<C::Control>());
        pg_sys::RequestAddinShmemSpace(table);
        pg_sys::RequestNamedLWLockTranche(TRANCHE.as_ptr(), 1);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup<C: Contents>() {
    // SAFETY: in the postmaster, at start or after a crash; the lock is the one for add-ins.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            at_boundary!(previous());
        }
        let (mut found, size) = (false, size_of::<C::Control>());
        CONTROL = pg_sys::ShmemInitStruct(named!(" control").as_ptr(), size, &mut found);
        if !found {
            core::ptr::write_bytes(CONTROL.cast::<u8>(), 0, size);
        }
        let mut info = pg_sys::HASHCTL {
            keysize: size_of::<C::Key>(),
            entrysize: size_of::<C::Entry>(),
            ..Default::default()
        };
        // Without HASH_FIXED_SIZE it would grow beyond its entries, at the cost of the lock manager.
        let flags = pg_sys::HASH_ELEM | pg_sys::HASH_BLOBS | pg_sys::HASH_FIXED_SIZE;
        TABLE = pg_sys::ShmemInitHash(
            named!(" tables").as_ptr(),
            #[cfg(not(since19))]
            C::entries(),
            C::entries(),
            &mut info,
            flags.cast_signed(),
        );
        LOCK = &raw mut (*pg_sys::GetNamedLWLockTranche(TRANCHE.as_ptr())).lock;
        if !found && !pg_sys::IsUnderPostmaster {
            (C::STARTED)(&mut Exclusive(Locked(PhantomData)));
            pg_sys::on_shmem_exit(Some(stop::<C>), pg_sys::Datum::null());
        }
    }
}

/// Child processes drop this callback when they are forked.
#[pg_guard]
unsafe extern "C-unwind" fn stop<C: Contents>(code: core::ffi::c_int, _argument: pg_sys::Datum) {
    if code == 0 {
        (C::STOPPING)(&mut Exclusive(Locked(PhantomData)));
    }
}

/// The structure.
pub(crate) fn control<C: Contents>() -> &'static C::Control {
    // SAFETY: set at the server's start, before the first call.
    unsafe { &*CONTROL.cast() }
}

/// A part of the structure that is accessed only under the lock.
#[repr(transparent)]
pub(crate) struct UnderLock<T>(UnsafeCell<T>);

// SAFETY: only the holder of the exclusive lock changes it.
unsafe impl<T: Send> Sync for UnderLock<T> {}

impl<T> UnderLock<T> {
    pub(crate) fn get<'a, C: Contents>(&'a self, _lock: &'a Locked<C>) -> &'a T {
        // SAFETY: the lock is held, so no other process changes it.
        unsafe { &*self.0.get() }
    }

    pub(crate) fn get_mut<'a, C: Contents>(&'a self, _lock: &'a mut Exclusive<C>) -> &'a mut T {
        // SAFETY: the exclusive lock is held and borrowed, so there is no other reference.
        unsafe { &mut *self.0.get() }
    }
}

/// The lock, released on drop: the table may be read. No error may be raised while it is held.
pub(crate) struct Locked<C: Contents>(PhantomData<C>);

/// The exclusive lock: the table may be changed.
pub(crate) struct Exclusive<C: Contents>(Locked<C>);

impl<C: Contents> Locked<C> {
    /// Waits for the lock, to change the table.
    pub(crate) fn exclusive() -> Exclusive<C> {
        Exclusive(Self::acquire(pg_sys::LWLockMode::LW_EXCLUSIVE))
    }

    /// Waits for the lock, to read the table.
    pub(crate) fn shared() -> Self {
        Self::acquire(pg_sys::LWLockMode::LW_SHARED)
    }

    fn acquire(mode: pg_sys::LWLockMode::Type) -> Self {
        // SAFETY: the start-up hook has set LOCK before any process can call this.
        unsafe { pg_sys::LWLockAcquire(LOCK, mode) };
        Self(PhantomData)
    }

    pub(crate) fn find(&self, key: &C::Key) -> Option<&C::Entry> {
        // SAFETY: under the lock; the reference ends before it.
        unsafe { search::<C>(key, pg_sys::HASHACTION::HASH_FIND).0.as_ref() }
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&C::Entry)) {
        // SAFETY: `self` is proof that the lock is held, so no process changes an entry.
        unsafe { scan::<C>(|entry| visit(&*entry)) }
    }
}

impl<C: Contents> Exclusive<C> {
    pub(crate) fn find_mut(&mut self, key: &C::Key) -> Option<&mut C::Entry> {
        // SAFETY: under the exclusive lock; the reference ends before it.
        unsafe { search::<C>(key, pg_sys::HASHACTION::HASH_FIND).0.as_mut() }
    }

    /// The entry with this key, inserted as `new` if missing; `None` if the table is full.
    pub(crate) fn enter(&mut self, key: &C::Key, new: C::Entry) -> Option<&mut C::Entry> {
        // SAFETY: as in `find_mut`; PostgreSQL sets only the key of a new entry.
        unsafe {
            let (entry, found) = search::<C>(key, pg_sys::HASHACTION::HASH_ENTER_NULL);
            if !entry.is_null() && !found {
                entry.write(new);
            }
            entry.as_mut()
        }
    }

    /// Removes the entry with this key.
    pub(crate) fn remove(&mut self, key: &C::Key) {
        // SAFETY: the exclusive lock is held, so no other process has a reference to the entry.
        unsafe { search::<C>(key, pg_sys::HASHACTION::HASH_REMOVE) };
    }

    pub(crate) fn for_each_mut(&mut self, mut visit: impl FnMut(&mut C::Entry)) {
        // SAFETY: `self` is proof that the exclusive lock is held, so no other process reads an entry.
        unsafe { scan::<C>(|entry| visit(&mut *entry)) }
    }
}

impl<C: Contents> Deref for Exclusive<C> {
    type Target = Locked<C>;

    fn deref(&self) -> &Locked<C> {
        &self.0
    }
}

/// The entry or null, and whether it already existed.
///
/// # Safety
/// The lock is held; exclusively, if `action` changes the table.
unsafe fn search<C: Contents>(
    key: &C::Key,
    action: pg_sys::HASHACTION::Type,
) -> (*mut C::Entry, bool) {
    let (key, mut found) = (core::ptr::from_ref(key).cast(), false);
    // SAFETY: as required of the caller; a key of the table.
    let entry = unsafe { pg_sys::hash_search(TABLE, key, action, &mut found) };
    (entry.cast(), found)
}

/// # Safety
/// As [`search`]; the lock is exclusive if `visit` changes an entry.
unsafe fn scan<C: Contents>(mut visit: impl FnMut(*mut C::Entry)) {
    // SAFETY: as required of the caller; the scan runs to its end, and nobody else inserts
    // meanwhile.
    unsafe {
        let mut scan = pg_sys::HASH_SEQ_STATUS::default();
        pg_sys::hash_seq_init(&mut scan, TABLE);
        let mut entry = pg_sys::hash_seq_search(&mut scan);
        while !entry.is_null() {
            visit(entry.cast());
            entry = pg_sys::hash_seq_search(&mut scan);
        }
    }
}

impl<C: Contents> Drop for Locked<C> {
    fn drop(&mut self) {
        // SAFETY: this value acquired it. After an error PostgreSQL may already have released it.
        unsafe {
            if pg_sys::LWLockHeldByMe(LOCK) {
                pg_sys::LWLockRelease(LOCK);
            }
        }
    }
}
