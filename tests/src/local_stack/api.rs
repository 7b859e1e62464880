//! Requests to the API. Every answer must be one that the OpenAPI document lists.

use reqwest::header::HeaderMap;
use reqwest::{Body, Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::documented;

#[must_use = "a request does nothing before it is sent"]
pub struct ApiRequest {
    request: RequestBuilder,
    method: Method,
    path: String,
    is_documented: bool,
}

/// The API's answer, which the OpenAPI document lists.
#[derive(Debug)]
pub struct ApiAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl ApiRequest {
    /// The request that this builder makes. `path` may have a query.
    pub(super) fn new(request: RequestBuilder, method: Method, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default().to_owned();
        Self { request, method, path, is_documented: true }
    }

    /// The same request to another version, whose answers another document lists.
    pub(super) fn of_another_version(self) -> Self {
        Self { is_documented: false, ..self }
    }

    pub fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        Self { request: self.request.header(name, value.as_ref()), ..self }
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn json(self, body: &(impl Serialize + ?Sized)) -> Self {
        Self { request: self.request.json(body), ..self }
    }

    pub fn body(self, body: impl Into<Body>) -> Self {
        Self { request: self.request.body(body), ..self }
    }

    /// Sends the request.
    ///
    /// # Panics
    /// If the API does not answer, or if the OpenAPI document does not list the answer.
    pub async fn send(self) -> ApiAnswer {
        if !self.is_documented {
            return self.send_undocumented().await;
        }
        let (method, path) = (self.method.clone(), self.path.clone());
        let answer = self.send_undocumented().await;
        if let Err(wrong) = documented::check(&method, &path, &answer) {
            let text = String::from_utf8_lossy(&answer.body);
            let status = answer.status;
            panic!("{method} {path} is answered {status}, not as docs/openapi.json says: {wrong}\n{text}");
        }
        answer
    }

    /// Sends a request that API Gateway may answer itself. The document lists only what functions answer.
    ///
    /// # Panics
    /// If the API does not answer.
    pub async fn send_undocumented(self) -> ApiAnswer {
        let response = self.request.send().await.expect("the API answers");
        let (status, headers) = (response.status(), response.headers().clone());
        ApiAnswer { status, headers, body: response.bytes().await.expect("a body").to_vec() }
    }
}

impl ApiAnswer {
    /// The text of a header, if the answer has it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Sends a request; the status and the JSON of the answer.
pub async fn answer(request: ApiRequest) -> (StatusCode, Value) {
    let answer = request.send().await;
    let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_else(|_| text()))
}

/// Sends a request that must be accepted; the JSON of the answer.
pub async fn accepted(request: ApiRequest) -> Value {
    let (status, shown) = answer(request).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{shown}");
    shown
}

/// Sends a request that must be refused like this, as RFC 9457 says; the problem, and after how many seconds to come
/// back.
pub async fn refused(request: ApiRequest, status: StatusCode, code: &str) -> (Value, Option<u64>) {
    let answer = request.send().await;
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, status, "{text}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{text}");
    let problem: Value = answer.json();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status.as_u16())), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
    let retry_after = answer.header("retry-after").map(|seconds| seconds.parse().expect("whole seconds"));
    (problem, retry_after)
}
