//! The storage behind presigned requests: how long its silence is borne, and what it says when it refuses.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::RETRY_AFTER;

use crate::api::{is_transient, parse_retry_after};
use crate::terminal::escape_controls;

/// A transfer in which nothing moves for this long is given up and tried again.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(60);

/// The status decides; an error's words that do not arrive in time only make the message shorter.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer of the storage with an error status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorageRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The storage's words, safe to print.
    pub reason: String,
    /// How long it asked to wait before another try.
    pub retry_after: Option<Duration>,
}

impl StorageRefusal {
    /// Reads an answer whose status is an error.
    pub async fn read(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| parse_retry_after(value, Timestamp::now()));
        let body = tokio::time::timeout(REASON_TIMEOUT, response.text()).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        Self { status, reason: reason(&body), retry_after }
    }

    /// Whether the same request may be answered otherwise a little later.
    pub fn is_transient(&self) -> bool {
        is_transient(self.status)
    }
}

/// What an S3 error document says: `<Error><Code>…</Code><Message>…</Message></Error>`.
fn reason(body: &str) -> String {
    let element = |name: &str| {
        let start = body.find(&format!("<{name}>"))? + name.len() + 2;
        let length = body[start..].find(&format!("</{name}>"))?;
        Some(&body[start..start + length])
    };
    let text = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => "no reason given".to_owned(),
    };
    escape_controls(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_s3_error_document_is_shown_in_its_own_words() {
        let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message>\
                    <RequestId>1</RequestId></Error>";
        assert_eq!(reason(body), "AccessDenied: Request has expired");
        assert_eq!(reason("oops"), "no reason given");
    }
}
