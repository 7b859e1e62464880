use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::text::scan::span::OpenQuote;
use crate::text::test_files::hostile_csv;

/// Answers of a scanner to slices: its records, and after each slice where it is.
type Seen = (Vec<Span>, Vec<(u64, u64)>, Result<Option<Span>, OpenQuote>);

fn seen(bytes: &[u8], delimiter: u8, slices: &[usize], scan: impl Fn(&mut CsvScanner, &[u8], &mut Vec<Span>)) -> Seen {
    let mut scanner = CsvScanner::new(delimiter, 1000);
    let (mut records, mut places, mut rest) = (Vec::new(), Vec::new(), bytes);
    for &slice in slices.iter().chain([&usize::MAX]) {
        let (now, later) = rest.split_at(slice.min(rest.len()));
        scan(&mut scanner, now, &mut records);
        places.push((scanner.record_start(), scanner.offset()));
        rest = later;
    }
    let end = scanner.finish();
    (records, places, end)
}

fn by_strides(bytes: &[u8], delimiter: u8, slices: &[usize]) -> Seen {
    seen(bytes, delimiter, slices, |scanner, bytes, records| scanner.scan(bytes, |record| records.push(record)))
}

/// The same by the state machine alone.
fn by_state(bytes: &[u8], delimiter: u8, slices: &[usize]) -> Seen {
    seen(bytes, delimiter, slices, |scanner, bytes, records| {
        let end = scanner.scan_by_state(bytes, 0, Strides::Never, &mut |record| records.push(record));
        assert_eq!(end, bytes.len());
        scanner.offset += end as u64;
    })
}

/// Rows as files have them.
fn usual_rows() -> impl Strategy<Value = Vec<u8>> {
    const ROWS: [&[u8]; 8] = [
        b"1,a b,2024-01-31,x\n",
        b"17;\"a;b\";\"\";c\r\n",
        b"\"1\",\"say \"\"hi\"\", then go\",\"\"\"\",\"x\"\n",
        b"\"a\r\nb\n\",,,\"c\"\r\n",
        b"5\" pipe,a\"\n",
        b"\"a\"b,\"c\" ,d\n",
        b"\r\n",
        b"\n",
    ];
    (select(&ROWS[..]), 1_usize..25).prop_map(|(row, times)| row.repeat(times))
}

fn long_text() -> impl Strategy<Value = Vec<u8>> {
    (any::<bool>(), 60_usize..400).prop_map(|(quoted, length)| {
        let quote = if quoted { &b"\""[..] } else { b"" };
        [quote, &b"y".repeat(length), quote].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn strides_find_what_the_state_machine_finds(
        pieces in prop::collection::vec(prop_oneof![usual_rows(), usual_rows(), hostile_csv(), long_text()], 0..10),
        slices in prop::collection::vec(prop_oneof![0_usize..100, 0_usize..2000], 0..5),
        delimiter in select(&b",,,;;a \"\n\r\0\xff"[..]),
    ) {
        let bytes = pieces.concat();
        prop_assert_eq!(by_strides(&bytes, delimiter, &slices), by_state(&bytes, delimiter, &slices));
    }

    #[test]
    fn strides_find_what_the_state_machine_finds_in_any_bytes_that_matter(
        bytes in prop::collection::vec(select(&b"\"\",,\n\rab"[..]), 0..400), slice in 0_usize..200,
    ) {
        prop_assert_eq!(by_strides(&bytes, b',', &[slice]), by_state(&bytes, b',', &[slice]));
    }
}

#[test]
fn it_does_not_matter_where_a_stride_or_a_slice_ends() {
    let rows = [&b"ab,cd\r\n"[..], b"ab,cd\r", b"\"a\",\"b\"\"\"\"c\"\r\n", b"\"\",\"\"\r\r\n"];
    for row in rows {
        for open in [&b""[..], b"\"", b"x,\"a\"\"b"] {
            let bytes = [&row.repeat(500 / row.len()), open, &b"y".repeat(100)].concat();
            for split in 0..bytes.len() {
                assert_eq!(by_strides(&bytes, b',', &[split]), by_state(&bytes, b',', &[split]), "{split}");
                let later = &bytes[split.min(100)..];
                assert_eq!(by_strides(later, b',', &[]), by_state(later, b',', &[]), "from {split}");
            }
        }
    }
}

#[test]
fn usual_files_are_scanned_by_strides_to_their_last_bytes() {
    let stops = |row: &[u8]| {
        let (mut scanner, bytes) = (CsvScanner::new(b',', 0), row.repeat(5000));
        let (at, stop) = scanner.scan_strides(&bytes, 0, &mut |_| {});
        (bytes.len() - at < STRIDE, matches!(stop, Stop::AtEnd))
    };
    for row in
        [&b"1,a b,x\r\n"[..], b"\"1\",\"say \"\"hi\"\"\",\"a\nb\"\n", &[&b"\""[..], &[b'x'; 999], b"\"\n"].concat()]
    {
        assert_eq!(stops(row), (true, true));
    }
    assert_eq!(stops(b"5\" pipe,1\n"), (false, false));
    assert_eq!(stops(&[&[b'x'; 999][..], b"\n"].concat()), (false, false), "`memchr` is faster there");
}
