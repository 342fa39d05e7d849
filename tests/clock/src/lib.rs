//! A machine whose wall clock and disk a test sets: functions of the C library, for LD_PRELOAD.
//!
//! The file that `TTL_CLOCK` names is a `Machine`. All processes of a server map it, so that it holds for all of
//! them at once. The monotonic clocks are left alone, as they are when somebody sets the time of a machine.

mod disk;

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

#[repr(C)]
struct Machine {
    /// By how many microseconds the wall clock is ahead.
    ahead: AtomicI64,
    /// Not 0: no file of a database grows.
    is_full: AtomicI64,
}

static MACHINE: AtomicPtr<Machine> = AtomicPtr::new(ptr::null_mut());

/// Mapped by the first process of the server, and inherited by the others.
fn machine() -> Option<&'static Machine> {
    let mut place = MACHINE.load(Ordering::Acquire);
    if place.is_null() {
        place = map()?;
        MACHINE.store(place, Ordering::Release);
    }
    // SAFETY: mapped below, and never unmapped.
    unsafe { place.as_ref() }
}

fn map() -> Option<*mut Machine> {
    // SAFETY: plain calls of the C library with a valid name; the file stays mapped after it is
    // closed, and is as large as a `Machine` (the harness makes it).
    unsafe {
        let name = libc::getenv(c"TTL_CLOCK".as_ptr());
        if name.is_null() {
            return None;
        }
        let file = libc::open(name, libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let place = libc::mmap(
            ptr::null_mut(),
            size_of::<Machine>(),
            libc::PROT_READ,
            libc::MAP_SHARED,
            file,
            0,
        );
        libc::close(file);
        (place != libc::MAP_FAILED).then(|| place.cast())
    }
}

/// Microseconds since 1970, by the shifted clock.
fn micros() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_REALTIME, &raw mut time) };
    let shift = machine().map_or(0, |machine| machine.ahead.load(Ordering::Relaxed));
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000 + shift
}

/// As in the C library.
///
/// # Safety
/// `time` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    if clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_REALTIME_COARSE {
        let now = micros();
        // SAFETY: the caller's promise.
        unsafe {
            (*time).tv_sec = now.div_euclid(1_000_000);
            (*time).tv_nsec = now.rem_euclid(1_000_000) * 1_000;
        }
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
}

/// As in the C library; the time zone is obsolete.
///
/// # Safety
/// `time` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, _zone: *mut libc::c_void) -> c_int {
    let now = micros();
    // SAFETY: the caller's promise.
    unsafe {
        (*time).tv_sec = now.div_euclid(1_000_000);
        (*time).tv_usec = now.rem_euclid(1_000_000);
    }
    0
}

/// As in the C library.
///
/// # Safety
/// `time` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut libc::time_t) -> libc::time_t {
    let now = micros().div_euclid(1_000_000);
    if !time.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *time = now };
    }
    now
}
