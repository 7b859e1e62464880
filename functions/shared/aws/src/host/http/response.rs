use lambda_http::{Body, Response};

/// An answer with these headers, which a browser takes for no other type. A header whose value HTTP does not allow is
/// left out.
pub fn response(
    status: u16,
    headers: impl IntoIterator<Item = (&'static str, String)>,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status.try_into().unwrap_or(lambda_http::http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers.into_iter().chain([("x-content-type-options", "nosniff".to_owned())]) {
        if let Ok(value) = value.try_into() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
