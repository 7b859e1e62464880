//! The event that an HTTP API sends to a function: payload format 2.0.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use jiff::Timestamp;
use reqwest::Url;
use rowmill_api::routes::Route;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The event of a request that this route answers. `parameters` are the decoded parameters of its path.
pub fn event(
    request: &Request<Bytes>,
    route: &Route,
    parameters: &[(&'static str, String)],
    authorizer: Option<&Value>,
) -> Value {
    let (uri, headers, now) = (request.uri(), request.headers(), Timestamp::now());
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let route_key = format!("{} {}", route.method, route.path);
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": uri.path(),
        "rawQueryString": uri.query().unwrap_or_default(),
        "headers": joined(headers),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "rowmill-gateway",
            "domainName": text(HOST),
            "domainPrefix": "",
            "http": {
                "method": request.method().as_str(),
                "path": uri.path(),
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": text(USER_AGENT),
            },
            "requestId": Uuid::new_v4(),
            "routeKey": route_key,
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string(),
            "timeEpoch": now.as_millisecond(),
        },
        "isBase64Encoded": false,
    });
    if let Some(query) = uri.query().and_then(query_parameters) {
        event["queryStringParameters"] = query;
    }
    if !parameters.is_empty() {
        event["pathParameters"] = parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    }
    if let Some(authorizer) = authorizer {
        event["requestContext"]["authorizer"] = authorizer.clone();
    }
    if !request.body().is_empty() {
        let is_text = is_text(text(CONTENT_TYPE));
        event["isBase64Encoded"] = json!(!is_text);
        event["body"] = match is_text {
            // API Gateway replaces bytes that are not UTF-8. The functions notice by the length, and refuse the body.
            true => json!(String::from_utf8_lossy(request.body())),
            false => json!(BASE64_STANDARD.encode(request.body())),
        };
    }
    event
}

/// True if API Gateway passes a body of this content type on as text.
fn is_text(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type.starts_with("text/")
        || matches!(media_type.as_str(), "application/json" | "application/javascript" | "application/xml")
}

/// Every header by its name in lower case. Several of the same name are joined by commas.
fn joined(headers: &HeaderMap) -> Value {
    let value = |name| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        values.collect::<Vec<_>>().join(",")
    };
    headers.keys().map(|name| (name.as_str().to_owned(), json!(value(name)))).collect()
}

/// The decoded parameters of a query. Several of the same name are joined by commas.
fn query_parameters(query: &str) -> Option<Value> {
    let mut url = Url::parse("http://localhost").expect("a URL");
    url.set_query(Some(query));
    let mut parameters = Map::new();
    for (name, value) in url.query_pairs() {
        match parameters.get_mut(&*name) {
            Some(Value::String(values)) => {
                values.push(',');
                values.push_str(&value);
            }
            _ => drop(parameters.insert(name.into_owned(), json!(value))),
        }
    }
    (!parameters.is_empty()).then_some(Value::Object(parameters))
}

#[cfg(test)]
mod tests {
    use rowmill_api::routes::find;

    use super::*;

    fn event_of(request: hyper::http::request::Builder, body: &'static [u8]) -> Value {
        let request = request.body(Bytes::from_static(body)).unwrap();
        let (route, parameters) = find(request.method().as_str(), request.uri().path()).unwrap();
        event(&request, route, &parameters, None)
    }

    #[test]
    fn an_event_has_the_parts_of_its_request() {
        let request = Request::get("/api/jobs/a%2Fb/items?outcome=failed&limit=7&limit=8&after=%C3%A4")
            .header("X-Twice", "1")
            .header("x-twice", "2");
        let event = event_of(request, b"");
        assert_eq!(event["routeKey"], "GET /api/jobs/{jobGuid}/items");
        assert_eq!(event["rawPath"], "/api/jobs/a%2Fb/items");
        assert_eq!(event["pathParameters"], json!({"jobGuid": "a/b"}));
        assert_eq!(event["queryStringParameters"], json!({"outcome": "failed", "limit": "7,8", "after": "ä"}));
        assert_eq!(event["headers"], json!({"x-twice": "1,2"}));
        assert_eq!((&event["body"], &event["requestContext"]["authorizer"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn a_body_is_text_by_its_type_and_base64_otherwise() {
        let post = |content_type: &str| Request::post("/api/uploads").header("content-type", content_type);
        let text = event_of(post("Text/CSV; charset=utf-8"), b"a\xff");
        assert_eq!((&text["body"], &text["isBase64Encoded"]), (&json!("a\u{fffd}"), &json!(false)));
        let binary = event_of(post("application/octet-stream"), b"a\xff");
        assert_eq!((&binary["body"], &binary["isBase64Encoded"]), (&json!("Yf8="), &json!(true)));
    }

    #[test]
    fn the_caller_stands_where_an_authorizer_puts_it() {
        let request = Request::get("/api/jobs").body(Bytes::new()).unwrap();
        let (route, parameters) = find("GET", "/api/jobs").unwrap();
        let authorizer = json!({"jwt": {"claims": {"sub": "user-7"}}});
        let event = event(&request, route, &parameters, Some(&authorizer));
        assert_eq!(event["requestContext"]["authorizer"], authorizer);
    }
}
