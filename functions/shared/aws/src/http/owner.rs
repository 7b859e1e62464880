use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use rowmill_core::model::ids::Owner;
use serde_json::Value;

use super::Problem;

/// The owner of a request: the `sub` claim that API Gateway's authorizer verified, or [`Owner::LOCAL`] if the API has no
/// authorizer.
///
/// HTTP APIs send the claims in payload 2.0. REST APIs, and HTTP APIs in payload 1.0, send them in another place.
///
/// # Errors
/// 401 if there is an authorizer and it names no usable subject, or if the event is of another format.
pub fn owner_of(request: &Request) -> Result<Owner, Problem> {
    let subject = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => match &context.authorizer {
            None => return Ok(Owner(Owner::LOCAL.to_owned())),
            Some(authorizer) => authorizer.jwt.as_ref().and_then(|jwt| jwt.claims.get("sub")).map(String::as_str),
        },
        // Without an authorizer, payload 1.0 has none of these fields, or nulls.
        Some(RequestContext::ApiGatewayV1(context)) if context.authorizer.fields.values().all(Value::is_null) => {
            return Ok(Owner(Owner::LOCAL.to_owned()));
        }
        Some(RequestContext::ApiGatewayV1(context)) => {
            context.authorizer.fields.get("claims").and_then(|claims| claims["sub"].as_str())
        }
        _ => return Err(Problem::unauthorized("The request did not come through an HTTP API or a REST API.")),
    };
    subject.and_then(Owner::of_name).ok_or_else(|| {
        Problem::unauthorized("The token has no usable `sub` claim. Send a token that names its subject.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(authorizer: Option<Value>) -> Request {
        let mut event = json!({
            "version": "2.0", "routeKey": "GET /api/jobs", "rawPath": "/api/jobs", "rawQueryString": "", "headers": {},
            "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "domainName": "d", "requestId": "r", "stage": "$default", "timeEpoch": 1,
                "http": {"method": "GET", "path": "/api/jobs", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""},
            },
        });
        if let Some(authorizer) = authorizer {
            event["requestContext"]["authorizer"] = authorizer;
        }
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn the_owner_is_the_subject_of_the_token() {
        let authorizer = json!({"jwt": {"claims": {"sub": "user-7", "iss": "https://issuer"}, "scopes": null}});
        assert_eq!(owner_of(&request(Some(authorizer))).unwrap(), Owner("user-7".into()));
    }

    #[test]
    fn without_an_authorizer_the_owner_is_local() {
        assert_eq!(owner_of(&request(None)).unwrap(), Owner("local".into()));
    }

    #[test]
    fn a_token_without_a_valid_subject_is_rejected() {
        for authorizer in [
            json!({}),
            json!({"jwt": {"claims": {}}}),
            json!({"jwt": {"claims": {"sub": " "}}}),
            json!({"jwt": {"claims": {"sub": "a#b"}}}),
            json!({"lambda": {"sub": "x"}}),
        ] {
            assert_eq!(owner_of(&request(Some(authorizer))).unwrap_err().status(), 401);
        }
    }

    fn request_of_payload_1(authorizer: Value) -> Request {
        let event = json!({
            "version": "1.0", "resource": "/api/jobs", "path": "/api/jobs", "httpMethod": "GET", "headers": {},
            "multiValueHeaders": {}, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "httpMethod": "GET", "path": "/api/jobs", "protocol": "HTTP/1.1",
                "requestId": "r", "stage": "$default", "requestTimeEpoch": 1, "identity": {"sourceIp": "127.0.0.1"},
                "authorizer": authorizer,
            },
        });
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn payload_1_has_the_same_owners() {
        let claims = json!({"claims": {"sub": "user-7"}, "scopes": null});
        assert_eq!(owner_of(&request_of_payload_1(claims)).unwrap(), Owner("user-7".into()));
        for none in [Value::Null, json!({}), json!({"claims": null, "scopes": null})] {
            assert_eq!(owner_of(&request_of_payload_1(none)).unwrap(), Owner("local".into()));
        }
        for nobody in [
            json!({"claims": {}}),
            json!({"claims": {"sub": "a#b"}}),
            json!({"claims": {"sub": 7}}),
            json!({"claims": "sub"}),
            json!({"principalId": "user-7"}),
        ] {
            assert_eq!(owner_of(&request_of_payload_1(nobody)).unwrap_err().status(), 401);
        }
    }

    #[test]
    fn another_format_is_never_taken_for_local() {
        let mut request = Request::default();
        assert_eq!(owner_of(&request).unwrap_err().status(), 401);
        // An event of a load balancer has no method in its context.
        let event = json!({"httpMethod": "GET", "path": "/api/jobs", "headers": {}, "requestContext": {"elb": {}}});
        if let Ok(parsed) = lambda_http::request::from_str(&event.to_string()) {
            request = parsed;
        }
        assert_eq!(owner_of(&request).unwrap_err().status(), 401);
    }
}
