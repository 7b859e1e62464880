//! Files of a local server that knows ranges, knows none, changes its file, cuts answers off, and redirects.

use std::sync::Arc;

use rowmill_core::ports::{RemoteError, RemoteFile, RemoteFiles};
use rowmill_targets::lookup::{Lookup, SystemLookup};
use rowmill_targets::sources::{FetchHosts, HttpFiles};

use crate::server::{Reply, Seen, Server};
use crate::{Scripted, clock};

const TEXT: &str = "0123456789abcdefghij";

/// Files of the server, which is on this machine.
fn files_of(server: &Server) -> HttpFiles {
    let json = format!(r#"{{"127.0.0.1:{}": {{"allowPrivate": true}}}}"#, server.port);
    let lookup: Arc<dyn Lookup> = Arc::new(SystemLookup);
    HttpFiles::new(FetchHosts::parse(&json).unwrap(), &lookup, clock()).unwrap()
}

/// The answer of a server that knows ranges.
fn ranged(seen: &Seen, text: &str, etag: &str) -> Reply {
    let wanted = seen.headers.get("range").filter(|_| seen.headers.get("if-range").is_none_or(|tag| tag == etag));
    let Some(range) = wanted.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) else {
        return Reply::http(200, &[("etag", etag)], text);
    };
    let (first, last): (usize, usize) = (range.0.parse().unwrap(), range.1.parse().unwrap());
    let length = text.len();
    if first >= length {
        return Reply::http(416, &[("content-range", &format!("bytes */{length}"))], "");
    }
    let last = last.min(length - 1);
    let range = format!("bytes {first}-{last}/{length}");
    let headers = [("etag", etag), ("content-range", &range), ("content-type", "text/csv")];
    Reply::http(206, &headers, &text[first..=last])
}

fn refusal(result: Result<impl std::fmt::Debug, RemoteError>) -> String {
    match result {
        Err(RemoteError::Refused(detail)) => detail,
        other => panic!("{other:?}"),
    }
}

fn busy(result: Result<impl std::fmt::Debug, RemoteError>) -> String {
    match result {
        Err(RemoteError::Busy { detail, .. }) => detail,
        other => panic!("{other:?}"),
    }
}

