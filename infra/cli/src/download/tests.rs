use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rowmill_api::openapi::examples;
use rowmill_api::results::FileView;
use rowmill_core::model::results::ResultFile;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::api::{ApiClient, RetryPolicy};
use crate::fake_api::{FakeApi, Reply, Request};
use crate::fixtures::{job_guid, with};
use crate::progress::ByteProgress;

/// Long enough to come in many pieces.
fn content() -> Vec<u8> {
    (0..300_000u32).map(|n| (n % 251) as u8).collect()
}

fn crc64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes).to_be_bytes())
}

fn entry(host: &str, content: &[u8]) -> Value {
    json!({"name": "output.csv", "kind": "output", "contentType": "text/csv", "bytes": content.len(), "items": 3,
        "crc64Nvme": crc64(content), "fileName": "out.csv", "url": format!("http://{host}/bucket?X-Amz-Signature=secret")})
}

/// A description of the file that differs from the stored one.
fn changed(change: impl Fn(&mut ResultFile)) -> impl Fn(FileView) -> FileView {
    move |mut file| {
        change(&mut file.file);
        file
    }
}

/// The API's answer, every link of which is signed with `signature`.
fn results(host: &str, signature: &str, content: &[u8]) -> Value {
    let mut file = entry(host, content);
    file["url"] = format!("http://{host}/bucket?X-Amz-Signature={signature}").into();
    with(serde_json::to_value(examples::results()).unwrap(), json!({"files": [file]}))
}

/// Answers as S3 does, whole or from where the range begins.
fn stored(request: &Request, content: &[u8]) -> Reply {
    let start = request.headers.get("range").map(|range| {
        let start = range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap();
        start.parse::<usize>().unwrap()
    });
    let length = content.len();
    match start {
        Some(start) if start >= length => Reply::text(416, ""),
        Some(start) => Reply::bytes(206, &content[start..])
            .header("content-range", &format!("bytes {start}-{}/{length}", length - 1)),
        None => Reply::bytes(200, content),
    }
}

/// The end of one download from a server that answers with `answer`.
struct Fetch {
    result: Result<(), DownloadError>,
    seen: Vec<Request>,
    folder: TempDir,
    /// The bytes last told of, and the most.
    told: (u64, u64),
}

impl Fetch {
    async fn from(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::of(|file| file, answer).await
    }

    /// The same of a file described a little differently.
    async fn of(
        described: impl Fn(FileView) -> FileView,
        answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let server = FakeApi::serve(answer).await;
        let host = server.url.strip_prefix("http://").unwrap();
        let file = described(serde_json::from_value(entry(host, &content())).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let retry = RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() };
        let api = ApiClient::new(&server.url, Some("secret-token")).unwrap();
        let api = api.with_patience(retry, Duration::from_secs(5));
        let told = Arc::new(Mutex::new((0, 0)));
        let teller = Arc::clone(&told);
        let progress = ByteProgress::new(move |bytes| {
            let mut told = teller.lock().unwrap();
            *told = (bytes, told.1.max(bytes));
        });
        let place = Destination { path: folder.path().join("out.csv"), replace: false };
        let source = ResultSource::new(&api, job_guid()).with_stall_limit(Duration::from_secs(5));
        let result = source.receive(&file, &place, &progress).await;
        let told = *told.lock().unwrap();
        Self { result, seen: server.seen(), folder, told }
    }

    fn error(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }

    fn files(&self) -> Vec<String> {
        names_in(self.folder.path())
    }

    /// The `Range` of every request for the file.
    fn ranges(&self) -> Vec<&str> {
        let gets = self.seen.iter().filter(|request| request.target.starts_with("/bucket"));
        gets.map(|request| request.headers.get("range").map_or("whole", String::as_str)).collect()
    }

