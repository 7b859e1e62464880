//! S3 behind presigned requests: the stall timeout, and its error answers.

use std::time::Duration;

use crate::api::{is_transient, retry_after};
use crate::terminal::escape_controls;

/// A transfer without a byte for this long is aborted and retried.
pub(crate) const STALL_LIMIT: Duration = Duration::from_secs(60);

/// Timeout for the body of an error answer. The status is enough to decide; without the body the message is shorter.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer with an error status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StorageRefusal {
    pub status: u16,
    /// The reason given by the storage, safe to print.
    pub reason: String,
    pub retry_after: Option<Duration>,
}

impl StorageRefusal {
    /// Reads an answer whose status is an error.
    pub async fn read(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = tokio::time::timeout(REASON_TIMEOUT, response.text()).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        Self { status, reason: reason(&body), retry_after }
    }

    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        is_transient(self.status)
    }
}

/// Code and message of an S3 error document: `<Error><Code>…</Code><Message>…</Message></Error>`.
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
    fn the_message_of_an_s3_error_document_is_shown() {
        let body = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message>\
                    <RequestId>1</RequestId></Error>";
        assert_eq!(reason(body), "AccessDenied: Request has expired");
        assert_eq!(reason("oops"), "no reason given");
    }
}
