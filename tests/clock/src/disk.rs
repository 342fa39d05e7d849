//! A full disk: what would make a file of a database longer fails. WAL has a disk of its own, since PostgreSQL ends
//! where that is full.

use crate::machine;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

/// Whether a write up to this offset finds no space.
fn has_no_space(file: c_int, end: i64) -> bool {
    machine().is_some_and(|machine| machine.is_full.load(Ordering::Relaxed) != 0)
        && grows(file, end)
        && is_of_a_database(file)
}

fn grows(file: c_int, end: i64) -> bool {
    // SAFETY: the structure is plain data, which the kernel fills.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::fstat(file, &raw mut status) == 0 && end > status.st_size }
}

/// Whether the file lies in `base/`. Allocates nothing.
fn is_of_a_database(file: c_int) -> bool {
    let (mut link, mut target) = ([0_u8; 32], [0_u8; 4096]);
    let prefix = b"/proc/self/fd/";
    link[..prefix.len()].copy_from_slice(prefix);
    let mut number = file;
    let digits = (1..).take_while(|n| number >= 10_i32.pow(*n)).count() + 1;
    for place in (prefix.len()..prefix.len() + digits).rev() {
        link[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    // SAFETY: `link` ends with a zero; the kernel writes at most as much as `target` holds.
    let length = unsafe {
        libc::readlink(
            link.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    };
    let Ok(length) = usize::try_from(length) else {
        return false;
    };
    target[..length].windows(6).any(|part| part == b"/base/")
}

fn no_space() -> isize {
    // SAFETY: this thread's own variable.
    unsafe { *libc::__errno_location() = libc::ENOSPC };
    -1
}

/// As in the C library.
///
/// # Safety
/// `data` is valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    file: c_int,
    data: *const c_void,
    size: usize,
    offset: i64,
) -> isize {
    if has_no_space(file, offset + size as i64) {
        return no_space();
    }
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_pwrite64, file, data, size, offset) as isize }
}

/// As in the C library.
///
/// # Safety
/// As `pwrite`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    file: c_int,
    data: *const c_void,
    size: usize,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { pwrite(file, data, size, offset) }
}

/// As in the C library.
///
/// # Safety
/// `parts` are `count` valid parts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    file: c_int,
    parts: *const libc::iovec,
    count: c_int,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    let all = unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).unwrap_or(0)) };
    let size: usize = all.iter().map(|part| part.iov_len).sum();
    if has_no_space(file, offset + size as i64) {
        return no_space();
    }
    // SAFETY: the caller's promise; the offset's upper half is for machines of 32 bits.
    unsafe { libc::syscall(libc::SYS_pwritev, file, parts, count, offset, 0) as isize }
}

/// As in the C library.
///
/// # Safety
/// As `pwritev`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev64(
    file: c_int,
    parts: *const libc::iovec,
    count: c_int,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { pwritev(file, parts, count, offset) }
}

/// As in the C library, which returns the error.
#[unsafe(no_mangle)]
pub extern "C" fn posix_fallocate(file: c_int, offset: i64, size: i64) -> c_int {
    if has_no_space(file, offset + size) {
        return libc::ENOSPC;
    }
    // SAFETY: a call of the kernel without memory of ours.
    match unsafe { libc::syscall(libc::SYS_fallocate, file, 0, offset, size) } {
        0 => 0,
        // SAFETY: this thread's own variable.
        _ => unsafe { *libc::__errno_location() },
    }
}

/// As in the C library.
#[unsafe(no_mangle)]
pub extern "C" fn posix_fallocate64(file: c_int, offset: i64, size: i64) -> c_int {
    posix_fallocate(file, offset, size)
}
