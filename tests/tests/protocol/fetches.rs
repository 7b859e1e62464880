//! Files that are fetched: crashes at every call, two invocations at once, aborts, and sources that change, stall, and
//! know no ranges.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::use_cases::{INPUT_BUCKET, Limits};
use acceptance::world::World;
use async_trait::async_trait;
use bytes::Bytes;
use fetch_file::fetch::{FetchError, Fetched, Fetcher};
use fetch_file::handler::{Fetches, handle};
use fetch_file::origins::Origins;
use rowmill_api::request::{FetchObject, FetchRequest, FetchSource};
use rowmill_api::upload::UploadView;
use rowmill_aws::{Batch, Delivery};
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::messages::FetchMessage;
use rowmill_core::model::outstanding::{OUTSTANDING_FOR, OutstandingLimits, OutstandingUpload};
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::{
    Clock, MultipartObjects, Objects, OutstandingUploads, PortError, RemoteBytes, RemoteError, RemoteFile, RemoteFiles,
    UploadStore,
};
use rowmill_core::progress::waits::Waker;
use rowmill_settings::{BucketSettings, FileLimits, OtherBuckets};
use rowmill_targets::sources::FetchHosts;
use rowmill_testing::in_memory::{InMemoryDeliveries, InMemoryQueue, ManualClock};
use upload::fetched::FetchOrders;
use upload::upload::{UploadError, UploadLimits};
use uuid::Uuid;

const URL: &str = "https://data.example/people.csv?token=secret";

/// What the source answers: each answer once, and then the file.
#[derive(Default)]
struct Source {
    file: Mutex<(Bytes, u32)>,
    errors: Mutex<VecDeque<RemoteError>>,
    knows_no_ranges: bool,
    hides_length: bool,
    /// Each read takes so long.
    clock: Option<(Arc<ManualClock>, Duration)>,
    ranges: Mutex<Vec<Range<u64>>>,
}

impl Source {
    fn of(text: &str) -> Self {
        Self { file: Mutex::new((Bytes::from(text.to_owned()), 1)), ..Self::default() }
    }

    fn change(&self, text: &str) {
        let mut file = self.file.lock().unwrap();
        *file = (Bytes::from(text.to_owned()), file.1 + 1);
    }

    fn answer(&self) -> Result<(Bytes, String), RemoteError> {
        if let Some((clock, takes)) = &self.clock {
            clock.advance(*takes);
        }
        if let Some(error) = self.errors.lock().unwrap().pop_front() {
            return Err(error);
        }
        let (bytes, version) = self.file.lock().unwrap().clone();
        Ok((bytes, format!("\"{version}\"")))
    }
}

#[async_trait]
impl RemoteFiles for Source {
    async fn look(&self, url: &str) -> Result<RemoteFile, RemoteError> {
        assert_eq!(url, URL);
        let (bytes, version) = self.answer()?;
        Ok(RemoteFile {
            size: (!self.hides_length).then_some(bytes.len() as u64),
            validator: (!self.knows_no_ranges).then_some(version),
            content_type: Some("text/csv; charset=utf-8".to_owned()),
        })
    }

    async fn read_range(&self, _: &str, wanted: (&str, u64), range: Range<u64>) -> Result<Bytes, RemoteError> {
        self.ranges.lock().unwrap().push(range.clone());
        let (bytes, version) = self.answer()?;
        match (version.as_str(), bytes.len() as u64) == wanted {
            true => Ok(bytes.slice(range.start as usize..range.end as usize)),
            false => Err(RemoteError::Changed),
        }
    }

    async fn read(&self, _: &str) -> Result<Box<dyn RemoteBytes>, RemoteError> {
        let (bytes, _) = self.answer()?;
        Ok(Box::new(Pieces(bytes.chunks(7).map(Bytes::copy_from_slice).collect(), self.clock.clone())))
    }
}

struct Pieces(VecDeque<Bytes>, Option<(Arc<ManualClock>, Duration)>);

#[async_trait]
impl RemoteBytes for Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        if let Some((clock, takes)) = &self.1 {
            clock.advance(*takes);
        }
        Ok(self.0.pop_front())
    }
}

/// A world in which parts have 10 bytes, and an upload to fetch.
struct Bench {
    world: World,
    queue: Arc<InMemoryQueue<FetchMessage>>,
    source: Arc<Source>,
    file: FileGuid,
}

