use std::fmt::Display;
use std::str::FromStr;

use lambda_http::{Request, RequestExt};
use rowmill_api::problem::ProblemCode;
use rowmill_core::text::{RESERVED_NAMES, has_reserved_name};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use super::Problem;

/// The maximum length of a JSON body, unless its route takes more. Longer content is a file and belongs into an upload.
pub const JSON_MAX_BYTES: usize = 256 * 1024;

/// A header's value, if it is there and is text.
pub fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// The media type of the body in lower case, without parameters.
pub fn content_type(request: &Request) -> Option<String> {
    let value = header(request, "content-type")?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Reads the body as JSON.
///
/// # Errors
/// 415 if its content type is not JSON, 413 if it is longer than [`JSON_MAX_BYTES`], 400 if it is not JSON
/// (`invalid_json`, with line and column) or not what is expected (`invalid_body`).
pub fn read_json<T: DeserializeOwned>(request: &Request) -> Result<T, Problem> {
    read_json_up_to(request, JSON_MAX_BYTES)
}

pub fn read_json_up_to<T: DeserializeOwned>(request: &Request, max_bytes: usize) -> Result<T, Problem> {
    let content_type = content_type(request).unwrap_or_default();
    if content_type != "application/json" && !content_type.ends_with("+json") {
        let said = if content_type.is_empty() { "none" } else { &content_type };
        return Err(Problem::unsupported_media_type(format!(
            "The content type must be application/json; it is {said}."
        )));
    }
    let body: &[u8] = request.body().as_ref();
    if body.len() > max_bytes {
        let detail = format!("The body has {} bytes; at most {max_bytes} are allowed.", body.len());
        return Err(Problem::too_large(max_bytes as u64, detail));
    }
    if has_reserved_name(body) {
        let detail = format!("A field has a name that begins with `{RESERVED_NAMES}`. Rename it.");
        return Err(Problem::new(ProblemCode::InvalidBody, detail));
    }
    // A list of the fields' values would be read too.
    if !body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
        return Err(Problem::new(ProblemCode::InvalidBody, "The body must be a JSON object."));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        let problem = match error.classify() {
            Category::Data if path == "." => Problem::new(ProblemCode::InvalidBody, error.to_string()),
            Category::Data => Problem::new(ProblemCode::InvalidBody, format!("{path}: {error}")).field(path),
            Category::Syntax | Category::Eof | Category::Io => {
                Problem::new(ProblemCode::InvalidJson, error.to_string())
            }
        };
        problem.place(error.line(), error.column())
    })?;
    deserializer.end().map_err(|error| Problem::new(ProblemCode::InvalidJson, error.to_string()))?;
    Ok(read)
}

/// Reads a body that may be left out.
pub fn read_json_if_any<T: DeserializeOwned + Default>(request: &Request) -> Result<T, Problem> {
    if request.body().is_empty() { Ok(T::default()) } else { read_json(request) }
}

/// A part of the path. One that cannot be read names nothing.
pub fn path_parameter<T: FromStr>(request: &Request, name: &str) -> Result<T, Problem> {
    let parameters = request.path_parameters_ref();
    let value = parameters.and_then(|parameters| parameters.first(name)).unwrap_or_default();
    value.parse().map_err(|_| Problem::not_found(format!("`{value}` is not a {name}.")))
}

/// A parameter of the query, if present. `expected` says what it must be.
///
/// # Errors
/// 400 (`invalid_query`).
pub fn query_parameter<T: FromStr>(request: &Request, name: &str, expected: &str) -> Result<Option<T>, Problem> {
    let parameters = request.query_string_parameters_ref();
    let value = parameters.and_then(|parameters| parameters.first(name)).filter(|value| !value.is_empty());
    let wrong = |value| {
        let detail = format!("The query parameter `{name}` must be {expected}; it is `{value}`.");
        Problem::new(ProblemCode::InvalidQuery, detail).parameter(name)
    };
    value.map(|value| value.parse().map_err(|_| wrong(value))).transpose()
}