/// The whole file, or the error behind its first bytes.
async fn whole(files: &HttpFiles, url: &str) -> Result<String, RemoteError> {
    let (mut reading, mut text) = (files.read(url).await?, Vec::new());
    while let Some(piece) = reading.next().await? {
        text.extend_from_slice(&piece);
    }
    Ok(String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_file_is_read_in_ranges_of_one_version() {
    let server = Server::start(|seen, _| ranged(seen, TEXT, "\"v1\"")).await;
    let (files, url) = (files_of(&server), server.url("/a.csv?key=secret"));
    let file = files.look(&url).await.unwrap();
    let content_type = Some("text/csv".to_owned());
    assert_eq!(file, RemoteFile { size: Some(20), validator: Some("\"v1\"".to_owned()), content_type });
    assert_eq!(files.read_range(&url, ("\"v1\"", 20), 5..15).await.unwrap(), TEXT[5..15]);
    assert_eq!(files.read_range(&url, ("\"v0\"", 20), 5..15).await, Err(RemoteError::Changed));
    assert_eq!(whole(&files, &url).await.unwrap(), TEXT);
    let seen = server.seen();
    assert_eq!((seen[1].path.as_str(), seen[1].headers["range"].as_str()), ("/a.csv?key=secret", "bytes=5-14"));
    assert!(seen.iter().all(|seen| seen.headers["accept-encoding"] == "identity"));
}

#[tokio::test]
async fn another_version_is_noticed_also_if_the_server_ignores_if_range() {
    let server = Server::start(|seen, before| {
        let seen = Seen {
            headers: {
                let mut all = seen.headers.clone();
                all.remove("if-range");
                all
            },
            ..seen.clone()
        };
        ranged(&seen, TEXT, if before == 0 { "\"v1\"" } else { "\"v2\"" })
    })
    .await;
    let files = files_of(&server);
    files.look(&server.url("/")).await.unwrap();
    assert_eq!(files.read_range(&server.url("/"), ("\"v1\"", 20), 0..10).await, Err(RemoteError::Changed));
    let longer = Server::start(|seen, _| ranged(seen, "0123456789abcdefghijk", "\"v1\"")).await;
    let other = files_of(&longer).read_range(&longer.url("/"), ("\"v1\"", 20), 0..10).await;
    assert_eq!(other, Err(RemoteError::Changed), "of another length");
    let untagged = Server::start(|_, _| Reply::http(206, &[("content-range", "bytes 0-9/20")], "0123456789")).await;
    let nameless = files_of(&untagged).read_range(&untagged.url("/"), ("\"v1\"", 20), 0..10).await;
    assert_eq!(nameless, Err(RemoteError::Changed), "it does not say of which version it is");
    let whole = Server::start(|_, _| Reply::http(200, &[("etag", "\"v1\"")], TEXT)).await;
    busy(files_of(&whole).read_range(&whole.url("/"), ("\"v1\"", 20), 0..10).await);
    let shorter = Server::start(|seen, _| ranged(seen, "ab", "\"v1\"")).await;
    assert_eq!(
        files_of(&shorter).read_range(&shorter.url("/"), ("\"v1\"", 20), 10..20).await,
        Err(RemoteError::Changed)
    );
}

#[tokio::test]
async fn a_server_without_ranges_or_versions_gives_the_whole_file() {
    for headers in [&[("etag", "\"v1\"")][..], &[]] {
        let server = Server::start(move |_, _| Reply::http(200, headers, TEXT)).await;
        let files = files_of(&server);
        let file = files.look(&server.url("/")).await.unwrap();
        assert_eq!((file.size, file.validator), (Some(20), None));
        assert_eq!(whole(&files, &server.url("/")).await.unwrap(), TEXT);
    }
    let weak = Server::start(|seen, _| ranged(seen, TEXT, "W/\"v1\"")).await;
    let file = files_of(&weak).look(&weak.url("/")).await.unwrap();
    assert_eq!((file.size, file.validator), (Some(20), None), "its ranges may be of several versions");
    let empty = Server::start(|seen, _| ranged(seen, "", "\"v1\"")).await;
    assert_eq!(files_of(&empty).look(&empty.url("/")).await.unwrap().size, Some(0));
    for reply in [(416, &[][..]), (206, &[("content-range", "bytes 0-0/*")]), (412, &[])] {
        let server = Server::start(move |_, _| Reply::http(reply.0, reply.1, "")).await;
        let unknown = RemoteFile { size: None, validator: None, content_type: None };
        assert_eq!(files_of(&server).look(&server.url("/")).await.unwrap(), unknown, "{reply:?}");
    }
}

#[tokio::test]
async fn answers_that_are_cut_off_or_wrong_are_not_taken_for_the_file() {
    let cut = |text: &'static str| move |_: &Seen, _: usize| Reply::Cut(text.as_bytes().to_vec());
    let server = Server::start(cut(
        "HTTP/1.1 206 So\r\netag: \"v\"\r\ncontent-range: bytes 0-9/20\r\ncontent-length: 10\r\n\r\n01234",
    ))
    .await;
    let early = busy(files_of(&server).read_range(&server.url("/"), ("\"v\"", 20), 0..10).await);
    assert_eq!(early, "The source closed the connection early.");
    let server = Server::start(cut("HTTP/1.1 200 So\r\ncontent-length: 20\r\n\r\n01234")).await;
    busy(whole(&files_of(&server), &server.url("/")).await);
    // Without a length its end is the end of the connection.
    let server = Server::start(cut("HTTP/1.1 200 So\r\n\r\n01234")).await;
    assert_eq!(whole(&files_of(&server), &server.url("/")).await.unwrap(), "01234");
    for (reply, says) in [
        (Reply::http(206, &[("content-range", "bytes 1-10/20")], "1234567890"), "another range"),
        (Reply::http(206, &[], "0123456789"), "another range"),
        (Reply::http(206, &[("content-range", "bytes 0-9/20"), ("etag", "\"v\"")], "0123456789ab"), "more bytes"),
    ] {
        let reply = std::sync::Mutex::new(Some(reply));
        let server = Server::start(move |_, _| reply.lock().unwrap().take().unwrap()).await;
        let said = refusal(files_of(&server).read_range(&server.url("/"), ("\"v\"", 20), 0..10).await);
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_status_and_a_busy_server_its_time() {
    let server = Server::start(|seen, _| match seen.path.as_str() {
        "/gone" => Reply::http(404, &[], "secret text"),
        _ => Reply::http(503, &[("retry-after", "7")], ""),
    })
    .await;
    let files = files_of(&server);
    assert_eq!(refusal(files.look(&server.url("/gone")).await), "The source answered with status 404 (Not Found).");
    let Err(RemoteError::Busy { detail, retry_after }) = files.look(&server.url("/")).await else { panic!("not busy") };
    assert_eq!(detail, "The source answered with status 503 (Service Unavailable).");
    assert_eq!(retry_after.map(|wait| wait.as_secs()), Some(7));
    let mut nobody = Server::start(|_, _| Reply::Hang).await;
    nobody.port = 9;
    assert_eq!(busy(files_of(&nobody).look(&nobody.url("/")).await), "The connection to the source cannot be opened.");
}

#[tokio::test]
async fn redirects_are_followed_to_allowed_places_only() {
    let server = Server::start(|seen, _| match seen.path.as_str() {
        "/moved" => Reply::http(302, &[("location", "/file?b")], ""),
        "/away" => Reply::http(302, &[("location", "https://other.example/secret")], ""),
        "/inside" => Reply::http(302, &[("location", "http://169.254.169.254/latest/meta-data")], ""),
        "/nowhere" => Reply::http(302, &[], ""),
        "/round" => Reply::http(302, &[("location", "/round")], ""),
        _ => ranged(seen, TEXT, "\"v1\""),
    })
    .await;
    let files = files_of(&server);
    assert_eq!(files.look(&server.url("/moved")).await.unwrap().size, Some(20));
    for (path, says) in [
        ("/away", "redirects to a URL that cannot be fetched: its host is not in the parameter `FetchHosts`"),
        ("/inside", "redirects to a URL that cannot be fetched"),
        ("/nowhere", "redirects without a valid URL"),
        ("/round", "redirects more than 5 times"),
    ] {
        let said = refusal(files.look(&server.url(path)).await);
        assert!(said.contains(says) && !said.contains("secret"), "{said}");
    }
    assert_eq!(server.seen().iter().filter(|seen| seen.path == "/round").count(), 6);
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused() {
    let hosts = FetchHosts::parse(r#"{"*": {}}"#).unwrap();
    let lookup: Arc<dyn Lookup> = Scripted::new(&[&["10.0.0.7"]]);
    let files = HttpFiles::new(hosts, &lookup, clock()).unwrap();
    let said = refusal(files.look("https://data.example/").await);
    assert_eq!(said, "The host of the source has a private or reserved address.");
}
