//! Signatures of webhook calls.
//!
//! Each call carries two headers. `Rowmill-Timestamp` is the time in seconds since 1970. `Rowmill-Signature` is `v1=`
//! followed by the HMAC-SHA256 of timestamp, dot and body, in hexadecimal digits, keyed with the shared secret. The
//! service should check both, and reject timestamps more than a few minutes old: this prevents replay of recorded
//! calls.

use std::fmt::{self, Write};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The name of the header with the time of the call.
pub const TIMESTAMP_HEADER: &str = "rowmill-timestamp";

/// The name of the header with the signature.
pub const SIGNATURE_HEADER: &str = "rowmill-signature";

/// The minimum length of a secret, in characters.
pub const SECRET_MIN_CHARS: usize = 16;

/// The secret that signs calls. Its `Debug` output does not reveal it.
#[derive(Clone)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// Wraps the secret; `None` if it is shorter than [`SECRET_MIN_CHARS`].
    pub fn new(secret: impl Into<String>) -> Option<Self> {
        Some(secret.into()).filter(|secret| secret.chars().count() >= SECRET_MIN_CHARS).map(Self)
    }

    /// The value of [`SIGNATURE_HEADER`] for a body sent at this time, in seconds since 1970.
    pub fn sign(&self, timestamp: i64, body: &[u8]) -> String {
        // Cannot fail: HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.0.as_bytes()) else { return String::new() };
        mac.update(timestamp.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        format!("v1={}", hex(&mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The idempotency key of a call: the same for every call with these items in this order, and different for all others.
/// The service can recognise a repeated call by it.
pub fn idempotency_key<'a>(identifiers: impl Iterator<Item = &'a str>) -> String {
    let mut digest = Sha256::new();
    for identifier in identifiers {
        digest.update(identifier.as_bytes());
        digest.update(b"\n");
    }
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'correct horse battery staple'`.
    const SIGNED: &str = "v1=c0385f8b18e8d1ac37a3c0d93fa81ef49dc339ee11bf4170c61942141ce6cd98";

    #[test]
    fn the_signature_is_the_one_that_openssl_computes() {
        let secret = WebhookSecret::new("correct horse battery staple").unwrap();
        assert_eq!(secret.sign(1_700_000_000, br#"{"a":1}"#), SIGNED);
        assert_ne!(secret.sign(1_700_000_001, br#"{"a":1}"#), SIGNED);
        assert_ne!(secret.sign(1_700_000_000, br#"{"a":2}"#), SIGNED);
    }

    #[test]
    fn debug_output_hides_the_secret_and_a_short_secret_is_rejected() {
        let secret = WebhookSecret::new("correct horse battery staple").unwrap();
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
        assert!(WebhookSecret::new("fifteen chars..").is_none());
    }

    #[test]
    fn calls_have_the_same_key_exactly_if_they_have_the_same_items() {
        let key = |identifiers: &[&str]| idempotency_key(identifiers.iter().copied());
        assert_eq!(key(&["j/1", "j/2"]), key(&["j/1", "j/2"]));
        let others = [key(&["j/1"]), key(&["j/2", "j/1"]), key(&["j/1", "j/2", "j/3"]), key(&["j/1j/2"])];
        assert!(others.iter().all(|other| *other != key(&["j/1", "j/2"]) && other.len() == 64));
    }
}