/// The query parameter `limit`: the most entries of a page, from 1 to `max`.
///
/// # Errors
/// 400 (`invalid_query`).
pub fn page_limit(request: &Request, default: usize, max: usize) -> Result<usize, Problem> {
    let limit = query_parameter(request, "limit", "a number")?.unwrap_or_else(|| default.min(max));
    if (1..=max).contains(&limit) { Ok(limit) } else { Err(invalid_query("limit", format!("must be from 1 to {max}"))) }
}

/// The problem with a parameter of the query. `expected` is the rest of the sentence that begins with its name.
pub fn invalid_query(name: &str, expected: impl Display) -> Problem {
    Problem::new(ProblemCode::InvalidQuery, format!("The query parameter `{name}` {expected}.")).parameter(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Body;
    use lambda_http::http::Request as HttpRequest;
    use serde::Deserialize;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        size: u64,
    }

    fn request(content_type: &str, body: impl Into<Body>) -> Request {
        HttpRequest::builder().header("content-type", content_type).body(body.into()).unwrap()
    }

    #[test]
    fn json_is_read_regardless_of_the_parameters_of_its_content_type() {
        let body = r#"{"size": 3}"#;
        for content_type in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert_eq!(read_json::<Wanted>(&request(content_type, body)).unwrap(), Wanted { size: 3 });
        }
        assert_eq!(read_json::<Wanted>(&request("text/csv", body)).unwrap_err().status(), 415);
        let untyped = HttpRequest::new(Body::from(body));
        assert_eq!(read_json::<Wanted>(&untyped).unwrap_err().status(), 415);
    }

    #[test]
    fn invalid_json_is_distinguished_from_an_invalid_body() {
        let code = |body: &str| read_json::<Wanted>(&request("application/json", body)).unwrap_err().code();
        assert_eq!(code("{\"size\": 3"), "invalid_json");
        assert_eq!(code(""), "invalid_json");
        assert_eq!(code("{\"size\": \"three\"}"), "invalid_body");
        assert_eq!(code("{\"size\": 3, \"more\": 1}"), "invalid_body");
        assert_eq!(code("{}"), "invalid_body");
        assert_eq!(code("[3]"), "invalid_body");
        assert_eq!(code("{\"size\": 3} {"), "invalid_json");
        assert_eq!(code("[3"), "invalid_json");
        for hidden in
            [r#"{"size":3,"$serde_json::private::Number":"x"}"#, r#"{"\u0024serde_json::private::RawValue":"[]"}"#]
        {
            let problem = read_json::<Wanted>(&request("application/json", hidden)).unwrap_err();
            assert!(problem.to_json().contains("Rename it."), "{hidden}: {}", problem.to_json());
        }
        for other in ["[3]", " null", "3", "\"size\""] {
            let problem = read_json::<Wanted>(&request("application/json", other)).unwrap_err();
            assert!(problem.to_json().contains("The body must be a JSON object."), "{other}");
        }
    }

    #[test]
    fn a_body_over_the_limit_is_not_read() {
        let body = vec![b' '; JSON_MAX_BYTES + 1];
        let request = request("application/json", body);
        assert_eq!(read_json::<Wanted>(&request).unwrap_err().status(), 413);
        let more = read_json_up_to::<Wanted>(&request, JSON_MAX_BYTES + 1).unwrap_err();
        assert_eq!(more.status(), 400, "a route may take more");
    }

    #[test]
    fn an_invalid_parameter_is_rejected_and_a_missing_query_parameter_is_none() {
        let request = request("application/json", "")
            .with_path_parameters(
                [("jobGuid".to_owned(), "x".to_owned())].into_iter().collect::<std::collections::HashMap<_, _>>(),
            )
            .with_query_string_parameters(
                [("limit".to_owned(), "5".to_owned()), ("page".to_owned(), "five".to_owned())]
                    .into_iter()
                    .collect::<std::collections::HashMap<_, _>>(),
            );
        assert_eq!(path_parameter::<u32>(&request, "jobGuid").unwrap_err().status(), 404);
        assert_eq!(query_parameter::<u32>(&request, "limit", "a number").unwrap(), Some(5));
        assert_eq!(query_parameter::<u32>(&request, "after", "a number").unwrap(), None);
        let problem = query_parameter::<u32>(&request, "page", "a number").unwrap_err();
        assert_eq!((problem.status(), problem.code()), (400, "invalid_query"));
    }
}
