use super::limits::{ROW_BYTES, TIMES};
use super::*;

const WORKS: [Work; 3] = [Work::Validate, Work::Import, Work::Slow];

fn seconds(scenario: &Scenario) -> f64 {
    run(scenario).seconds.expect("not too long")
}

/// The model itself asserts that each row is processed once and each chunk committed once.
#[test]
fn every_row_is_processed_and_every_chunk_committed_once() {
    for work in WORKS {
        for rows in [1, 499, 500, 501, 31_999, 32_001, 777_777] {
            for order in [Order::Sent, Order::Shuffled] {
                for (workers, chunks_per_commit, tally_keys) in [(1, 1, 1), (50, 10, 1), (1000, 3, 8)] {
                    let job = Scenario { workers, chunks_per_commit, tally_keys, order, ..Scenario::new(rows, work) };
                    assert!(run(&job).seconds.is_some_and(f64::is_finite), "{job:?}");
                }
            }
        }
    }
}

#[test]
fn objects_are_listed_opened_and_never_share_a_chunk() {
    let job = Scenario { files: 1000, chunk_min: 1, ..Scenario::new(1_000_000, Work::Validate) };
    assert_eq!((job.chunks(), job.chunk_items()), (2000, 500));
    let one = Scenario { files: 1, ..job };
    assert!(seconds(&job) > seconds(&one).max(TIMES.list + 1000.0 * TIMES.s3 / limits::FILES_AHEAD));
    let small = Scenario { rows: 10_000, ..job };
    assert_eq!((small.chunks(), small.chunk_items()), (1000, 10));
}

#[test]
fn the_same_scenario_gives_the_same_result() {
    let job = Scenario { order: Order::Shuffled, ..Scenario::new(3_000_000, Work::Validate) };
    assert_eq!(seconds(&job).to_bits(), seconds(&job).to_bits());
}

/// One chunk, one worker: every step once, one after the other.
#[test]
fn the_time_of_one_chunk_is_the_sum_of_its_steps() {
    let job = Scenario { workers: 1, ..Scenario::new(500, Work::Validate) };
    let bytes = 500.0 * ROW_BYTES;
    let split = TIMES.delivery + TIMES.cold_start + bytes / job.split_bytes + TIMES.s3 + 3.0 * TIMES.dynamodb;
    let sent = split + TIMES.sqs;
    let read = TIMES.delivery + TIMES.cold_start + TIMES.dynamodb + TIMES.s3 + bytes / limits::NETWORK_BYTES;
    let processed = 500.0 * 4e-6 / limits::PROCESSOR;
    let (commit, fold) = (TIMES.dynamodb, TIMES.dynamodb);
    let expected = sent + read + processed + commit + fold + TIMES.end;
    // The writes of the split take some thousandths of a second of the key.
    assert!((seconds(&job) - expected).abs() < 0.01, "{} and {expected}", seconds(&job));
}

#[test]
fn the_limit_that_binds_is_named() {
    let limit = |scenario: Scenario| run(&scenario).limit;
    let validate = Scenario { workers: 1000, ..Scenario::new(100_000_000, Work::Validate) };
    let fast = Scenario { split_bytes: 1e12, ..validate };
    assert_eq!(limit(validate), "writes of the job's key");
    assert_eq!(limit(Scenario { chunk_max: 4000, ..validate }), "the splitter");
    assert_eq!(limit(Scenario { workers: 1, ..validate }), "workers");
    let splitter = Scenario { chunks_per_commit: 10, ..fast };
    assert_eq!(limit(splitter), "the splitter", "it waits for five answers for each tally");
    let import = Scenario { workers: 1000, warm_table: true, ..Scenario::new(10_000_000, Work::Import) };
    assert_eq!(limit(import), "writes of the records table");
    assert_eq!(limit(Scenario { buckets: 16, ..import }), "writes of the records' keys");
    assert_eq!(limit(Scenario { buckets: 64, table_writes: 1e6, ..import }), "writes of the records' keys");
    assert_eq!(limit(Scenario { workers: 2, ..Scenario::new(100_000, Work::Slow) }), "workers");
    assert_eq!(limit(Scenario::new(1000, Work::Validate)), "start and end");
    assert_eq!(limit(Scenario::new(10_000_000_000, Work::Import)), "65,536 tallies");
}

/// With chunks of the same size: more workers have smaller ones where chunks may grow.
#[test]
fn more_workers_are_never_slower() {
    for work in WORKS {
        for rows in [20_000, 1_000_000] {
            let mut before = f64::INFINITY;
            for workers in [1, 2, 5, 10, 50, 200, 1000] {
                let now = seconds(&Scenario { workers, ..Scenario::new(rows, work) });
                assert!(
                    now <= before * 1.02,
                    "{work:?}, {rows} rows: {workers} workers take {now} s, fewer {before} s"
                );
                before = now;
            }
        }
    }
}

#[test]
fn a_higher_limit_is_never_slower() {
    let import = Scenario { workers: 200, ..Scenario::new(3_000_000, Work::Import) };
    let few = Scenario { buckets: 16, ..import };
    let warm = Scenario { warm_table: true, ..import };
    assert!(seconds(&Scenario { table_writes: 1e6, ..warm }) < seconds(&warm));
    assert!(seconds(&import) <= seconds(&few) * 1.001);
    assert!(seconds(&warm) < seconds(&import));
    let validate = Scenario { workers: 1000, ..Scenario::new(30_000_000, Work::Validate) };
    assert!(seconds(&Scenario { chunks_per_commit: 10, ..validate }) < seconds(&validate));
    assert!(seconds(&Scenario { tally_keys: 8, ..validate }) < seconds(&validate));
}

#[test]
fn every_source_has_an_address() {
    for source in SOURCES {
        let known = ["https://docs.aws.amazon.com/", "https://repost.aws/"];
        assert!(known.iter().any(|address| source.url.starts_with(address)), "{source:?}");
    }
}
