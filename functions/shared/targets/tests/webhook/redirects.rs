//! Redirects, and the addresses that a call may connect to.

use std::sync::Arc;

use rowmill_core::ports::TargetError;
use rowmill_targets::webhook::Endpoint;

use crate::server::{Reply, Server};
use crate::{LONG, Scripted, call, expected_signature, webhook, webhook_at};

/// A service that redirects to this URL, and the error of a call to it.
async fn redirected_to(location: &str) -> (TargetError, Server) {
    let location = location.to_owned();
    let server = Server::start(move |_, _| Reply::http(307, &[("location", &location)], "")).await;
    let error = call(&webhook(&server.url("/"), LONG)).await.expect_err("an error");
    (error, server)
}

/// The endpoint of this service, which may redirect to this host.
fn redirecting_to(server: &Server, host: &str) -> Endpoint {
    Endpoint::new(&server.url("/"), true).unwrap().with_redirect_hosts(&[host.to_owned()]).unwrap()
}

#[tokio::test]
async fn a_redirect_to_another_host_is_followed_only_if_the_target_names_it() {
    let server = Server::start(|_, _| Reply::http(307, &[("location", "https://other.example/")], "")).await;
    // The address is a private one, so that no connection is opened: that the name is looked up tells the two apart.
    let asked_for = async |endpoint: Endpoint| {
        let lookup = Scripted::new(&[&["10.0.0.1"]]);
        let error = call(&webhook_at(endpoint, lookup.clone(), LONG)).await.unwrap_err();
        assert!(matches!(error, TargetError::Refused { .. }), "{error}");
        (lookup.asked(), error.to_string())
    };
    let (asked, error) = asked_for(Endpoint::new(&server.url("/"), true).unwrap()).await;
    assert!(asked.is_empty() && error.contains("redirectHosts"), "{asked:?}: {error}");
    let (asked, _) = asked_for(redirecting_to(&server, "third.example")).await;
    assert_eq!(asked, Vec::<String>::new());
    let (asked, _) = asked_for(redirecting_to(&server, "other.example")).await;
    assert_eq!(asked, ["other.example"]);
}

#[tokio::test]
async fn a_redirect_with_307_or_308_repeats_the_call_signed_for_the_new_path() {
    let script = |seen: &crate::server::Seen, before| match before {
        0 => Reply::http(308, &[("location", "/moved?to=here")], ""),
        _ if seen.path == "/moved?to=here" => Reply::ok(),
        _ => Reply::http(404, &[], ""),
    };
    let server = Server::start(script).await;
    assert!(call(&webhook(&server.url("/hook"), LONG)).await.is_ok());
    let seen = server.seen();
    assert_eq!(seen[0].body, seen[1].body);
    for header in ["rowmill-timestamp", "idempotency-key", "content-type"] {
        assert_eq!(seen[0].headers[header], seen[1].headers[header]);
    }
    assert_ne!(seen[0].headers["rowmill-signature"], seen[1].headers["rowmill-signature"]);
    assert!(seen.iter().all(|seen| seen.headers["rowmill-signature"] == expected_signature(seen)));
}

