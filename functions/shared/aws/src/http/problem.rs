use std::time::Duration;

use jiff::Timestamp;
use lambda_http::{Body, Response};
use rowmill_core::ports::{Admission, Full, PortError};
use serde::Serialize;
use serde_json::{Map, Value};

use super::write::response;

/// How long a client is asked to wait when the cause of an outage is unknown.
const OUTAGE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// How long a client is asked to wait for a slot where too few jobs have ended yet to tell.
const UNKNOWN_DRAIN_SECONDS: u64 = 10;

/// What is wrong with a request, or with us, as RFC 9457 says it: a stable code for programs, a detail for people.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    status: u16,
    code: &'static str,
    title: &'static str,
    detail: String,
    members: Map<String, Value>,
    retry_after: Option<Duration>,
}

impl Problem {
    /// A problem of this kind. `title` is the same for every problem of one code; `detail` says what is wrong this time.
    pub fn new(status: u16, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, title, detail: detail.into(), members: Map::new(), retry_after: None }
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(400, code, "The request is not valid", detail)
    }

    /// 401: nobody vouches for the caller.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(401, "unauthorized", "The caller is not known", detail)
    }

    /// 404: there is no such thing, or it is somebody else's.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(404, "not_found", "There is no such thing", detail)
    }

    /// 409: it does not fit the state the thing is in.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(409, code, "The request does not fit the present state", detail)
    }

    /// 413: the body is too big.
    pub fn too_large(limit_bytes: u64, detail: impl Into<String>) -> Self {
        Self::new(413, "body_too_large", "The body is too big", detail).with("limitBytes", limit_bytes)
    }

    /// 415: the body is of the wrong type.
    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(415, "unsupported_media_type", "The body is of a type not taken here", detail)
    }

    /// 422: well-formed, and still not to be done.
    pub fn unprocessable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(422, code, "The request cannot be carried out", detail)
    }

    /// 429: the caller has as much as a caller may have.
    pub fn too_many(code: &'static str, detail: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(429, code, "Too much at once", detail).retry_after(retry_after)
    }

    /// 503: not now.
    pub fn unavailable(code: &'static str, detail: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(503, code, "Not available just now", detail).retry_after(retry_after)
    }

    /// 429 or 503: a ceiling of active jobs is reached. The client is told to come back when, as jobs have been ending under
    /// this ceiling, one will have; at most `longest` from now.
    pub fn full(full: &Full, now: Timestamp, longest: Duration) -> Self {
        let longest = longest.as_secs().max(1);
        let wait = full.retry_after_seconds(now, UNKNOWN_DRAIN_SECONDS.min(longest), longest);
        let (detail, wait) = (full.admission.advice(), Duration::from_secs(wait));
        match full.admission {
            Admission::OwnerFull => Self::too_many("owner_full", detail, wait),
            Admission::TypeFull => Self::unavailable("job_type_full", detail, wait),
            Admission::SystemFull => Self::unavailable("system_full", detail, wait),
        }
    }

    /// 500: our fault, of which the caller learns no more than that.
    pub fn internal() -> Self {
        Self::new(500, "internal_error", "Something went wrong on our side", "the request could not be carried out")
    }

    /// With a further member, of a name that RFC 9457 does not use.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        debug_assert!(!["type", "title", "status", "detail", "instance", "code"].contains(&name), "{name} is taken");
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// With a time after which trying again may help.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Its HTTP status.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Its stable code.
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// The document that says it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&Document::of(self)).unwrap_or_default()
    }

    /// The answer that says it.
    pub fn into_response(self) -> Response<Body> {
        let body = self.to_json();
        let mut headers = vec![("content-type", "application/problem+json".to_owned())];
        if let Some(after) = self.retry_after {
            // Rounded up: a client that comes back a moment early is sent away again.
            headers.push(("retry-after", after.as_millis().div_ceil(1000).max(1).to_string()));
        }
        response(self.status, headers, body)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    #[serde(flatten)]
    members: &'a Map<String, Value>,
}

impl<'a> Document<'a> {
    fn of(problem: &'a Problem) -> Self {
        let Problem { status, code, title, detail, members, .. } = problem;
        // No page per kind of problem: the code tells them apart.
        Self { r#type: "about:blank", title, status: *status, detail, code, members }
    }
}

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Self {
        problem.into_response()
    }
}

/// What a port could not do, told to the caller without internals and to the log with its causes. Where `NotFound` or
/// `Changed` mean something closer, the handler maps them itself.
impl From<PortError> for Problem {
    fn from(error: PortError) -> Self {
        match &error {
            PortError::NotFound => Self::not_found("there is no such thing"),
            PortError::Changed => Self::conflict("changed", "it was changed meanwhile"),
            PortError::Unavailable { .. } => {
                tracing::warn!(error = &error as &dyn std::error::Error, "port unavailable");
                Self::unavailable("unavailable", "try again in a moment", OUTAGE_RETRY_AFTER)
            }
            PortError::Invalid { .. } => {
                tracing::error!(error = &error as &dyn std::error::Error, "port answered what it should not");
                Self::internal()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(response: &Response<Body>) -> Value {
        serde_json::from_slice(response.body().as_ref()).unwrap()
    }

    #[test]
    fn a_problem_says_what_is_wrong_to_programs_and_to_people() {
        let response = Problem::bad_request("invalid_json", "line 3").with("line", 3).into_response();
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let expected = json!({
            "type": "about:blank", "title": "The request is not valid", "status": 400, "detail": "line 3",
            "code": "invalid_json", "line": 3,
        });
        assert_eq!(body(&response), expected);
    }

    #[test]
    fn an_outage_is_a_503_that_says_when_to_come_back() {
        let response = Problem::from(PortError::unavailable("reading the job", "connection refused")).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "5");
        assert!(!body(&response).to_string().contains("refused"));
    }

    #[test]
    fn what_is_not_understood_is_our_fault_and_tells_no_internals() {
        let response = Problem::from(PortError::invalid("reading the job", "attribute `status`")).into_response();
        assert_eq!(response.status(), 500);
        assert!(!body(&response).to_string().contains("status`"));
    }
}
