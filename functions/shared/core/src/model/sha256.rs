//! Digests as text.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The SHA-256 of these bytes, in 64 lowercase hexadecimal digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_one_that_sha256sum_computes() {
        // Made with `printf 'rowmill 7' | sha256sum`. It begins with zeros.
        let expected = "003223e4c30798b1267a88d13a330dc681ec27f8b9727f46f1f6ac73372b34d1";
        assert_eq!(sha256_hex("rowmill 7"), expected);
    }
}
