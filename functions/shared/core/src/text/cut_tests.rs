use proptest::prelude::*;

use super::test_files::*;
use super::{Chunk, ChunkCutter, ChunkLimits, ChunkMode, Dialect, Position, UnterminatedQuote};

/// A record found by a slow, simple reader: its start, the end of its content, the end of its terminator.
type Bounds = (u64, u64, u64);

fn with_terminator(file: &[u8], start: usize, content_end: usize) -> Bounds {
    let terminator = match &file[content_end..] {
        [b'\r', b'\n', ..] => 2,
        [_, ..] => 1,
        [] => 0,
    };
    (start as u64, content_end as u64, (content_end + terminator) as u64)
}

fn slow_csv_bounds(file: &[u8], delimiter: u8) -> (Vec<Bounds>, Option<UnterminatedQuote>) {
    let records = slow_csv_records(file, delimiter);
    let closed = records.iter().filter(|record| record.open_quote.is_none());
    let bounds: Vec<_> = closed.map(|record| with_terminator(file, record.start, record.content_end)).collect();
    let open = records.iter().find_map(|record| record.open_quote);
    let error = open.map(|quote| UnterminatedQuote { row: bounds.len() as u64 + 1, offset: quote as u64 });
    (bounds, error)
}

fn slow_jsonl_bounds(file: &[u8]) -> Vec<Bounds> {
    let mut bounds = Vec::new();
    let mut start = 0;
    for line in file.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len();
        if line.iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            let terminator = if line.ends_with(b"\r\n") { 2 } else { usize::from(line.ends_with(b"\n")) };
            bounds.push((start as u64, (end - terminator) as u64, end as u64));
        }
        start = end;
    }
    bounds
}

/// Checks every documented property of chunks against the real bounds of the records. `end` is where the last chunk
/// must end.
fn check_chunks(chunks: &[Chunk], records: &[Bounds], limits: ChunkLimits, end: u64) {
    let mut next = 0;
    for chunk in chunks {
        assert_eq!(chunk.first_row, next as u64 + 1);
        let items = &records[next..next + chunk.items as usize];
        next += items.len();
        let next_start = records.get(next).map_or(end, |record| record.0);
        let too_long = |record: &Bounds| record.1 - record.0 > limits.max_record_bytes;

        assert_eq!(chunk.offset, items[0].0);
        let last_end = items[items.len() - 1].2;
        let capped = last_end.max(chunk.offset.saturating_add(limits.max_bytes));
        assert_eq!(chunk.offset + chunk.length, next_start.min(capped));
        assert!(items.len() <= 1 || chunk.length <= limits.max_bytes);
        assert!(chunk.items <= limits.max_items.max(1));
        assert_eq!(chunk.mode == ChunkMode::TooLong, items.iter().any(too_long));
        assert!(chunk.mode == ChunkMode::Items || items.len() == 1);
        if let Some(following) = records.get(next) {
            let full = chunk.items >= limits.max_items || following.2 - chunk.offset > limits.max_bytes;
            assert!(full || too_long(following) || chunk.mode == ChunkMode::TooLong, "closed for no reason");
        }
    }
    assert_eq!(next, records.len(), "every record is in a chunk");
}

