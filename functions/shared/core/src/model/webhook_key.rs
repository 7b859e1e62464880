//! The keys by which the services of webhooks recognise Rowmill.
//!
//! `process-items` signs with these keys, and `rowmill webhook-key` shows an operator the key of a target.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::model::sha256::hex;

/// Text in front of the job type, from which a key is derived. It keeps these keys apart from any others that may be
/// derived from the same secret.
const CONTEXT: &str = "rowmill webhook\n";

/// The key of the target with this job type: what its service gets. It does not reveal the secret, nor the key of
/// another target. 64 lowercase hexadecimal digits, which are the key as a text.
pub fn webhook_key(secret: &str, job_type: &str) -> String {
    hex(&hmac_sha256(secret, &[CONTEXT.as_bytes(), job_type.as_bytes()]))
}

/// The key of a target as libraries for Standard Webhooks take it. It decodes to the 64 digits of the key, so that both
/// signatures of a call are made with the same bytes, the most that the standard allows.
pub fn standard_secret(key: &str) -> String {
    format!("whsec_{}", STANDARD.encode(key))
}

/// The HMAC-SHA256 of these bytes, one part after the other.
pub fn hmac_sha256(key: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_one_that_openssl_computes_and_each_target_has_its_own() {
        // Made with `printf 'rowmill webhook\nnotify' | openssl dgst -sha256 -hmac 'correct horse battery staple'`.
        let expected = "860c72388dfe5e2b1cfa76d4bf21873f2dc20a23ce60cb7ba9083c8067c1de45";
        assert_eq!(webhook_key("correct horse battery staple", "notify"), expected);
        assert_ne!(webhook_key("correct horse battery staple", "notify2"), expected);
        // Made with `printf %s "$KEY" | base64 -w0`.
        let standard = "whsec_ODYwYzcyMzg4ZGZlNWUyYjFjZmE3NmQ0YmYyMTg3M2YyZGMyMGEyM2NlNjBjYjdiYTkwODNjODA2N2MxZGU0NQ==";
        assert_eq!(standard_secret(expected), standard);
    }
}
