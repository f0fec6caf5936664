//! How the process's heap reserves address space, and ends the process where there is none left.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// Exit code of a process that the system refuses memory: that of a set-up that failed.
const EXIT_REFUSED: i32 = 2;
/// More than the message is long.
const MESSAGE_BYTES_MAX: usize = 256;

/// The system's allocator. A refusal ends the process with a message: no allocation has an error,
/// and without this one the process would end by SIGABRT.
#[derive(Debug)]
pub struct Heap;

// SAFETY: the system's allocator does all the work; a null pointer is given to nobody.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of `alloc`.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        granted(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        refused(bytes);
    }
    memory
}

/// Says so without allocating anything, and ends the process.
#[cold]
fn refused(bytes: usize) -> ! {
    let mut message = [0; MESSAGE_BYTES_MAX];
    let mut rest = &mut message[..];
    // It has room, and standard error may take nothing.
    let _ = writeln!(
        rest,
        "brunt: the system refused {bytes} bytes of memory; raise the limit of the address space \
         (`ulimit -v`), or use fewer workers and connections"
    );
    let length = MESSAGE_BYTES_MAX - rest.len();
    // SAFETY: the message has that length; `_exit` takes a number and runs nothing that could
    // allocate.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length);
        libc::_exit(EXIT_REFUSED)
    }
}

/// Has all threads allocate from one place. By default each reserves 64 MB of address space, which
/// is nothing, unless the address space is limited: then the first of them leave too little for the
/// others. Call it before threads are started.
pub fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes two numbers, and sets a parameter of the allocator under its own lock.
    // Where it refuses, things stay as they are.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
