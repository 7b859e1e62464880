use std::future::ready;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::server::{CONNECTION_TIMEOUT, accepted, answer_once, is_local};
use super::{BODY_MAX_BYTES, Gateway, serve};
use crate::aws::Target;
use crate::progress::Progress;

/// A gateway whose functions cannot be called. It answers what needs no function.
async fn unconnected() -> Gateway {
    let target = Target::Emulator { endpoint_url: "http://127.0.0.1:9".to_owned() };
    Gateway::connect(&target, "rowmill").await
}

/// A connection to a served gateway.
async fn connection() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Arc::new(unconnected().await);
    tokio::spawn(async move { serve(listener, gateway, Progress::Hidden).await });
    TcpStream::connect(address).await.unwrap()
}

fn is_local_with(uri: &str, headers: &[(HeaderName, &str)]) -> bool {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, value.parse().unwrap());
    }
    is_local(&uri.parse::<Uri>().unwrap(), &map)
}

#[test]
fn pages_of_other_sites_are_refused() {
    for host in ["localhost:8787", "127.0.0.1:8787", "[::1]:8787", "LOCALHOST", "127.0.0.1"] {
        assert!(is_local_with("/", &[(HOST, host)]), "{host}");
        assert!(is_local_with("/", &[(HOST, host), (ORIGIN, "http://localhost:3000")]), "{host}");
        assert!(!is_local_with("/", &[(HOST, host), (ORIGIN, "https://example.org")]), "{host}");
        assert!(!is_local_with("/", &[(HOST, host), (ORIGIN, "null")]), "{host}");
    }
    for host in ["example.org", "example.org:8787", "127.0.0.1.example.org", "localhost.example.org:1", ""] {
        assert!(!is_local_with("/", &[(HOST, host)]), "{host}");
    }
}

#[test]
fn every_host_of_a_request_must_be_this_machine() {
    let local = (HOST, "localhost");
    for uri in ["http://localhost:8787/api/jobs", "http://127.0.0.1/api/jobs", "/api/jobs"] {
        assert!(is_local_with(uri, std::slice::from_ref(&local)), "{uri}");
    }
    for uri in ["http://example.org/api/jobs", "http://localhost@example.org/api/jobs", "example.org:80"] {
        assert!(!is_local_with(uri, std::slice::from_ref(&local)), "{uri}");
    }
    assert!(!is_local_with("/", &[local.clone(), (HOST, "example.org")]));
    let origins = [(ORIGIN, "http://localhost"), (ORIGIN, "https://example.org")];
    assert!(!is_local_with("/", &[local, origins[0].clone(), origins[1].clone()]));
}

#[test]
fn a_foreign_page_without_an_origin_is_known_by_sec_fetch_site() {
    let site = HeaderName::from_static("sec-fetch-site");
    assert!(!is_local_with("/", &[(site.clone(), "cross-site")]));
    for own in ["same-origin", "same-site", "none"] {
        assert!(is_local_with("/", &[(site.clone(), own)]), "{own}");
    }
    // A page on localhost is another site than 127.0.0.1, and welcome.
    assert!(is_local_with("/", &[(ORIGIN, "http://localhost:3000"), (site, "cross-site")]));
}

#[tokio::test]
async fn a_connection_has_one_request() {
    let mut connection = connection().await;
    connection.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_too_long_gets_its_refusal() {
    let mut connection = connection().await;
    let body = vec![b'x'; 3 * BODY_MAX_BYTES];
    let head = format!("POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&body).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answer_loses_its_connection() {
    let gateway = unconnected().await;
    let (mut client, server) = duplex(64);
    client.write_all(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    timeout(2 * CONNECTION_TIMEOUT, answer_once(server, &gateway, Progress::Hidden)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_accepted_does_not_end_the_gateway() {
    let mut calls = 0;
    let accept = || {
        calls += 1;
        ready(if calls < 3 { Err(io::Error::from(ErrorKind::ConnectionAborted)) } else { Ok(calls) })
    };
    assert_eq!(timeout(Duration::from_secs(60), accepted(accept, Progress::Hidden)).await, Ok(3));
}
