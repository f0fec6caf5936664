//! Target: the tables of sockets under `/proc/net`.

/// Takes the input as each of them.
pub fn socket_tables(data: &[u8]) {
    brunt_probe::fuzz_socket_tables(data);
}
