//! Target: the field in which a server names its alternatives (Alt-Svc).

/// Takes the input as the value of the field. What is found can be connected to.
pub fn alt_svc(data: &[u8]) {
    brunt_proto::alt_svc::fuzz_alt_svc(data);
}
