//! The Huffman code of strings (RFC 7541 section 5.2 and appendix B).
