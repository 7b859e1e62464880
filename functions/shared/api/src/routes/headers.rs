//! Headers of answers.

/// A header of an answer.
#[derive(Clone, Copy, Debug)]
pub struct AnswerHeader {
    pub name: &'static str,
    /// True if every answer of this kind has it.
    pub required: bool,
    pub description: &'static str,
    /// JSON Schema, as JSON text.
    pub schema: &'static str,
}

/// The limits of requests, on every answer to a request that was counted.
pub const RATE_LIMIT_POLICY: AnswerHeader = AnswerHeader {
    name: "RateLimit-Policy",
    required: true,
    description: "How many requests (`q`) the caller may send to this route in so many seconds (`w`), as in \
                  draft-ietf-httpapi-ratelimit-headers.",
    schema: r#"{"type": "string", "pattern": "^\"minute\";q=\\d+;w=60, \"hour\";q=\\d+;w=3600$"}"#,
};

/// The rest of the limits, on the same answers.
pub const RATE_LIMIT: AnswerHeader = AnswerHeader {
    name: "RateLimit",
    required: true,
    description: "How many requests are left (`r`), and in how many seconds all are there again (`t`).",
    schema: r#"{"type": "string", "pattern": "^\"minute\";r=\\d+;t=\\d+, \"hour\";r=\\d+;t=\\d+$"}"#,
};

/// The time of the next try after a problem.
pub const RETRY_AFTER: AnswerHeader = AnswerHeader {
    name: "Retry-After",
    required: true,
    description: "Seconds after which to try again.",
    schema: r#"{"type": "integer", "minimum": 1}"#,
};

/// The time of the next look, on jobs that have not ended.
pub(super) const POLL_AFTER: AnswerHeader = AnswerHeader {
    name: "Retry-After",
    required: false,
    description: "Seconds after which to look again. Left out if the job has ended.",
    schema: r#"{"type": "integer", "minimum": 1}"#,
};

/// Where a new job is.
pub(super) const LOCATION: AnswerHeader = AnswerHeader {
    name: "Location",
    required: true,
    description: "The path of the job.",
    schema: r#"{"type": "string", "pattern": "^/api/jobs/[0-9a-f-]{36}$"}"#,
};

pub(super) const ETAG: AnswerHeader = AnswerHeader {
    name: "ETag",
    required: true,
    description: "The answer's entity tag. Send it as `If-None-Match` to get 304 while nothing has changed.",
    schema: r#"{"type": "string", "pattern": "^\"[0-9a-f]{32}\"$"}"#,
};
