//! Speed of the split of a file from a slow store: `cargo run --release --bin split_speed`.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use rowmill_core::model::spec::SourceFile;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::ports::{Clock, ObjectHead, Objects, PortError, PortResult};
use rowmill_core::text::{ChunkLimits, Dialect, Format, Position};
use rowmill_formats::{ReadAhead, SourceReader};
use rowmill_testing::in_memory::ManualClock;
use serde_json::json;
use split_job::cut::{FileCut, PlainText};
use split_job::split::SplitLimits;

const USAGE: &str = "split_speed [--reads COUNTS] [--range-mib SIZES] [--file-mib SIZE] [--latency-ms MS] [--rate MB]
            [--runs COUNT] [--json]

Splits a CSV file of 256 MiB with COUNTS (1,2,4,8,16) reads in flight of SIZES (that of split-job) MiB each. The store
answers after 50 ms, and then sends 90 MB a second on each connection; a rate of 0 has no limit. Prints the medians of
COUNT (5) runs, which take turns. Nothing but the read ahead differs, and nothing is dispatched.";

/// The length of a row of the file, with its line end.
const ROW_BYTES: usize = 64;

/// The file repeats this many bytes, whole rows of them. No range is longer.
const TILE_BYTES: u64 = 8 << 20;

/// A file in a store that is far away.
struct FarStore {
    /// Two tiles, so that every range of the file is a slice: reading copies nothing.
    tiles: Bytes,
    latency: Duration,
    /// Bytes a second on each connection, if they are limited.
    rate: Option<f64>,
}

impl FarStore {
    fn new(latency: Duration, rate: Option<f64>) -> Self {
        let mut tiles = String::new();
        for row in 0..TILE_BYTES as usize / ROW_BYTES {
            let line = format!("{row:08},Ada Lovelace,{row:x}@example.org,\"{} Main Street\",", row % 1000);
            tiles += &format!("{line:x<width$}\n", width = ROW_BYTES - 1);
        }
        assert_eq!(tiles.len() as u64, TILE_BYTES, "every row has the same length");
        Self { tiles: tiles.repeat(2).into(), latency, rate }
    }
}

#[async_trait]
impl Objects for FarStore {
    async fn head(&self, _key: &str) -> Result<ObjectHead, PortError> {
        Err(PortError::NotFound)
    }

    async fn read_range(&self, _key: &str, _etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let length = range.end - range.start;
        let sending = self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(length as f64 / rate));
        if !(self.latency + sending).is_zero() {
            tokio::time::sleep(self.latency + sending).await;
        }
        let start = (range.start % TILE_BYTES) as usize;
        Ok(self.tiles.slice(start..start + length as usize))
    }

    async fn read(&self, _key: &str) -> Result<Bytes, PortError> {
        Err(PortError::NotFound)
    }

    async fn put(&self, _key: &str, _of: &str, _bytes: Bytes, _sha256: Option<[u8; 32]>) -> PortResult<String> {
        Err(PortError::NotFound)
    }
}

struct Options {
    reads: Vec<usize>,
    ranges_mib: Vec<u64>,
    file_mib: u64,
    latency_ms: u64,
    megabytes_a_second: u64,
    runs: usize,
    json: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self {
            reads: vec![1, 2, 4, 8, 16],
            ranges_mib: vec![SplitLimits::default().range_bytes >> 20],
            file_mib: 256,
            latency_ms: 50,
            megabytes_a_second: 90,
            runs: 5,
            json: false,
        };
        while let Some(argument) = arguments.next() {
            if argument == "--json" {
                options.json = true;
                continue;
            }
            let value = arguments.next()?;
            match argument.as_str() {
                "--reads" => options.reads = list(&value)?.into_iter().map(|count| count as usize).collect(),
                "--range-mib" => options.ranges_mib = list(&value)?,
                "--file-mib" => options.file_mib = value.parse().ok()?,
                "--latency-ms" => options.latency_ms = value.parse().ok()?,
                "--rate" => options.megabytes_a_second = value.parse().ok()?,
                "--runs" => options.runs = value.parse().ok()?,
                _ => return None,
            }
        }
        let fits = options.ranges_mib.iter().all(|mib| (1..=TILE_BYTES >> 20).contains(mib));
        (fits && options.runs > 0).then_some(options)
    }
}