    /// The file is there as it was stored, nothing else is, and every byte was told of once.
    fn is_whole(&self) {
        assert!(self.result.is_ok(), "{}", self.error());
        assert_eq!(self.files(), ["out.csv"]);
        assert!(std::fs::read(self.folder.path().join("out.csv")).unwrap() == content());
        assert_eq!(self.told, (300_000, 300_000));
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_result_is_fetched_by_its_link_without_the_token() {
    let fetch = Fetch::from(|request, _| stored(request, &content())).await;
    fetch.is_whole();
    assert_eq!(fetch.seen.len(), 1);
    assert_eq!(fetch.seen[0].target, "/bucket?X-Amz-Signature=secret");
    assert!(!fetch.seen[0].headers.contains_key("authorization"), "the token is the API's alone");
}

#[tokio::test]
async fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let fetch = Fetch::from(|request, n| match n {
        0 => stored(request, &content()).cut_after(100_000),
        1 => Reply::hang_up(),
        2 => stored(request, &content()).cut_after(50_000),
        _ => stored(request, &content()),
    })
    .await;
    fetch.is_whole();
    assert_eq!(fetch.ranges(), ["whole", "bytes=100000-", "bytes=100000-", "bytes=150000-"]);
}

#[tokio::test]
async fn a_storage_without_ranges_is_read_again_from_the_start() {
    let fetch = Fetch::from(|_, n| match n {
        0 => Reply::bytes(200, &content()).cut_after(100_000),
        _ => Reply::bytes(200, &content()),
    })
    .await;
    fetch.is_whole();
    assert_eq!(fetch.ranges(), ["whole", "bytes=100000-"]);
}

#[tokio::test]
async fn another_range_than_the_one_asked_for_is_not_taken() {
    let fetch = Fetch::from(|request, n| match n {
        0 => stored(request, &content()).cut_after(100_000),
        1 => Reply::bytes(206, &content()[100_001..]).header("content-range", "bytes 100001-299999/300000"),
        _ => stored(request, &content()),
    })
    .await;
    fetch.is_whole();
    assert_eq!(fetch.ranges(), ["whole", "bytes=100000-", "whole"]);
}

#[tokio::test]
async fn bytes_that_were_changed_on_the_way_are_fetched_again_from_the_start() {
    let changed = || [&b"\xff"[..], &content()[1..]].concat();
    let fetch = Fetch::from(move |request, n| match n {
        0 => stored(request, &changed()),
        _ => stored(request, &content()),
    })
    .await;
    fetch.is_whole();
    assert_eq!(fetch.ranges(), ["whole", "whole"]);
}

#[tokio::test]
async fn a_wrong_checksum_is_an_error_after_so_many_tries_and_leaves_no_file() {
    let other = changed(|file| file.crc64_nvme = crc64(b"other"));
    let fetch = Fetch::of(other, |request, _| stored(request, &content())).await;
    assert!(matches!(fetch.result, Err(DownloadError::Mismatch { what: "checksum", .. })), "{}", fetch.error());
    assert!(fetch.error().contains("`out.csv`"), "{}", fetch.error());
    assert_eq!(fetch.ranges(), ["whole"; 5]);
    assert_eq!(fetch.files(), [""; 0]);
    assert_eq!(fetch.told.0, 0, "what came in vain is counted back");
}

#[tokio::test]
async fn more_bytes_than_promised_are_not_written() {
    let shorter = changed(|file| file.bytes -= 1);
    let fetch = Fetch::of(shorter, |request, _| stored(request, &content())).await;
    assert!(matches!(fetch.result, Err(DownloadError::Mismatch { what: "length", .. })), "{}", fetch.error());
    assert!(fetch.told.1 < 300_000);
    assert_eq!(fetch.files(), [""; 0]);
}

#[tokio::test]
async fn fewer_bytes_than_promised_are_an_error() {
    let longer = changed(|file| file.bytes += 1);
    let fetch = Fetch::of(longer, |request, _| stored(request, &content())).await;
    assert!(matches!(fetch.result, Err(DownloadError::CutShort { .. } | DownloadError::Mismatch { .. })));
    assert_eq!(fetch.ranges()[..3], ["whole", "bytes=300000-", "whole"]);
    assert_eq!(fetch.files(), [""; 0]);
}

#[tokio::test]
async fn a_connection_that_always_breaks_is_given_up() {
    let fetch = Fetch::from(|_, _| Reply::hang_up()).await;
    assert!(matches!(fetch.result, Err(DownloadError::Unreachable { .. })), "{}", fetch.error());
    assert_eq!(fetch.seen.len(), 5);
    assert!(!format!("{:?}", fetch.result).contains("secret"), "the link is not shown");
    assert_eq!(fetch.files(), [""; 0]);
}

const EXPIRED: &str = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";

#[tokio::test]
async fn an_expired_link_is_renewed_and_the_rest_is_fetched() {
    let fetch = Fetch::from(|request, n| match (n, request.target.as_str()) {
        (0, _) => stored(request, &content()).cut_after(100_000),
        (_, "/bucket?X-Amz-Signature=secret") => Reply::text(403, EXPIRED),
        (_, "/bucket?X-Amz-Signature=new") => stored(request, &content()),
        _ => Reply::json(200, results(&request.headers["host"], "new", &content())),
    })
    .await;
    fetch.is_whole();
    assert_eq!(fetch.seen[2].target, format!("/api/jobs/{}/results", job_guid()));
    assert_eq!(fetch.ranges(), ["whole", "bytes=100000-", "bytes=100000-"]);
}

#[tokio::test]
async fn links_are_asked_for_anew_once() {
    let fetch = Fetch::from(|request, _| match request.target.starts_with("/bucket") {
        true => Reply::text(403, EXPIRED),
        false => Reply::json(200, results(&request.headers["host"], "new", &content())),
    })
    .await;
    let expected = "the storage refused to give out `out.csv`: AccessDenied: Request has expired (HTTP 403)";
    assert_eq!(fetch.error(), expected);
    assert_eq!(fetch.seen.len(), 3, "link, API, new link");
}

#[tokio::test]
async fn results_of_a_later_attempt_are_not_mixed_with_earlier_ones() {
    let fetch = Fetch::from(|request, _| match request.target.starts_with("/bucket") {
        true => Reply::text(403, EXPIRED),
        false => Reply::json(200, results(&request.headers["host"], "new", b"of attempt 2")),
    })
    .await;
    assert!(matches!(fetch.result, Err(DownloadError::Changed(_))), "{}", fetch.error());
    assert_eq!(fetch.seen.len(), 2);
}

#[tokio::test]
async fn a_busy_storage_is_tried_again_and_one_that_has_no_such_file_is_not() {
    let busy = Fetch::from(|request, n| match n {
        0 => Reply::text(503, "").header("retry-after", "0"),
        _ => stored(request, &content()),
    })
    .await;
    busy.is_whole();
    let gone = Fetch::from(|_, _| Reply::text(404, "<Error><Code>NoSuchKey</Code></Error>")).await;
    assert_eq!(gone.error(), "the storage refused to give out `out.csv`: NoSuchKey (HTTP 404)");
    assert_eq!(gone.seen.len(), 1);
}

#[tokio::test]
async fn a_storage_that_sends_nothing_is_given_up() {
    // The system completes the connection; nobody ever answers.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let host = socket.local_addr().unwrap().to_string();
    let file: FileView = serde_json::from_value(entry(&host, &content())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let api = ApiClient::new(&format!("http://{host}"), None).unwrap();
    let api = api.with_patience(RetryPolicy::once(), Duration::from_secs(5));
    let place = Destination { path: folder.path().join("out.csv"), replace: false };
    let source = ResultSource::new(&api, job_guid()).with_stall_limit(Duration::from_millis(200));
    let error = source.receive(&file, &place, &ByteProgress::new(|_| ())).await.unwrap_err();
    assert!(matches!(error, DownloadError::Stalled { .. }), "{error}");
    assert_eq!(names_in(folder.path()), [""; 0]);
}

#[tokio::test]
async fn an_invalid_checksum_is_rejected_before_the_first_request() {
    for crc in ["", "AAAA", "!"] {
        let fetch = Fetch::of(changed(|file| file.crc64_nvme = crc.into()), |_, _| Reply::hang_up()).await;
        assert!(matches!(fetch.result, Err(DownloadError::Instructions { .. })), "{}", fetch.error());
        assert!(fetch.seen.is_empty());
    }
}

#[tokio::test]
async fn an_empty_result_becomes_an_empty_file() {
    let empty = changed(|file| (file.bytes, file.crc64_nvme) = (0, crc64(b"")));
    let fetch = Fetch::of(empty, |_, _| Reply::hang_up()).await;
    assert!(fetch.result.is_ok(), "{}", fetch.error());
    assert_eq!(std::fs::read(fetch.folder.path().join("out.csv")).unwrap(), b"");
}

fn named(names: &[&str]) -> Vec<FileView> {
    let file =
        |name: &&str| serde_json::from_value(with(entry("127.0.0.1:9", b""), json!({"fileName": name}))).unwrap();
    names.iter().map(file).collect()
}

#[tokio::test]
async fn results_stay_in_their_folder_under_any_name() {
    let parent = tempfile::tempdir().unwrap();
    let folder = Folder { path: parent.path().join("a/b"), replace: false };
    let places = folder.places(&named(&["../../x", "/etc/y.csv", "z"])).await.unwrap();
    assert!(folder.path.is_dir(), "it is created");
    let paths: Vec<_> = places.into_iter().map(|place| place.path).collect();
    assert_eq!(paths, ["x", "y.csv", "z"].map(|name| folder.path.join(name)));
    let error = folder.places(&named(&["a/.."])).await.unwrap_err();
    assert!(matches!(error, DownloadError::Nameless(_)), "{error}");
    let error = folder.places(&named(&["1/x", "2/x"])).await.unwrap_err();
    assert!(matches!(error, DownloadError::Twice(_)), "{error}");
}

#[tokio::test]
async fn an_existing_file_is_replaced_only_by_force() {
    let parent = tempfile::tempdir().unwrap();
    let folder = |replace| Folder { path: parent.path().to_owned(), replace };
    std::fs::write(parent.path().join("x"), "mine").unwrap();
    let error = folder(false).places(&named(&["new", "x"])).await.unwrap_err();
    assert!(matches!(error, DownloadError::Exists(_)) && error.to_string().contains("--force"), "{error}");
    assert!(folder(true).places(&named(&["x"])).await.is_ok());
    // A link that leads nowhere would else be a way out of the folder.
    std::os::unix::fs::symlink("/no/such", parent.path().join("link")).unwrap();
    assert!(folder(false).places(&named(&["link"])).await.is_err());
    std::fs::create_dir(parent.path().join("folder")).unwrap();
    let error = folder(true).places(&named(&["folder"])).await.unwrap_err();
    assert!(matches!(error, DownloadError::FolderInTheWay(_)), "{error}");
}

#[tokio::test]
async fn the_error_for_an_invalid_folder_names_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = Folder { path: file.path().join("below"), replace: false };
    let error = folder.places(&named(&["x"])).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot write `") && error.contains("Not a directory"), "{error}");
}
