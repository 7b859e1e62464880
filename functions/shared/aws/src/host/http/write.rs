use lambda_http::http::HeaderValue;
use lambda_http::{Body, Request, Response};
use rowmill_core::model::sha256::sha256_hex;
use serde::Serialize;

use super::response::response;
use super::{Problem, header};

/// An answer in JSON. Further headers go into the response it gives.
pub fn json_response(status: u16, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_string(body) {
        Ok(body) => response(status, [("content-type", "application/json".to_owned())], body),
        Err(error) => {
            tracing::error!(%error, "answer cannot be written as JSON");
            Problem::internal().into_response()
        }
    }
}

/// 204: an answer without a body.
pub fn no_content() -> Response<Body> {
    response(204, [], Body::Empty)
}

/// The same answer, with the advice to look again in a second.
pub fn to_be_polled(mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
    answer
}

pub fn etag_of(body: &[u8]) -> String {
    format!("\"{}\"", &sha256_hex(body)[..32])
}

/// Adds the ETag of the body to the answer. If the client has this body already, answers 304 without it.
pub fn with_etag(request: &Request, mut answer: Response<Body>, etag: &str) -> Response<Body> {
    let known = header(request, "if-none-match").unwrap_or_default();
    if let Ok(etag) = HeaderValue::try_from(etag) {
        answer.headers_mut().insert("etag", etag);
    }
    if known.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag) {
        // Header fields that a cache must know stay (RFC 9110, 15.4.5).
        let kept = ["etag", "cache-control", "vary"];
        let mut unchanged = response(304, [], Body::Empty);
        for (name, value) in answer.headers().iter().filter(|(name, _)| kept.contains(&name.as_str())) {
            unchanged.headers_mut().insert(name, value.clone());
        }
        return unchanged;
    }
    answer
}