impl Bench {
    async fn new(source: Source) -> Self {
        let files = FileLimits { max_bytes: 1000, ..FileLimits::default() };
        let outstanding = OutstandingLimits { uploads: 2, bytes: 500 };
        let uploads = UploadLimits { part_bytes: 10, files, outstanding, ..UploadLimits::default() };
        let world = World::new(Limits { uploads, ..Limits::default() });
        let mut bench = Self { world, queue: Arc::default(), source: Arc::new(source), file: FileGuid(Uuid::nil()) };
        bench.file = bench.order(URL).await.unwrap().file_guid;
        bench
    }

    async fn order(&self, url: &str) -> Result<UploadView, UploadError> {
        self.order_from(FetchSource { url: Some(url.to_owned()), s3: None }).await
    }

    async fn order_from(&self, source: FetchSource) -> Result<UploadView, UploadError> {
        let hosts = FetchHosts::parse(r#"{"data.example": {}}"#).unwrap();
        let settings = BucketSettings {
            inputs: format!("arn:aws:s3:::{INPUT_BUCKET}"),
            input_prefix: "in/".to_owned(),
            ..BucketSettings::default()
        };
        let OtherBuckets { inputs, .. } = OtherBuckets::of(settings, "own");
        let orders = FetchOrders { hosts, inputs, fetches: self.queue.clone() };
        let request = FetchRequest { source, file_name: None, content_type: None };
        orders.order(&self.world.uploads, &owner(), &request).await
    }

    /// A fetcher that can crash.
    fn mortal(&self) -> Fetcher {
        Fetcher {
            files: self.world.mortal_uploads.clone(),
            fetches: self.queue.clone(),
            remote: Arc::new(Origins { servers: self.source.clone(), objects: self.world.objects.clone() }),
            waker: Waker { jobs: self.world.jobs.clone(), splits: self.world.splits.clone() },
        }
    }

    fn fetcher(&self) -> Fetcher {
        Fetcher { files: self.world.uploads.clone(), ..self.mortal() }
    }

    fn message(&self) -> FetchMessage {
        FetchMessage { file_guid: self.file, owner: owner() }
    }

    /// Fetches with so many seconds left.
    async fn fetch(&self, fetcher: &Fetcher, seconds: u64) -> Result<Fetched, FetchError> {
        fetcher.fetch(&self.message(), self.world.clock.now() + Duration::from_secs(seconds)).await
    }

    /// Delivers the message with this receive count. Returns whether it comes again, and after how many seconds.
    async fn deliver(&self, receive_count: u32) -> Option<u64> {
        let deliveries = Arc::new(InMemoryDeliveries::default());
        let fetches = Fetches { fetcher: self.fetcher(), deliveries: deliveries.clone() };
        let (message_id, receipt) = ("m".to_owned(), "r".to_owned());
        let delivery = Delivery { message_id, message: self.message(), receive_count, receipt };
        let deadline = self.world.clock.now() + Duration::from_secs(300);
        let again = handle(&fetches, Batch { deliveries: vec![delivery], deadline }).await;
        let postponed = deliveries.take();
        assert_eq!((postponed[0].1.as_secs(), postponed.len()), (310, 1 + again.len()), "a crash costs five minutes");
        postponed.get(1).map(|(_, by)| by.as_secs())
    }

    async fn row(&self) -> Upload {
        self.world.upload_rows.upload(self.file, self.world.clock.now()).await.unwrap()
    }

    async fn view(&self) -> UploadView {
        self.world.uploads.show(&owner(), self.file).await.unwrap()
    }

    fn is_outstanding(&self) -> bool {
        self.world.quotas.outstanding(&owner()).iter().any(|upload| upload.file_guid == self.file)
    }

    /// The bytes of a file that is ready. The row names the version that is stored.
    async fn stored(&self) -> String {
        let row = self.row().await;
        let head = self.world.objects.head(&row.key).await.unwrap();
        assert_eq!(row.state, UploadState::Ready { etag: head.etag });
        assert_eq!((row.size, self.is_outstanding()), (head.size, false));
        assert_eq!(row.origin.unwrap().url, None, "the URL is forgotten");
        String::from_utf8(self.world.objects.read(&row.key).await.unwrap().to_vec()).unwrap()
    }

    /// Why nothing of the file is stored.
    async fn failure(&self) -> (String, String) {
        let row = self.row().await;
        let UploadState::Failed(failure) = row.state else { panic!("{row:?}") };
        assert!(matches!(self.world.objects.head(&row.key).await, Err(PortError::NotFound)));
        assert_eq!((row.origin.unwrap().url, self.is_outstanding()), (None, false));
        let view = self.view().await;
        assert_eq!((view.status.as_str(), view.failure.unwrap().code), ("failed", failure.code.clone()));
        (failure.code, failure.detail)
    }
}

fn owner() -> Owner {
    Owner("me".to_owned())
}

/// 45 bytes, each of which tells its place.
fn text() -> String {
    (0..9).map(|number| format!("{number}abc\n")).collect()
}

#[tokio::test]
async fn a_file_is_fetched_range_by_range_and_shown_meanwhile() {
    let bench = Bench::new(Source::of(&text())).await;
    let view = bench.view().await;
    assert_eq!((view.status.as_str(), view.file_name.as_deref()), ("fetching", Some("people.csv")));
    assert_eq!(view.source.unwrap().url, "https://data.example/people.csv", "without the query");
    assert_eq!(bench.queue.take(), [bench.message()]);
    assert!(!format!("{:?}", bench.row().await).contains("secret"));
    let signed = bench.world.uploads.sign(&owner(), bench.file, Default::default()).await;
    assert!(matches!(signed, Err(UploadError::Fetching(_))), "nobody else may write into it");
    assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
    assert_eq!(bench.stored().await, text());
    let view = bench.view().await;
    assert_eq!((view.status.as_str(), view.size, view.bytes_stored), ("ready", 45, Some(45)));
    assert_eq!(view.content_type, "text/csv; charset=utf-8", "as the source says");
    assert_eq!(bench.source.ranges.lock().unwrap().len(), 5);
    // A message that comes again changes nothing.
    bench.source.change("other");
    assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
    assert_eq!(bench.stored().await, text());
}

fn object(bucket: &str, key: &str) -> FetchSource {
    FetchSource { url: None, s3: Some(FetchObject { bucket: bucket.to_owned(), key: key.to_owned() }) }
}

#[tokio::test]
async fn an_object_in_a_bucket_of_others_is_copied_part_by_part() {
    let mut bench = Bench::new(Source::default()).await;
    let key = keys::in_bucket(INPUT_BUCKET, "in/2026/people.csv");
    bench.world.objects.store(&key, "text/plain", Default::default(), text().into());
    let view = bench.order_from(object(INPUT_BUCKET, "in/2026/people.csv")).await.unwrap();
    assert_eq!((view.status.as_str(), view.file_name.as_deref()), ("fetching", Some("people.csv")));
    assert_eq!(view.source.unwrap().url, key);
    bench.file = view.file_guid;
    assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
    assert_eq!(bench.stored().await, text());
    assert_eq!((bench.view().await.size, bench.view().await.content_type.as_str()), (45, "text/plain"));
}

#[tokio::test]
async fn an_object_that_is_gone_replaced_or_not_allowed_is_named() {
    let mut bench = Bench::new(Source::default()).await;
    for (bucket, key, named) in [
        ("other", "in/a.csv", "source.s3.bucket"),
        (INPUT_BUCKET, "out/a.csv", "source.s3.key"),
        (INPUT_BUCKET, "", "source.s3.key"),
        (INPUT_BUCKET, &format!("in/{}", "x".repeat(1024)), "source.s3.key"),
    ] {
        let refused = bench.order_from(object(bucket, key)).await.unwrap_err();
        assert!(matches!(refused, UploadError::Field { field, .. } if field == named), "{bucket}/{key}: {refused}");
    }
    let both = FetchSource { url: Some(URL.to_owned()), ..object(INPUT_BUCKET, "in/a.csv") };
    for source in [both, FetchSource::default()] {
        assert!(matches!(bench.order_from(source).await, Err(UploadError::Field { field: "source", .. })));
    }
    bench.file = bench.order_from(object(INPUT_BUCKET, "in/gone.csv")).await.unwrap().file_guid;
    assert_eq!(bench.deliver(1).await, None);
    assert_eq!(bench.failure().await.0, "source_refused");
    let mut bench = Bench::new(Source::default()).await;
    let key = keys::in_bucket(INPUT_BUCKET, "in/new.csv");
    bench.world.objects.store(&key, "text/plain", Default::default(), text().into());
    bench.file = bench.order_from(object(INPUT_BUCKET, "in/new.csv")).await.unwrap().file_guid;
    // Time is up behind the first look.
    let until = bench.world.clock.now();
    bench.fetcher().fetch(&bench.message(), until).await.ok();
    bench.world.objects.store(&key, "text/plain", Default::default(), "0other".repeat(9).into());
    assert_eq!(bench.deliver(1).await, None);
    assert_eq!(bench.failure().await.0, "source_changed");
}

#[tokio::test]
async fn a_long_file_continues_behind_the_parts_that_are_stored() {
    let bench = Bench::new(Source::of(&text())).await;
    let slow = Source { clock: Some((bench.world.clock.clone(), Duration::from_secs(1))), ..Source::of(&text()) };
    let bench = Bench { source: Arc::new(slow), ..bench };
    bench.queue.take();
    let mut turns = 1;
    while bench.fetch(&bench.fetcher(), 3).await.unwrap() == Fetched::Continues {
        let view = bench.view().await;
        assert_eq!((view.status.as_str(), view.size), ("fetching", 45));
        assert!(view.bytes_stored > Some(0) && view.bytes_stored < Some(45), "{view:?}");
        assert_eq!(bench.queue.take(), [bench.message()]);
        turns += 1;
    }
    assert!(turns > 1);
    assert_eq!(bench.stored().await, text());
    let mut ranges: Vec<_> = bench.source.ranges.lock().unwrap().iter().map(|range| range.start).collect();
    ranges.sort_unstable();
    ranges.dedup();
    assert_eq!(ranges, [0, 10, 20, 30, 40]);
}

#[tokio::test]
async fn a_source_that_gives_no_part_in_time_is_tried_again() {
    let bench = Bench::new(Source::of(&text())).await;
    bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
    let slow = bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
    assert!(matches!(&slow, FetchError::Busy { detail, .. } if detail.contains("so slow")), "{slow}");
}

#[tokio::test]
async fn a_connection_that_breaks_takes_no_other_one_with_it() {
    let bench = Bench::new(Source::of(&text())).await;
    bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
    let broken = RemoteError::busy("The source closed the connection early.");
    bench.source.errors.lock().unwrap().extend([broken.clone(), broken.clone()]);
    assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Continues);
    assert_eq!(bench.view().await.bytes_stored, Some(25), "three of five parts");
    assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
    assert_eq!(bench.stored().await, text());
    // A source that is down is not asked for every part.
    let bench = Bench::new(Source::of(&"x".repeat(500))).await;
    bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
    bench.source.errors.lock().unwrap().extend(vec![broken; 100]);
    assert!(matches!(bench.fetch(&bench.fetcher(), 300).await, Err(FetchError::Busy { .. })));
    assert!(bench.source.ranges.lock().unwrap().len() <= 8);
}

