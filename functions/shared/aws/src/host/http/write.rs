use lambda_http::http::HeaderValue;
use lambda_http::{Body, Request, Response};
use rowmill_core::model::sha256::sha256_hex;
use serde::Serialize;

use super::response::response;
use super::{Problem, header};

/// An answer in JSON, which no cache keeps: it may have rows or presigned links. Further headers go into the response.
pub fn json_response(status: u16, body: &impl Serialize) -> Response<Body> {
    let headers = [("content-type", "application/json"), ("cache-control", "no-store")];
    match serde_json::to_string(body) {
        Ok(body) => response(status, headers.map(|(name, value)| (name, value.to_owned())), body),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cache_keeps_an_answer_in_json_unless_it_says_so_and_no_browser_guesses_a_type() {
        let mut answer = json_response(200, &"a row");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        answer.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
        let unchanged = with_etag(&known("\"1\""), answer, "\"1\"");
        assert_eq!(
            (unchanged.status().as_u16(), &unchanged.headers()["cache-control"]),
            (304, &"no-cache".parse().unwrap())
        );
        assert_eq!(Problem::internal().into_response().headers()["x-content-type-options"], "nosniff");
    }

    fn known(etag: &str) -> Request {
        let mut request = Request::default();
        request.headers_mut().insert("if-none-match", etag.parse().unwrap());
        request
    }
}