fn check_every_restart(file: &[u8], dialect: &Dialect, limits: ChunkLimits, slices: &[usize]) {
    let (chunks, end) = cut(file, dialect, limits, START, &[]);
    for (index, chunk) in chunks.iter().enumerate() {
        let border = Position { offset: chunk.offset + chunk.length, row: chunk.first_row + u64::from(chunk.items) };
        let (later, later_end) = cut(file, dialect, limits, border, slices);
        assert_eq!(later, chunks[index + 1..]);
        assert_eq!(later_end, end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn csv_chunks_contain_the_records_that_a_slow_reader_finds(
        file in hostile_csv(), limits in any_limits(), slices in any_splits(), delimiter in prop::sample::select(&b",;a"[..]),
    ) {
        let dialect = csv(delimiter);
        let (chunks, end) = cut(&file, &dialect, limits, START, &slices);
        let (records, error) = slow_csv_bounds(&file, delimiter);
        let chunks_end = error.map_or(file.len(), |_| {
            slow_csv_records(&file, delimiter).iter().find(|record| record.open_quote.is_some()).expect("it is open").start
        });
        check_chunks(&chunks, &records, limits, chunks_end as u64);
        let position = Position { offset: file.len() as u64, row: records.len() as u64 + 1 };
        prop_assert_eq!(end, error.map_or(Ok(position), Err));
    }

    #[test]
    fn csv_chunks_contain_as_many_records_as_the_csv_crate_reads(
        file in hostile_csv(), limits in any_limits(), slices in any_splits(), delimiter in prop::sample::select(&b",;a"[..]),
    ) {
        let (chunks, end) = cut(&file, &csv(delimiter), limits, START, &slices);
        let items: usize = chunks.iter().map(|chunk| chunk.items as usize).sum();
        // The crate treats everything after an unclosed quote as one more record.
        prop_assert_eq!(items + usize::from(end.is_err()), csv_crate_records(&file, delimiter).len());
        for chunk in chunks {
            let bytes = &file[chunk.offset as usize..(chunk.offset + chunk.length) as usize];
            prop_assert_eq!(csv_crate_records(bytes, delimiter).len(), chunk.items as usize);
        }
    }

    #[test]
    fn cutting_can_be_resumed_at_every_boundary(
        file in hostile_csv(), lines in hostile_jsonl(), limits in any_limits(), slices in any_splits(),
    ) {
        check_every_restart(&file, &csv(b','), limits, &slices);
        check_every_restart(&lines, &jsonl(), limits, &slices);
    }

    #[test]
    fn jsonl_chunks_contain_the_lines_that_are_not_blank(
        file in hostile_jsonl(), limits in any_limits(), slices in any_splits(),
    ) {
        let (chunks, end) = cut(&file, &jsonl(), limits, START, &slices);
        let records = slow_jsonl_bounds(&file);
        check_chunks(&chunks, &records, limits, file.len() as u64);
        prop_assert_eq!(end, Ok(Position { offset: file.len() as u64, row: records.len() as u64 + 1 }));
    }

    #[test]
    fn any_bytes_are_cut_without_a_panic(
        file in prop::collection::vec(any::<u8>(), 0..400), limits in any_limits(), slices in any_splits(),
        delimiter in any::<u8>(), lines in any::<bool>(),
    ) {
        let dialect = if lines { jsonl() } else { csv(delimiter) };
        let whole = cut(&file, &dialect, limits, START, &[]);
        prop_assert_eq!(cut(&file, &dialect, limits, START, &slices), whole);
    }
}

#[test]
fn a_chunk_closes_at_its_item_limit() {
    let (chunks, _) = cut(b"a\nb\nc\nd\ne\n", &csv(b','), limits(2, u64::MAX, u64::MAX), START, &[]);
    assert_eq!(chunks.iter().map(|chunk| (chunk.first_row, chunk.items)).collect::<Vec<_>>(), [(1, 2), (3, 2), (5, 1)]);
}

#[test]
fn a_record_longer_than_a_chunk_gets_a_chunk_of_its_own() {
    let (chunks, _) = cut(b"a\nbbbbbbbbbb\nc\n", &csv(b','), limits(9, 4, 100), START, &[]);
    assert_eq!(chunks.iter().map(|chunk| chunk.length).collect::<Vec<_>>(), [2, 11, 2]);
    assert!(chunks.iter().all(|chunk| chunk.mode == ChunkMode::Items));
}

#[test]
fn a_record_over_the_record_limit_is_a_too_long_chunk_and_cutting_continues() {
    let file = [b"a\n".as_slice(), &[b'x'; 101], b"\r\n\r\n", &[b'y'; 100], b"\r\nc\n"].concat();
    let (chunks, _) = cut(&file, &csv(b','), limits(9, 1000, 100), START, &[]);
    let seen: Vec<_> = chunks.iter().map(|chunk| (chunk.first_row, chunk.items, chunk.length, chunk.mode)).collect();
    assert_eq!(seen, [(1, 1, 2, ChunkMode::Items), (2, 1, 105, ChunkMode::TooLong), (3, 2, 104, ChunkMode::Items)]);
}

#[test]
fn an_unclosed_quote_is_reported_with_its_row_and_byte_after_the_good_chunks() {
    let mut cutter = ChunkCutter::new(&csv(b','), no_limits(), START);
    let mut chunks = Vec::new();
    cutter.push(b"a,b\n\n1,\"two\"\n3,\"fo", &mut chunks);
    cutter.push(b"ur\n5,6\n", &mut chunks);
    assert_eq!(cutter.finish(&mut chunks), Err(UnterminatedQuote { row: 3, offset: 15 }));
    assert_eq!(chunks.iter().map(|chunk| (chunk.offset, chunk.length, chunk.items)).collect::<Vec<_>>(), [(0, 13, 2)]);
    assert_eq!(cutter.position(), Position { offset: 13, row: 3 });
}

#[test]
fn an_empty_file_or_a_file_of_blank_lines_has_no_chunks() {
    for file in [&b""[..], b"\n", b"\r\n\r\n\n"] {
        for dialect in [csv(b','), jsonl()] {
            let end = Position { offset: file.len() as u64, row: 1 };
            assert_eq!(cut(file, &dialect, no_limits(), START, &[1]), (vec![], Ok(end)));
        }
    }
}

#[test]
fn many_blank_lines_do_not_make_a_chunk_longer_than_its_limit() {
    let file = [b"a\n".as_slice(), &[b'\n'; 5000], b"b\n"].concat();
    let (chunks, _) = cut(&file, &csv(b','), limits(9, 100, 100), START, &[]);
    assert_eq!(chunks.iter().map(|chunk| (chunk.offset, chunk.length)).collect::<Vec<_>>(), [(0, 100), (5002, 2)]);
}

#[test]
fn the_unicode_file_is_cut_into_exactly_its_items() {
    let file = unicode_csv();
    let (chunks, end) = cut(&file, &csv(b','), limits(500, 1 << 20, 1 << 20), START, &[100_000, 1, 333_333]);
    assert_eq!(chunks.iter().map(|chunk| chunk.items).sum::<u32>(), 11_232, "the header counts as a record here");
    assert_eq!(chunks.len(), 23);
    assert_eq!(end, Ok(Position { offset: file.len() as u64, row: 11_233 }));
    check_every_restart(&file, &csv(b','), limits(500, 1 << 20, 1 << 20), &[7]);
}
