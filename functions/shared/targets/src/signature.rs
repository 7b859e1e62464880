//! Signatures of webhook calls: version 2 of our own, and that of [Standard Webhooks].
//!
//! Each call carries three headers of our own. `Rowmill-Timestamp` is the time in seconds since 1970. `Idempotency-Key` is the
//! same for the same items. `Rowmill-Signature` is `v2=` followed by an HMAC-SHA256 in lowercase hexadecimal digits.
//! While the secret is rotated, the header has two such signatures with a comma between them: of the current secret and
//! of the previous one. A call is genuine if one of them fits.
//!
//! Signed are these lines, each ended by a line feed, and then the raw body:
//!
//! 1. `v2`
//! 2. the timestamp
//! 3. `POST`
//! 4. the host as in the `Host` header: with the port, unless it is the default one
//! 5. the path with the query
//! 6. the idempotency key
//!
//! None of the lines can contain a line feed, so two different calls never have the same signed text. A service that
//! checks the signature and refuses old timestamps is safe from replay: of calls to another service, to another path,
//! or under another idempotency key.
//!
//! Beside them it carries the three headers of Standard Webhooks, for services that check calls with a library.
//! `webhook-id` is the SHA-256 of the body: a repeated call has the same one, a call with a corrected row another.
//! `webhook-timestamp` is the time again. `webhook-signature` is `v1,` and an HMAC-SHA256 in base64 of the id, a period,
//! the timestamp, a period and the body; during a rotation two of them with a space between. It covers neither host nor
//! path. Both signatures use the same key. No text is signed for both: one begins with `v2`, the other with 64 digits.
//!
//! The key is that of the target ([`webhook_key()`]), so that a service cannot sign calls to other services.
//!
//! [Standard Webhooks]: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowmill_core::model::sha256::{hex, sha256_hex};
use rowmill_core::model::webhook_key::{hmac_sha256, webhook_key};

/// The name of the header with the time of the call.
pub const TIMESTAMP_HEADER: &str = "rowmill-timestamp";

pub const SIGNATURE_HEADER: &str = "rowmill-signature";

pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

pub const WEBHOOK_ID_HEADER: &str = "webhook-id";

pub const WEBHOOK_TIMESTAMP_HEADER: &str = "webhook-timestamp";

pub const WEBHOOK_SIGNATURE_HEADER: &str = "webhook-signature";

/// The minimum length of a secret, in characters.
pub const SECRET_MIN_CHARS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the secret that signs webhook calls must have at least {SECRET_MIN_CHARS} characters")]
pub struct SecretTooShort;

/// The secrets from which the keys of all targets are derived. The `Debug` output does not reveal them.
#[derive(Clone)]
pub struct WebhookSecrets {
    current: String,
    previous: Option<String>,
}

impl WebhookSecrets {
    /// The current secret, and the previous one during a rotation. A previous secret that is too short is left out:
    /// nothing was ever signed with it.
    ///
    /// # Errors
    /// [`SecretTooShort`] if the current secret has fewer than [`SECRET_MIN_CHARS`] characters.
    pub fn new(current: &str, previous: Option<&str>) -> Result<Self, SecretTooShort> {
        let checked =
            |secret: &str| Some(secret.to_owned()).filter(|secret| secret.chars().count() >= SECRET_MIN_CHARS);
        Ok(Self { current: checked(current).ok_or(SecretTooShort)?, previous: previous.and_then(checked) })
    }

    pub fn keys_of(&self, job_type: &str) -> SigningKeys {
        let key = |secret: &String| webhook_key(secret, job_type);
        SigningKeys { current: key(&self.current), previous: self.previous.as_ref().map(key) }
    }
}

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecrets")
    }
}

/// The keys that sign the calls of one target. The `Debug` output does not reveal them.
#[derive(Clone)]
pub struct SigningKeys {
    current: String,
    previous: Option<String>,
}

impl SigningKeys {
    /// The value of [`SIGNATURE_HEADER`] for this call.
    pub fn sign(&self, call: &SignedCall<'_>) -> String {
        self.each(|key| call.signature(key)).join(",")
    }

    /// The value of [`WEBHOOK_SIGNATURE_HEADER`] for this call.
    pub fn sign_standard(&self, call: &SignedCall<'_>) -> String {
        self.each(|key| call.standard_signature(key)).join(" ")
    }

    fn each(&self, signature: impl Fn(&str) -> String) -> Vec<String> {
        [Some(&self.current), self.previous.as_ref()].into_iter().flatten().map(|key| signature(key)).collect()
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKeys")
    }
}

/// The parts of a call that its signature covers.
#[derive(Clone, Copy, Debug)]
pub struct SignedCall<'a> {
    /// The time, in seconds since 1970.
    pub timestamp: i64,
    /// The value of the `Host` header.
    pub host: &'a str,
    /// The path with the query.
    pub path: &'a str,
    pub idempotency_key: &'a str,
    /// The value of [`WEBHOOK_ID_HEADER`].
    pub webhook_id: &'a str,
    pub body: &'a [u8],
}

impl SignedCall<'_> {
    /// The signature under the key of a target: `v2=` and 64 lowercase hexadecimal digits.
    pub fn signature(&self, key: &str) -> String {
        let Self { timestamp, host, path, idempotency_key, body, .. } = self;
        let lines = format!("v2\n{timestamp}\nPOST\n{host}\n{path}\n{idempotency_key}\n");
        format!("v2={}", hex(&hmac_sha256(key, &[lines.as_bytes(), body])))
    }

    /// The signature of Standard Webhooks under the key of a target: `v1,` and 44 characters of base64.
    pub fn standard_signature(&self, key: &str) -> String {
        let Self { timestamp, webhook_id, body, .. } = self;
        let beginning = format!("{webhook_id}.{timestamp}.");
        format!("v1,{}", STANDARD.encode(hmac_sha256(key, &[beginning.as_bytes(), body])))
    }
}

