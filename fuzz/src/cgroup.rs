//! Target: files of cgroups.

/// Takes the input as each of them.
pub fn cgroup(data: &[u8]) {
    brunt_probe::fuzz_cgroup(data);
}
