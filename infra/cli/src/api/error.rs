//! Errors between this command and the API, in words for the person at the terminal.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use rowmill_api::problem::{ProblemCode, ProblemView};
use rowmill_core::words::Open;
use serde::Deserialize;

use crate::gateway::InvokeError;
use crate::terminal::{escape_controls, innermost};

/// Why a call of the API gave no answer to work with.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The base URL cannot be used; the caller must give another one.
    #[error("`{base}` cannot be used as the API's address: {reason}")]
    Address {
        /// The address as given.
        base: String,
        reason: String,
    },
    /// No HTTP client could be made, for want of certificates for instance.
    #[error("cannot set up HTTPS: {}", innermost(.0))]
    Client(#[source] reqwest::Error),
    /// No connection, or it broke before the answer was complete.
    #[error("cannot reach the API at {origin} ({call}): {}", innermost(.source))]
    Unreachable {
        call: &'static str,
        /// Scheme, host and port of the API.
        origin: String,
        #[source]
        source: reqwest::Error,
    },
    /// A connection, but no complete answer in time.
    #[error("the API at {origin} gave no answer within {} s ({call})", .within.as_secs_f32())]
    TimedOut {
        call: &'static str,
        /// Scheme, host and port of the API.
        origin: String,
        within: Duration,
    },
    /// No function answered.
    #[error("{call}: {source}")]
    Invoke {
        call: &'static str,
        #[source]
        source: Box<InvokeError>,
    },
    /// The request cannot be sent, because of a content type with a line break for instance.
    #[error("the request cannot be sent ({call}): {source}")]
    Unsendable {
        call: &'static str,
        #[source]
        source: hyper::http::Error,
    },
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The API said yes in a form this command does not know.
    #[error("the API's answer cannot be read ({call}): {source}; is this the address of Rowmill?")]
    Unreadable {
        call: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

impl ApiError {
    /// True if the same call may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source.is_builder(),
            Self::TimedOut { .. } => true,
            Self::Invoke { source, .. } => source.is_transient(),
            Self::Refused(refusal) => super::retry::is_transient(refusal.status.as_u16()),
            Self::Address { .. } | Self::Client(_) | Self::Unsendable { .. } | Self::Unreadable { .. } => false,
        }
    }

    /// True if it is the API's refusal with this code.
    pub fn is(&self, code: ProblemCode) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code.as_ref().is_some_and(|found| *found == code))
    }

    /// Wait before another try that the API asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }
}

/// An answer with an error status, read from `application/problem+json` where it is that.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub call: &'static str,
    pub status: StatusCode,
    /// The stable code, such as `unknown_upload`, if the answer named one.
    pub code: Option<Open<ProblemCode>>,
    /// The fault, in the API's words.
    pub detail: String,
    pub retry_after: Option<Duration>,
}

/// A gateway's own errors (`{"message": "Unauthorized"}`) are no problem documents.
#[derive(Deserialize)]
struct GatewayMessage {
    message: String,
}

impl Refusal {
    /// Reads an error answer of any form. The result is always safe to print.
    pub fn read(call: &'static str, status: StatusCode, body: &[u8], retry_after: Option<Duration>) -> Self {
        let (code, detail) = match serde_json::from_slice::<ProblemView>(body) {
            Ok(problem) => (Some(problem.code), Some(problem.detail)),
            Err(_) => (None, gateway_message(body)),
        };
        let detail = escape_controls(&detail.unwrap_or_else(|| hint(status).to_owned()));
        Self { call, status, code, detail, retry_after }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail.trim_end_matches('.');
        write!(f, "{}: {detail} (HTTP {}", self.call, self.status.as_u16())?;
        if let Some(code) = &self.code {
            write!(f, ", {}", escape_controls(code.as_str()))?;
        }
        f.write_str(")")?;
        if let Some(wait) = self.retry_after {
            write!(f, "; try again in {} s", wait.as_secs())?;
        }
        Ok(())
    }
}

fn gateway_message(body: &[u8]) -> Option<String> {
    if let Ok(GatewayMessage { message }) = serde_json::from_slice(body) {
        return Some(message);
    }
    let text: String = String::from_utf8_lossy(body).trim().chars().take(200).collect();
    (!text.is_empty()).then_some(text)
}

/// The usual meaning of an answer without words.
fn hint(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "a valid token is needed in ROWMILL_TOKEN",
        403 => "the token in ROWMILL_TOKEN does not allow this",
        404 => "not found",
        301..=308 => "the API redirects, give its final address",
        _ => status.canonical_reason().unwrap_or("no reason given"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        Refusal::read("create job", status, body.as_bytes(), None).to_string()
    }

    #[test]
    fn a_problem_document_is_shown_with_its_detail_and_code() {
        let body = r#"{"type":"about:blank","title":"Not Found","status":404,"later":1,
            "detail":"There is no upload 42.","code":"of_a_later_version"}"#;
        let expected = "create job: There is no upload 42 (HTTP 404, of_a_later_version)";
        assert_eq!(read(404, body), expected);
    }

    #[test]
    fn other_error_bodies_are_shown_as_far_as_they_say_something() {
        let unauthorized = "create job: Unauthorized (HTTP 401)";
        assert_eq!(read(401, r#"{"message":"Unauthorized"}"#), unauthorized);
        assert_eq!(read(502, "<h1>bad</h1>\n"), "create job: <h1>bad</h1> (HTTP 502)");
        assert!(read(401, "").contains("ROWMILL_TOKEN"));
        assert_eq!(read(500, "{}"), "create job: {} (HTTP 500)");
    }

    #[test]
    fn an_error_text_cannot_drive_the_terminal() {
        let problem = ProblemView {
            code: Open::Other("\u{1b}[1m".to_owned()),
            ..ProblemCode::NotFound.problem("\u{1b}[2J gone")
        };
        let shown = read(400, &serde_json::to_string(&problem).unwrap());
        assert!(shown.contains("gone") && !shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn the_error_shows_the_retry_after() {
        let wait = Some(Duration::from_secs(90));
        let status = StatusCode::TOO_MANY_REQUESTS;
        let refusal = Refusal::read("create job", status, b"", wait);
        assert!(refusal.to_string().ends_with("; try again in 90 s"), "{refusal}");
    }
}