/// The idempotency key of a call: the same for every call with these items in this order, and different for all others.
/// The service can recognise a repeated call by it.
pub fn idempotency_key<'a>(identifiers: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = identifiers.flat_map(|identifier| [identifier, "\n"]).collect();
    sha256_hex(lines.concat())
}

/// The id of a call for Standard Webhooks. Unlike the [`idempotency_key`], it tells a corrected row from the row before.
pub fn webhook_id(body: &[u8]) -> String {
    sha256_hex(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse battery staple";

    /// The key of `notify` under this secret: see the test of `webhook_key`.
    const KEY: &str = "860c72388dfe5e2b1cfa76d4bf21873f2dc20a23ce60cb7ba9083c8067c1de45";

    /// Made with `printf 'v2\n1700000000\nPOST\nexample.com:8443\n/hook?a=b\nk1\n{"a":1}' | openssl dgst -sha256 -hmac
    /// "$KEY"`.
    const SIGNED: &str = "v2=0037313cae6bf1fbcd589642e055b61be80c72dabcb64404fceb76163d7aecaa";

    const CALL: SignedCall<'_> = SignedCall {
        timestamp: 1_700_000_000,
        host: "example.com:8443",
        path: "/hook?a=b",
        idempotency_key: "k1",
        webhook_id: "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
        body: br#"{"a":1}"#,
    };

    /// Made with Python: `base64.b64encode(hmac.digest(base64.b64decode(secret[6:]), id + b".1700000000." + body,
    /// "sha256"))`, where `secret` is that of the test of `standard_secret`.
    const STANDARD_SIGNED: &str = "v1,7gN4NZaYyzN6+Haa8ZOiBFd2d3vE8uQes6vAQvC/qMQ=";

    fn keys(current: &str, previous: Option<&str>) -> SigningKeys {
        WebhookSecrets::new(current, previous).unwrap().keys_of("notify")
    }

    #[test]
    fn the_signature_is_the_one_that_openssl_computes() {
        assert_eq!(CALL.signature(KEY), SIGNED);
        assert_eq!(keys(SECRET, None).sign(&CALL), SIGNED);
    }

    #[test]
    fn the_standard_signature_is_the_one_that_python_computes_and_covers_id_time_and_body() {
        assert_eq!(keys(SECRET, None).sign_standard(&CALL), STANDARD_SIGNED);
        let others = [
            SignedCall { webhook_id: "k2", ..CALL },
            SignedCall { timestamp: 1_700_000_001, ..CALL },
            SignedCall { body: br#"{"a":2}"#, ..CALL },
        ];
        for other in others {
            assert_ne!(keys(SECRET, None).sign_standard(&other), STANDARD_SIGNED, "{other:?}");
        }
        assert_eq!(webhook_id(CALL.body), CALL.webhook_id, "the one that sha256sum computes");
    }

    #[test]
    fn the_signature_covers_time_host_path_idempotency_key_and_body() {
        let others = [
            SignedCall { timestamp: 1_700_000_001, ..CALL },
            SignedCall { host: "example.com", ..CALL },
            SignedCall { path: "/hook?a=c", ..CALL },
            SignedCall { idempotency_key: "k2", ..CALL },
            SignedCall { body: br#"{"a":2}"#, ..CALL },
        ];
        for other in others {
            assert_ne!(keys(SECRET, None).sign(&other), SIGNED, "{other:?}");
        }
    }

    #[test]
    fn each_target_has_a_key_of_its_own() {
        let secrets = WebhookSecrets::new(SECRET, None).unwrap();
        assert_ne!(secrets.keys_of("notify").sign(&CALL), secrets.keys_of("geocode").sign(&CALL));
    }

    #[test]
    fn during_a_rotation_a_call_is_signed_with_both_keys() {
        let (old, new) = (SECRET, "another secret of many characters");
        let both = keys(new, Some(old)).sign(&CALL);
        assert_eq!(both, format!("{},{SIGNED}", keys(new, None).sign(&CALL)));
        assert_eq!(both.split(',').filter(|signature| *signature == SIGNED).count(), 1, "the old key still fits");
        let standard = keys(new, Some(old)).sign_standard(&CALL);
        assert_eq!(standard, format!("{} {STANDARD_SIGNED}", keys(new, None).sign_standard(&CALL)));
    }

    #[test]
    fn a_short_secret_is_refused_and_a_short_previous_one_is_left_out() {
        assert_eq!(WebhookSecrets::new("fifteen chars..", Some(SECRET)).unwrap_err(), SecretTooShort);
        assert_eq!(keys(SECRET, Some("fifteen chars..")).sign(&CALL), SIGNED);
    }

    #[test]
    fn debug_output_hides_secrets_and_keys() {
        let secrets = WebhookSecrets::new(SECRET, Some(SECRET)).unwrap();
        assert_eq!(format!("{secrets:?}"), "WebhookSecrets");
        assert_eq!(format!("{:?}", secrets.keys_of("notify")), "SigningKeys");
    }

    #[test]
    fn calls_have_the_same_key_exactly_if_they_have_the_same_items() {
        let key = |identifiers: &[&str]| idempotency_key(identifiers.iter().copied());
        assert_eq!(key(&["j/1", "j/2"]), key(&["j/1", "j/2"]));
        let others = [key(&["j/1"]), key(&["j/2", "j/1"]), key(&["j/1", "j/2", "j/3"]), key(&["j/1j/2"])];
        assert!(others.iter().all(|other| *other != key(&["j/1", "j/2"]) && other.len() == 64));
    }
}
