//! What a web service knows Rowmill by: each call carries `Rowmill-Timestamp`, the time in seconds since 1970, and
//! `Rowmill-Signature`, `v1=` and the HMAC-SHA256, in hexadecimal digits, of the timestamp, a dot and the body, under a
//! secret both sides know. A service checks both, and refuses timestamps more than a few minutes old, so that nobody can
//! send a call they overheard again later.

use std::fmt::{self, Write};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The header with the time of the call.
pub const TIMESTAMP_HEADER: &str = "rowmill-timestamp";

/// The header with the signature.
pub const SIGNATURE_HEADER: &str = "rowmill-signature";

/// The fewest characters a secret must have.
pub const SECRET_MIN_CHARS: usize = 16;

/// The secret that calls are signed with. Nothing shows it.
#[derive(Clone)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    /// The secret, unless it is shorter than [`SECRET_MIN_CHARS`].
    pub fn new(secret: impl Into<String>) -> Option<Self> {
        Some(secret.into()).filter(|secret| secret.chars().count() >= SECRET_MIN_CHARS).map(Self)
    }

    /// What [`SIGNATURE_HEADER`] says of a body sent at this time.
    pub fn sign(&self, timestamp: i64, body: &[u8]) -> String {
        // A key may be of any length.
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

/// A text that is the same for every call with these items, and for no other: what a service knows a repeated call by.
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
    fn the_signature_is_what_other_implementations_say() {
        let secret = WebhookSecret::new("correct horse battery staple").unwrap();
        assert_eq!(secret.sign(1_700_000_000, br#"{"a":1}"#), SIGNED);
        assert_ne!(secret.sign(1_700_000_001, br#"{"a":1}"#), SIGNED);
        assert_ne!(secret.sign(1_700_000_000, br#"{"a":2}"#), SIGNED);
    }

    #[test]
    fn nothing_shows_a_secret_and_a_short_one_is_none() {
        let secret = WebhookSecret::new("correct horse battery staple").unwrap();
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
        assert!(WebhookSecret::new("fifteen chars..").is_none());
    }

    #[test]
    fn a_call_with_the_same_items_has_the_same_key() {
        let key = |identifiers: &[&str]| idempotency_key(identifiers.iter().copied());
        assert_eq!(key(&["j/1", "j/2"]), key(&["j/1", "j/2"]));
        let others = [key(&["j/1"]), key(&["j/2", "j/1"]), key(&["j/1", "j/2", "j/3"]), key(&["j/1j/2"])];
        assert!(others.iter().all(|other| *other != key(&["j/1", "j/2"]) && other.len() == 64));
    }
}