#[tokio::test]
async fn a_redirect_that_drops_the_request_body_is_refused() {
    for status in [301, 302, 303] {
        let server = Server::start(move |_, _| Reply::http(status, &[("location", "/")], "")).await;
        let error = call(&webhook(&server.url("/"), LONG)).await.unwrap_err();
        assert!(matches!(error, TargetError::Refused { .. }), "{status}: {error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let (error, server) = redirected_to("/").await;
    assert!(matches!(error, TargetError::Refused { .. }), "{error}");
    assert_eq!(server.seen().len(), 4, "the call and three redirects");
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_url_itself() {
    let disallowed = [
        "https://169.254.169.254/latest/meta-data/",
        "https://[fd00:ec2::254]/",
        "https://[::ffff:169.254.169.254]/",
        "http://10.0.0.1/",
        "http://example.com/",
        "https://user:password@example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "",
    ];
    for location in disallowed {
        // An empty location is the URL itself, so this is a loop.
        let (error, server) = redirected_to(location).await;
        assert!(matches!(error, TargetError::Refused { .. }), "{location}: {error}");
        assert_eq!(server.seen().len(), if location.is_empty() { 4 } else { 1 }, "{location}");
    }
}

#[tokio::test]
async fn a_host_with_a_private_address_is_refused_before_a_connection_is_opened() {
    let server = Server::start(|_, _| Reply::ok()).await;
    for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
        let lookup = Scripted::new(&[&[address]]);
        let endpoint = Endpoint::new(&format!("https://hook.example:{}/", server.port), false).unwrap();
        let target = webhook_at(endpoint, lookup.clone(), LONG);
        let error = call(&target).await.unwrap_err();
        assert!(matches!(&error, TargetError::Refused { detail } if detail.contains("private")), "{address}: {error}");
        assert_eq!(lookup.asked(), ["hook.example"]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn only_the_allowed_addresses_of_a_host_are_used() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let lookup = Scripted::new(&[&["169.254.169.254", "127.0.0.1", "::ffff:127.0.0.1"]]);
    let endpoint = Endpoint::new(&format!("http://localhost:{}/", server.port), true).unwrap();
    assert!(call(&webhook_at(endpoint, lookup, LONG)).await.is_ok());
}

#[tokio::test]
async fn a_host_that_changes_its_address_cannot_bypass_the_check() {
    // The connection is closed each time, so that each call opens a new one.
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 24\r\nconnection: close\r\n\r\n{\"batchItemFailures\":[]}";
    let server = Server::start(|_, _| Reply::Cut(response.to_vec())).await;
    let lookup = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let endpoint = Endpoint::new(&format!("http://localhost:{}/", server.port), true).unwrap();
    let target = webhook_at(endpoint, lookup.clone(), LONG);
    assert!(call(&target).await.is_ok());
    assert_eq!(lookup.asked().len(), 1, "the checked address is the one that was connected to");
    let error = call(&target).await.unwrap_err();
    assert!(matches!(error, TargetError::Refused { .. }), "{error}");
    assert_eq!((lookup.asked().len(), server.seen().len()), (2, 1));
}

#[tokio::test]
async fn a_redirect_to_a_host_with_a_private_address_is_refused() {
    let server = Server::start(|_, _| Reply::http(307, &[("location", "https://metadata.example/")], "")).await;
    let lookup = Scripted::new(&[&["169.254.169.254"]]);
    let endpoint = redirecting_to(&server, "metadata.example");
    let error = call(&webhook_at(endpoint, lookup.clone(), LONG)).await.unwrap_err();
    assert!(matches!(error, TargetError::Refused { .. }), "{error}");
    assert_eq!(lookup.asked(), ["metadata.example"]);
}

#[tokio::test]
async fn a_webhook_in_a_private_network_cannot_redirect_to_another_host_there() {
    let other = Server::start(|_, _| Reply::ok()).await;
    for location in [other.url("/"), format!("https://127.0.0.1:{}/", other.port), "https://10.0.0.1/".to_owned()] {
        let (error, server) = redirected_to(&location).await;
        assert!(matches!(error, TargetError::Refused { .. }), "{location}: {error}");
        assert_eq!(server.seen().len(), 1, "{location}");
    }
    let location = format!("https://intranet.example:{}/", other.port);
    let server = Server::start(move |_, _| Reply::http(307, &[("location", &location)], "")).await;
    let lookup = Scripted::new(&[&["127.0.0.1"]]);
    let endpoint = redirecting_to(&server, &format!("intranet.example:{}", other.port));
    let error = call(&webhook_at(endpoint, lookup.clone(), LONG)).await.unwrap_err();
    assert!(matches!(&error, TargetError::Refused { detail } if detail.contains("private")), "{error}");
    assert_eq!(lookup.asked(), ["intranet.example"]);
    assert_eq!(other.seen().len(), 0);
}

#[tokio::test]
async fn an_https_url_of_a_service_without_tls_is_unreachable() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let endpoint = Endpoint::new(&format!("https://127.0.0.1:{}/", server.port), true).unwrap();
    let target = webhook_at(endpoint, Arc::new(rowmill_targets::lookup::SystemLookup), LONG);
    let error = call(&target).await.unwrap_err();
    assert!(matches!(error, TargetError::Unreachable { .. }), "{error}");
}