/// The kinds of sources: with ranges, without, and without a length too.
const KINDS: [(bool, bool); 3] = [(false, false), (true, false), (true, true)];

fn source((knows_no_ranges, hides_length): (bool, bool), text: &str) -> Source {
    Source { knows_no_ranges, hides_length, ..Source::of(text) }
}

#[tokio::test]
async fn a_file_is_whole_whatever_call_is_the_last_of_a_process() {
    for kind in KINDS {
        let deaths = at_every_call(async |call, death| {
            let bench = Bench::new(source(kind, &text())).await;
            bench.world.faults.plan(call, death);
            let dead = bench.fetch(&bench.mortal(), 300).await.is_err();
            assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
            assert_eq!(bench.stored().await, text());
            dead
        });
        assert!(deaths.await > 10, "kind {kind:?}");
    }
}

#[tokio::test]
async fn two_invocations_make_one_file() {
    let others = [text(), text().replace('a', "x"), "other, and shorter".to_owned()];
    for (kind, text_of_second) in KINDS.into_iter().zip(others) {
        for call in 0.. {
            let bench = Arc::new(Bench::new(source(kind, &text())).await);
            let other = Arc::clone(&bench);
            let second = text_of_second.clone();
            bench.world.faults.freeze(call, async move {
                if kind.0 {
                    other.source.change(&second);
                }
                other.fetch(&other.fetcher(), 300).await.unwrap();
            });
            let first = bench.fetch(&bench.mortal(), 300).await;
            if bench.world.faults.thaw() {
                assert!(call > 5, "kind {kind:?}");
                break;
            }
            if first.is_err() {
                bench.fetch(&bench.fetcher(), 300).await.unwrap();
            }
            let stored = bench.stored().await;
            assert!(stored == text() || stored == text_of_second, "kind {kind:?}, call {call}: {stored:?}");
        }
    }
}

