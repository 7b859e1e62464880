//! From a function's answer to an HTTP response.

use std::collections::BTreeMap;
use std::error::Error;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// Headers that belong to one connection. The gateway writes its own: those of a function would contradict the body.
const CONNECTION_HEADERS: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, HeaderName::from_static("keep-alive"), TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Answer of a function to an HTTP API.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FunctionAnswer {
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    multi_value_headers: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    cookies: Vec<String>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// The response that a function's answer stands for.
pub fn response(payload: &[u8]) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
    let answer: FunctionAnswer = serde_json::from_slice(payload).map_err(|error| place_of(&error))?;
    // An informational status is no answer, and no class of status begins at 600.
    if !(200..600).contains(&answer.status_code) {
        return Err(format!("{} is not the status of an answer", answer.status_code).into());
    }
    let text = answer.body.unwrap_or_default();
    let body = if answer.is_base64_encoded { BASE64_STANDARD.decode(text)?.into() } else { Bytes::from(text) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status_code)?;
    let headers = response.headers_mut();
    for (name, values) in &answer.multi_value_headers {
        for value in values {
            headers.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
    }
    for (name, value) in &answer.headers {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
    }
    for cookie in &answer.cookies {
        headers.append(SET_COOKIE, HeaderValue::try_from(cookie)?);
    }
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
    Ok(response)
}

/// The place of a mistake in JSON. The parser's own text may show a part of the answer, with rows in it.
fn place_of(error: &serde_json::Error) -> String {
    format!("its JSON is wrong at line {}, column {}", error.line(), error.column())
}

/// An answer of the gateway itself, in API Gateway's form: `{"message": …}`.
pub fn message(status: StatusCode, text: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(json!({ "message": text }).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_a_response() {
        let answer = json!({"statusCode": 201, "headers": {"content-type": "text/csv", "x-count": 7},
            "multiValueHeaders": {"content-type": ["text/csv"], "x-more": ["1", "2"]}, "cookies": ["a=b"],
            "body": "Yf8=", "isBase64Encoded": true});
        let response = response(answer.to_string().as_bytes()).unwrap();
        assert_eq!((response.status(), response.body().as_ref()), (StatusCode::CREATED, &b"a\xff"[..]));
        let values = |name| -> Vec<&str> {
            response.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!((values("content-type"), values("x-count")), (vec!["text/csv"], vec!["7"]));
        assert_eq!((values("x-more"), values("set-cookie")), (vec!["1", "2"], vec!["a=b"]));
    }

    #[test]
    fn a_function_does_not_decide_over_the_connection() {
        for (name, value) in [("Content-Length", "7"), ("Transfer-Encoding", "chunked"), ("Connection", "upgrade")] {
            let answer = json!({"statusCode": 200, "headers": {name: value}, "multiValueHeaders": {name: [value]},
                "body": "abc"});
            let response = response(answer.to_string().as_bytes()).unwrap();
            assert!(response.headers().is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_no_response_is_an_error() {
        for wrong in
            ["", "7", r#"{"body": "x"}"#, r#"{"statusCode": 7}"#, r#"{"statusCode": 200, "headers": {"a b": ""}}"#]
        {
            assert!(response(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for status in [100, 101, 199, 600, 999] {
            assert!(response(json!({ "statusCode": status }).to_string().as_bytes()).is_err(), "{status}");
        }
        let broken = r#"{"statusCode": 200, "body": "!", "isBase64Encoded": true}"#;
        assert!(response(broken.as_bytes()).is_err());
    }

    #[test]
    fn an_error_does_not_show_the_answer() {
        let error = response(br#"{"statusCode": "secret row"}"#).unwrap_err().to_string();
        assert_eq!(error, "its JSON is wrong at line 1, column 27");
    }
}
