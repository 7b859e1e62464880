use std::time::Duration;

use jiff::Timestamp;
use lambda_http::{Body, Response};
use rowmill_api::problem::{PROBLEM_JSON, ProblemCode, ProblemView};
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::{Admission, Full, PortError};
use serde::Serialize;
use serde_json::{Map, Value};

use super::response::response;

/// `Retry-After` of an outage with an unknown cause.
const OUTAGE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Longest detail and field of a problem, in characters. They may quote a request, which may be longer than an answer
/// may be.
const QUOTED_MAX_CHARS: usize = 2000;

/// The `Retry-After` for a slot if too few jobs have ended to know the rate.
const UNKNOWN_DRAIN_SECONDS: u64 = 10;

/// A problem to be answered: see [`ProblemView`].
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    code: ProblemCode,
    view: Box<ProblemView>,
    members: Map<String, Value>,
    retry_after: Option<Duration>,
}

/// The members of [`ProblemView`], and `instance` of RFC 9457: a further member must have another name.
const VIEW_MEMBERS: [&str; 13] = [
    "type",
    "title",
    "status",
    "detail",
    "instance",
    "code",
    "field",
    "parameter",
    "reason",
    "line",
    "column",
    "limitBytes",
    "jobStatus",
];

impl Problem {
    /// A problem of this code, with its usual status. `detail` says what is wrong this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { code, view: Box::new(code.problem(shortened(detail.into()))), members: Map::new(), retry_after: None }
    }

    /// The same with another of the statuses that the code goes with.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        debug_assert!(self.code.statuses().contains(&status), "{} is no {status}", self.code.as_str());
        self.view.status = status;
        self.view.title = self.code.title(status).to_owned();
        self
    }

    /// 401: the caller is not known.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::Unauthorized, detail)
    }

    /// 403: an operator has blocked the caller.
    pub fn blocked(since: Timestamp) -> Self {
        let detail = format!(
            "The operator of this service has blocked your requests since {since}. Reading still works. Ask the operator."
        );
        Self::new(ProblemCode::OwnerBlocked, detail)
    }

    /// 404: there is no such resource, or it is somebody else's.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::NotFound, detail)
    }

    /// 404: the function has no route of this method and path. API Gateway itself answers requests that no route of the
    /// template matches, so a client sees this only if table and template differ.
    pub fn no_such_route() -> Self {
        Self::not_found("The API has no such method and path.")
    }

    /// 413: the body is too big.
    pub fn too_large(limit_bytes: u64, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(ProblemCode::BodyTooLarge, detail);
        problem.view.limit_bytes = Some(limit_bytes);
        problem
    }

    /// 415: the content type is not accepted.
    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::UnsupportedMediaType, detail)
    }

    /// 429 or 503: a limit of active jobs is reached. `Retry-After` is the time after which, at the rate at which jobs
    /// have been ending under this limit, one will have ended; at most `longest`.
    pub fn full(full: &Full, now: Timestamp, longest: Duration) -> Self {
        let longest = longest.as_secs().max(1);
        let wait = full.retry_after_seconds(now, UNKNOWN_DRAIN_SECONDS.min(longest), longest);
        let code = match full.admission {
            Admission::OwnerFull => ProblemCode::OwnerFull,
            Admission::TypeFull => ProblemCode::JobTypeFull,
            Admission::SystemFull => ProblemCode::SystemFull,
        };
        Self::new(code, full.admission.advice()).retry_after(Duration::from_secs(wait))
    }

    /// 500: Rowmill failed. The caller learns no more than that.
    pub fn internal() -> Self {
        let detail = "Rowmill could not carry out the request. Its log has the cause.";
        Self::new(ProblemCode::InternalError, detail)
    }

    /// With a further member, for a report that is not an answer of the API. Answers only have the members of
    /// [`ProblemView`].
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        debug_assert!(!VIEW_MEMBERS.contains(&name), "`{name}` is a member of every problem");
        self.members.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.view.field = Some(shortened(field.into()));
        self
    }

    #[must_use]
    pub fn parameter(mut self, name: &str) -> Self {
        self.view.parameter = Some(name.to_owned());
        self
    }

    /// With the reason why a file cannot be read.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.view.reason = Some(reason.to_owned());
        self
    }

    /// With the place in the body at which reading stopped.
    #[must_use]
    pub fn place(mut self, line: usize, column: usize) -> Self {
        (self.view.line, self.view.column) = (Some(line as u64), Some(column as u64));
        self
    }

    #[must_use]
    pub fn job_status(mut self, status: Status) -> Self {
        self.view.job_status = Some(status.into());
        self
    }

    /// With a time after which to try again.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub const fn status(&self) -> u16 {
        self.view.status
    }

    pub const fn code(&self) -> &'static str {
        self.code.as_str()
    }

    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Report<'a> {
            #[serde(flatten)]
            view: &'a ProblemView,
            #[serde(flatten)]
            members: &'a Map<String, Value>,
        }
        serde_json::to_string(&Report { view: &self.view, members: &self.members }).unwrap_or_default()
    }

    pub fn into_response(self) -> Response<Body> {
        let body = self.to_json();
        let mut headers = vec![("content-type", PROBLEM_JSON.to_owned())];
        if let Some(after) = self.retry_after {
            // Rounded up: a client that returns a moment early is refused again.
            headers.push(("retry-after", after.as_millis().div_ceil(1000).max(1).to_string()));
        }
        response(self.view.status, headers, body)
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(QUOTED_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Self {
        problem.into_response()
    }
}

/// The problem for the error of a port: without internals for the caller, with its causes in the log. A handler that
/// knows what `NotFound` or `Changed` mean maps them itself.
impl From<PortError> for Problem {
    fn from(error: PortError) -> Self {
        match &error {
            PortError::NotFound => Self::not_found("The resource does not exist, or it has expired."),
            PortError::Changed => Self::new(
                ProblemCode::Changed,
                "The resource changed while the request was carried out. Send the request again.",
            ),
            PortError::Unavailable { .. } => {
                tracing::warn!(error = &error as &dyn std::error::Error, "port unavailable");
                let detail = "A service that Rowmill needs is unavailable. Try again after the time in `Retry-After`.";
                Self::new(ProblemCode::Unavailable, detail).retry_after(OUTAGE_RETRY_AFTER)
            }
            // The adapter has reported it.
            PortError::Denied { .. } => Self::internal(),
            PortError::Invalid { .. } => {
                tracing::error!(error = &error as &dyn std::error::Error, "invalid answer of a port");
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
    fn a_problem_has_a_code_for_programs_and_a_detail_for_people() {
        let response = Problem::new(ProblemCode::InvalidJson, "line 3").place(3, 1).into_response();
        assert_eq!(response.status(), 400);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let expected = json!({
            "type": "about:blank", "title": "The request is not valid", "status": 400, "detail": "line 3",
            "code": "invalid_json", "line": 3, "column": 1,
        });
        assert_eq!(body(&response), expected);
    }

    #[test]
    fn a_problem_quotes_a_part_of_a_long_request() {
        let long = "ä".repeat(5_000_000);
        let problem = Problem::new(ProblemCode::InvalidBody, format!("unknown field `{long}`")).field(long);
        let body = body(&problem.into_response());
        assert!(body["detail"].as_str().unwrap().starts_with("unknown field `ää"), "{body}");
        assert!(body.to_string().len() < 10_000);
    }

    #[test]
    fn an_outage_is_a_503_with_retry_after() {
        let response = Problem::from(PortError::unavailable("reading the job", "connection refused")).into_response();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "5");
        assert!(!body(&response).to_string().contains("refused"));
    }

    #[test]
    fn a_missing_permission_is_a_500_that_does_not_ask_the_client_to_try_again() {
        let response = Problem::from(PortError::denied("reading the job", "dynamodb:GetItem")).into_response();
        assert_eq!(response.status(), 500);
        assert!(!response.headers().contains_key("retry-after"));
        assert!(!body(&response).to_string().contains("dynamodb"));
    }

    #[test]
    fn an_invalid_answer_of_a_port_is_a_500_without_internals() {
        let response = Problem::from(PortError::invalid("reading the job", "attribute `status`")).into_response();
        assert_eq!(response.status(), 500);
        assert!(!body(&response).to_string().contains("status`"));
    }
}