#[tokio::test]
async fn a_deletion_ends_a_fetch_at_any_call() {
    for kind in KINDS {
        for call in 0.. {
            let bench = Arc::new(Bench::new(source(kind, &text())).await);
            let other = Arc::clone(&bench);
            bench.world.faults.freeze(call, async move {
                other.world.uploads.delete(&owner(), other.file).await.unwrap();
            });
            let fetched = bench.fetch(&bench.mortal(), 300).await;
            if bench.world.faults.thaw() {
                break;
            }
            if fetched.is_err() {
                assert_eq!(bench.fetch(&bench.fetcher(), 300).await.unwrap(), Fetched::Ended);
            }
            let row = bench.world.upload_rows.upload(bench.file, bench.world.clock.now()).await;
            match row {
                Err(PortError::NotFound) => assert!(!bench.is_outstanding(), "kind {kind:?}, call {call}"),
                _ => assert_eq!(bench.stored().await, text()),
            }
        }
    }
}

#[tokio::test]
async fn a_source_that_changes_is_noticed_and_nothing_of_it_is_kept() {
    let slow = |bench: &Bench| Some((bench.world.clock.clone(), Duration::from_secs(1)));
    let bench = Bench::new(Source::of(&text())).await;
    let bench = Bench { source: Arc::new(Source { clock: slow(&bench), ..Source::of(&text()) }), ..bench };
    assert_eq!(bench.fetch(&bench.fetcher(), 3).await.unwrap(), Fetched::Continues);
    bench.source.change(&text().replace('a', "b"));
    assert_eq!(bench.deliver(1).await, None);
    let (code, detail) = bench.failure().await;
    assert_eq!(code, "source_changed");
    assert!(detail.contains("has changed"), "{detail}");
    let row = bench.row().await;
    assert!(matches!(bench.world.uploads.complete(&owner(), bench.file).await, Err(UploadError::Failed(..))));
    assert_eq!(bench.deliver(2).await, None, "{row:?}");
    bench.world.uploads.delete(&owner(), bench.file).await.unwrap();
}

