//! How the C library's allocator reserves address space.

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