/// Numbers with commas between them.
fn list(text: &str) -> Option<Vec<u64>> {
    text.split(',').map(|number| number.parse().ok()).collect()
}

/// A row of the table.
struct Measured {
    ahead: ReadAhead,
    /// Megabytes a second of each run.
    speeds: Vec<f64>,
}

impl Measured {
    fn median(&self) -> f64 {
        let mut sorted = self.speeds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

/// Megabytes of the file that are split in a second.
async fn split(store: &Arc<FarStore>, file_bytes: u64, ahead: ReadAhead) -> f64 {
    let file = SourceFile { file_guid: None, key: "uploads/x".to_owned(), etag: "e".to_owned(), size: file_bytes };
    let dialect = Dialect { format: Format::Csv, delimiter: b',' };
    let limits = ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 };
    let clock = Arc::new(ManualClock::default());
    let deadline = clock.now() + Duration::from_secs(1);
    let began = Instant::now();
    let text = PlainText::Read(SourceReader::new(store.clone(), file, 0, ahead));
    let mut cut = FileCut::new(text, clock, (&dialect, limits), Position { offset: 0, row: 1 });
    let mut rows = 0;
    loop {
        let tally = cut.next(CHUNKS_PER_TALLY, deadline).await.expect("the store has the whole file");
        if tally.chunks.is_empty() {
            break;
        }
        rows += tally.chunks.iter().map(|chunk| u64::from(chunk.items)).sum::<u64>();
    }
    assert_eq!(rows, file_bytes / ROW_BYTES as u64, "every row is in a chunk");
    file_bytes as f64 / 1e6 / began.elapsed().as_secs_f64()
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let rate = (options.megabytes_a_second > 0).then_some(options.megabytes_a_second as f64 * 1e6);
    let store = Arc::new(FarStore::new(Duration::from_millis(options.latency_ms), rate));
    let aheads = options.ranges_mib.iter().flat_map(|mib| options.reads.iter().map(move |reads| (*mib, *reads)));
    let aheads = aheads.map(|(mib, reads)| ReadAhead { range_bytes: mib << 20, reads });
    let mut table: Vec<_> = aheads.map(|ahead| Measured { ahead, speeds: Vec::new() }).collect();
    for _ in 0..options.runs {
        for measured in &mut table {
            measured.speeds.push(split(&store, options.file_mib << 20, measured.ahead).await);
        }
    }
    if options.json {
        let rows = table.iter().map(|measured| {
            let ReadAhead { range_bytes, reads } = measured.ahead;
            let (median, runs) = (measured.median(), &measured.speeds);
            json!({ "readsInFlight": reads, "rangeBytes": range_bytes, "megabytesPerSecond": median, "runs": runs })
        });
        println!("{:#}", json!(rows.collect::<Vec<_>>()));
        return ExitCode::SUCCESS;
    }
    println!("range MiB  reads  held MiB    MB/s  slowest to fastest  to the first");
    let first = table.first().map_or(1.0, Measured::median);
    for measured in &table {
        let ReadAhead { range_bytes, reads } = measured.ahead;
        let (mib, median) = (range_bytes >> 20, measured.median());
        let least = measured.speeds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = measured.speeds.iter().copied().fold(0.0, f64::max);
        let (held, ratio) = (mib * (reads as u64 + 1), median / first);
        println!("{mib:>9}  {reads:>5}  {held:>8}  {median:>6.1}  {least:>7.1} to {most:<7.1}  {ratio:>12.2}");
    }
    ExitCode::SUCCESS
}