#[tokio::test]
async fn a_failure_is_noted_whatever_call_is_the_last_of_a_process() {
    let deaths = at_every_call(async |call, death: Death| {
        let bench = Bench::new(Source::of(&text())).await;
        bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
        let failure = rowmill_core::model::upload::FetchFailure { code: "c".into(), detail: "d".into() };
        bench.world.faults.plan(call, death);
        let dead = bench.mortal().give_up(&bench.message(), &failure).await.is_err();
        bench.fetcher().give_up(&bench.message(), &failure).await.unwrap();
        assert_eq!(bench.failure().await.0, "c");
        dead
    });
    assert!(deaths.await > 6);
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_tried_again_and_then_given_up() {
    let busy = |seconds: Option<u64>| RemoteError::Busy {
        detail: "The source answered with status 503.".to_owned(),
        retry_after: seconds.map(Duration::from_secs),
    };
    let bench = Bench::new(Source::of(&text())).await;
    bench.source.errors.lock().unwrap().extend([busy(None), busy(Some(7)), busy(Some(100_000)), busy(None)]);
    assert_eq!([bench.deliver(1).await, bench.deliver(2).await], [Some(5), Some(7)]);
    assert_eq!(bench.deliver(7).await, Some(300), "at most");
    bench.source.errors.lock().unwrap().push_front(busy(Some(0)));
    assert_eq!(bench.deliver(7).await, Some(5), "at least");
    assert_eq!(bench.view().await.status.as_str(), "fetching");
    assert_eq!(bench.deliver(8).await, None);
    let (code, detail) = bench.failure().await;
    assert_eq!(code, "source_unavailable");
    assert!(detail.contains("status 503") && detail.contains("the last of 8 tries"), "{detail}");
}

#[tokio::test]
async fn a_file_that_is_refused_or_does_not_fit_fails_at_once() {
    let refused = RemoteError::Refused("The source answered with status 404 (Not Found).".to_owned());
    let bench = Bench::new(Source::of("")).await;
    bench.source.errors.lock().unwrap().push_back(refused);
    assert_eq!(bench.deliver(1).await, None);
    let (code, detail) = bench.failure().await;
    assert_eq!(
        (code.as_str(), detail.as_str()),
        ("source_refused", "The source answered with status 404 (Not Found).")
    );
    for (size, code) in [(1001, "file_too_large"), (501, "file_too_large"), (495, "too_many_uploads")] {
        for kind in KINDS {
            let bench = Bench::new(source(kind, &"x".repeat(size))).await;
            let other = OutstandingUpload {
                file_guid: FileGuid(Uuid::from_u128(7)),
                bytes: 10,
                until: bench.world.clock.now() + OUTSTANDING_FOR,
            };
            let limits = OutstandingLimits { uploads: 9, bytes: 500 };
            bench.world.quotas.add(&owner(), &other, limits, bench.world.clock.now()).await.unwrap();
            assert_eq!(bench.deliver(1).await, None);
            assert_eq!(bench.failure().await.0, code);
            let parts = bench.world.objects.parts(&keys::upload(bench.file), "multipart-1").await;
            assert!(matches!(parts, Err(PortError::NotFound)), "no parts are left: {parts:?}");
        }
    }
    let bench = Bench::new(Source { knows_no_ranges: true, ..Source::of(&text()) }).await;
    let slow = Source { clock: Some((bench.world.clock.clone(), Duration::from_secs(100))), ..Source::of(&text()) };
    let bench = Bench { source: Arc::new(Source { knows_no_ranges: true, ..slow }), ..bench };
    assert_eq!(bench.deliver(1).await, None);
    assert_eq!(bench.failure().await.0, "source_too_slow");
    // One that gives a part now and then must not cost for ever.
    let bench = Bench::new(Source::of(&text())).await;
    bench.fetch(&bench.fetcher(), 0).await.unwrap_err();
    bench.world.clock.advance(OUTSTANDING_FOR);
    assert_eq!(bench.deliver(1).await, None);
    assert_eq!(
        bench.failure().await,
        ("source_too_slow".into(), "The source did not give the whole file within a day.".into())
    );
}

#[tokio::test]
async fn a_message_that_comes_again_and_again_is_no_dead_letter() {
    let bench = Bench::new(Source::of(&text())).await;
    assert_eq!(bench.deliver(16).await, None);
    let (code, detail) = bench.failure().await;
    assert_eq!(code, "internal_error");
    assert!(detail.contains("could not be stored in 16 tries"), "{detail}");
}

#[tokio::test]
async fn an_abort_during_the_first_look_at_a_source_that_refuses_leaves_nothing() {
    for call in 0.. {
        let bench = Arc::new(Bench::new(Source { knows_no_ranges: true, ..Source::of(&"x".repeat(1001)) }).await);
        let other = Arc::clone(&bench);
        bench.world.faults.freeze(call, async move { other.world.uploads.delete(&owner(), other.file).await.unwrap() });
        if let Err(FetchError::Failed(failure)) = bench.fetch(&bench.mortal(), 300).await {
            bench.mortal().give_up(&bench.message(), &failure).await.unwrap();
        }
        if bench.world.faults.thaw() {
            break;
        }
        assert!(!bench.is_outstanding(), "call {call}");
    }
}

#[tokio::test]
async fn an_empty_file_is_fetched() {
    for kind in KINDS {
        let bench = Bench::new(source(kind, "")).await;
        assert_eq!(bench.deliver(1).await, None);
        assert_eq!(bench.stored().await, "");
    }
}

#[tokio::test]
async fn nothing_is_ordered_from_other_hosts_nor_beyond_the_outstanding_uploads() {
    let bench = Bench::new(Source::of("")).await;
    let refused = bench.order("https://other.example/a").await;
    let says = |error: UploadError| error.to_string();
    assert!(refused.is_err_and(|error| says(error).contains("`source.url` cannot be fetched: its host is not in")));
    bench.order(URL).await.unwrap();
    assert!(matches!(bench.order(URL).await, Err(UploadError::TooMany { .. })));
    assert_eq!(keys::upload(bench.file), bench.row().await.key);
}
