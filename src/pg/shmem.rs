//! Shared memory: one structure, one hash table, one lock for both.

use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// A C string that begins with the extension's name; made by the compiler, which refuses another.
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

/// The name of the lock's tranche, shown in wait events.
const TRANCHE: &CStr = named!("");

static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;
static mut LAYOUT: Layout = Layout {
    control: 0,
    key: 0,
    entry: 0,
    entries: 0,
};
static mut CALLS: Calls = Calls {
    started: || (),
    stopping: || (),
};
static mut CONTROL: *mut core::ffi::c_void = core::ptr::null_mut();
static mut TABLE: *mut pg_sys::HTAB = core::ptr::null_mut();
static mut LOCK: *mut pg_sys::LWLock = core::ptr::null_mut();

/// Sizes in bytes, and the number of entries of the hash table.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) control: usize,
    pub(crate) key: usize,
    pub(crate) entry: usize,
    pub(crate) entries: i64,
}

/// What the postmaster calls while no other process exists.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    /// The memory was created, at the server's start or after a crash.
    pub(crate) started: fn(),
    /// The server stops cleanly.
    pub(crate) stopping: fn(),
}

/// Asks for the memory; once, while libraries are preloaded. The structure is
/// zeroed before anybody sees it.
pub(crate) fn init(layout: Layout, calls: Calls) {
    // SAFETY: single-threaded, in the postmaster.
    unsafe {
        LAYOUT = layout;
        CALLS = calls;
        PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: in the postmaster, where the hook belongs.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            at_boundary!(previous());
        }
        let layout = LAYOUT;
        pg_sys::RequestAddinShmemSpace(layout.control);
        pg_sys::RequestAddinShmemSpace(pg_sys::hash_estimate_size(layout.entries, layout.entry));
        pg_sys::RequestNamedLWLockTranche(TRANCHE.as_ptr(), 1);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: in the postmaster at start and after a crash; the lock is that of
    // all extensions.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            at_boundary!(previous());
        }
        let layout = LAYOUT;
        let mut found = false;
        CONTROL = pg_sys::ShmemInitStruct(named!(" control").as_ptr(), layout.control, &mut found);
        if !found {
            core::ptr::write_bytes(CONTROL.cast::<u8>(), 0, layout.control);
        }
        let mut info = pg_sys::HASHCTL {
            keysize: layout.key,
            entrysize: layout.entry,
            ..Default::default()
        };
        let flags = (pg_sys::HASH_ELEM | pg_sys::HASH_BLOBS).cast_signed();
        TABLE = pg_sys::ShmemInitHash(
            named!(" tables").as_ptr(),
            layout.entries,
            layout.entries,
            &mut info,
            flags,
        );
        LOCK = &raw mut (*pg_sys::GetNamedLWLockTranche(TRANCHE.as_ptr())).lock;
        if !found && !pg_sys::IsUnderPostmaster {
            let started = CALLS.started;
            started();
            pg_sys::on_shmem_exit(Some(stop), pg_sys::Datum::null());
        }
    }
}

/// Children of the postmaster forget it when they are forked.
#[pg_guard]
unsafe extern "C-unwind" fn stop(code: core::ffi::c_int, _argument: pg_sys::Datum) {
    if code == 0 {
        // SAFETY: set once, at load.
        let stopping = unsafe { CALLS.stopping };
        stopping();
    }
}

/// The structure.
///
/// # Safety
/// `T` is the type whose size was asked for; valid when zeroed; only atomics in
/// it are changed without the lock.
pub(crate) unsafe fn control<T>() -> &'static T {
    // SAFETY: set at the server's start, before any process that could call this.
    unsafe { &*CONTROL.cast::<T>() }
}

/// The lock, held until dropped. Meanwhile nothing may raise an error.
pub(crate) struct Locked(());

impl Locked {
    /// Waits for the lock, to change the table.
    pub(crate) fn exclusive() -> Self {
        Self::acquire(pg_sys::LWLockMode::LW_EXCLUSIVE)
    }

    /// Waits for the lock, to read the table.
    pub(crate) fn shared() -> Self {
        Self::acquire(pg_sys::LWLockMode::LW_SHARED)
    }

    /// Without the lock, where no other process exists: in [`Calls`].
    pub(crate) fn alone() -> Self {
        Self(())
    }

    fn acquire(mode: pg_sys::LWLockMode::Type) -> Self {
        // SAFETY: initialized at the server's start.
        unsafe { pg_sys::LWLockAcquire(LOCK, mode) };
        Self(())
    }

    /// The entry of that key; `None` if there is none.
    ///
    /// # Safety
    /// `K` and `E` are the types whose sizes were asked for. The reference ends
    /// with the lock; it is changed under the exclusive lock only.
    pub(crate) unsafe fn find<K, E>(&mut self, key: &K) -> Option<&mut E> {
        // SAFETY: as required of the caller.
        unsafe { self.search(key, pg_sys::HASHACTION::HASH_FIND) }
    }

    /// The entry of that key, created if there is none (then only its key is set), and whether
    /// it was there; `None` if the table is full.
    ///
    /// # Safety
    /// As [`Locked::find`], under the exclusive lock.
    pub(crate) unsafe fn enter<K, E>(&mut self, key: &K) -> Option<(&mut E, bool)> {
        let mut found = false;
        // SAFETY: as required of the caller.
        unsafe {
            let action = pg_sys::HASHACTION::HASH_ENTER_NULL;
            let entry =
                pg_sys::hash_search(TABLE, core::ptr::from_ref(key).cast(), action, &mut found);
            entry.cast::<E>().as_mut().map(|entry| (entry, found))
        }
    }

    /// Removes the entry of that key.
    ///
    /// # Safety
    /// As [`Locked::find`], under the exclusive lock.
    pub(crate) unsafe fn remove<K>(&mut self, key: &K) {
        // SAFETY: as required of the caller.
        unsafe {
            let action = pg_sys::HASHACTION::HASH_REMOVE;
            pg_sys::hash_search(
                TABLE,
                core::ptr::from_ref(key).cast(),
                action,
                core::ptr::null_mut(),
            );
        }
    }

    /// # Safety
    /// As [`Locked::find`]; under the exclusive lock, if `action` changes the table.
    unsafe fn search<K, E>(&mut self, key: &K, action: pg_sys::HASHACTION::Type) -> Option<&mut E> {
        // SAFETY: as required of the caller.
        unsafe {
            pg_sys::hash_search(
                TABLE,
                core::ptr::from_ref(key).cast(),
                action,
                core::ptr::null_mut(),
            )
            .cast::<E>()
            .as_mut()
        }
    }

    /// Calls `visit` with every entry; it must not add or remove any.
    ///
    /// # Safety
    /// As [`Locked::find`].
    pub(crate) unsafe fn for_each<E>(&mut self, mut visit: impl FnMut(&mut E)) {
        // SAFETY: as required of the caller; the scan runs to its end.
        unsafe {
            let mut scan = pg_sys::HASH_SEQ_STATUS::default();
            pg_sys::hash_seq_init(&mut scan, TABLE);
            loop {
                let entry = pg_sys::hash_seq_search(&mut scan).cast::<E>();
                match entry.as_mut() {
                    Some(entry) => visit(entry),
                    None => break,
                }
            }
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: acquired by this value. After an error PostgreSQL may have released it
        // already.
        unsafe {
            if pg_sys::LWLockHeldByMe(LOCK) {
                pg_sys::LWLockRelease(LOCK);
            }
        }
    }
}
