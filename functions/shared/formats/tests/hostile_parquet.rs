//! Forged Parquet files: each one ends in an error, with no more memory than a few pages take.

mod support;

use parquet::basic::Encoding;
use parquet::file::properties::EnabledStatistics;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;
use rowmill_core::model::packing::Packing;
use rowmill_formats::{DecodeError, Limits};
use support::forged::*;
use support::memory::{Counting, peak_of};
use support::parquet::{Column, Values, codecs, file, optional, required, texts, v1, v2};
use support::thrift::{Struct, push_varint};
use support::{file_text, file_text_bytes, gzip};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1024 * 1024;

/// The error of decoding the file. Checks that decoding takes less memory than `peak_max`.
fn refused(bytes: Vec<u8>, peak_max: usize) -> DecodeError {
    let limits = Limits { ratio_from_bytes: 8 * MIB as u64, ..Limits::default() };
    let (result, peak) = peak_of(|| file_text_bytes(&Packing::Parquet, bytes, &limits));
    assert!(peak < peak_max, "{peak} bytes were held");
    let error = result.expect_err("the file lies");
    assert!(!error.is_source(), "{error}");
    error
}

#[test]
fn the_honest_form_of_these_files_is_read() {
    let page = data_page(1, PLAIN, 4, &7_i32.to_le_bytes());
    assert_eq!(file_text(&Packing::Parquet, Forged::new(page).bytes(), &Limits::default()).unwrap(), "{\"a\":7}\n");
}

#[test]
fn a_page_that_decompresses_to_more_than_it_declares_is_corrupt() {
    let bomb = gzip(&vec![0; 64 * MIB]);
    let page = data_page(1, PLAIN, 4, &bomb);
    let error = refused(Forged { codec: GZIP, ..Forged::new(page) }.bytes(), MIB);
    assert_eq!(error.code(), "corrupt_file");
}

#[test]
fn a_page_of_two_gigabytes_is_rejected_before_memory_is_allocated() {
    let page = data_page(1, PLAIN, i32::MAX as usize, &gzip(b"abcd"));
    let error = refused(Forged { codec: GZIP, ..Forged::new(page) }.bytes(), MIB);
    assert_eq!(error.code(), "unsupported_parquet");
    assert!(error.to_string().contains("134217728 bytes of pages"), "{error}");
}

#[test]
fn an_uncompressed_page_counts_with_its_stored_size_not_its_declared_size() {
    let page = data_page(1, PLAIN, 4, &vec![0; MIB]);
    let limits = Limits { parquet_pages_max_bytes: MIB as u64 - 1, ..Limits::default() };
    let error = file_text_bytes(&Packing::Parquet, Forged::new(page).bytes(), &limits).expect_err("the page lies");
    assert_eq!(error.code(), "unsupported_parquet");
}

#[test]
fn pages_that_decompress_to_no_text_are_stopped_by_their_ratio() {
    let content = gzip(&vec![0; 4 * MIB]);
    let pages = data_page(1, PLAIN, 4 * MIB, &content).repeat(1000);
    let error = refused(Forged { codec: GZIP, rows: 1000, values: 1000, ..Forged::new(pages) }.bytes(), 16 * MIB);
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { .. }), "{error}");
}

#[test]
fn a_list_of_a_billion_elements_in_a_few_bytes_is_rejected() {
    // Repetition levels: one 0, then a billion 1s; definition levels: as many 1s.
    let mut rep = vec![2, 0];
    push_varint(&mut rep, 1_000_000_000 << 1);
    rep.push(1);
    let mut def = Vec::new();
    push_varint(&mut def, 1_000_000_001 << 1);
    def.push(1);
    let mut content = Vec::new();
    for levels in [rep, def] {
        content.extend((levels.len() as u32).to_le_bytes());
        content.extend(levels);
    }
    content.extend(7_i32.to_le_bytes());
    let page = data_page(1_000_000_001, PLAIN, content.len(), &content);
    let error = refused(Forged { repetition: REPEATED, values: 1_000_000_001, ..Forged::new(page) }.bytes(), MIB);
    assert_eq!(error.code(), "record_too_long");
    assert!(error.to_string().contains("A list in row 1"), "{error}");
}

#[test]
fn a_dictionary_of_two_billion_values_in_a_few_bytes_is_rejected() {
    let dictionary = Struct::default().int(1, i32::MAX.into()).int(2, PLAIN);
    let page = [header(2, 4, 4).child(7, dictionary).finish(), b"abcd".to_vec()].concat();
    let error = refused(Forged { kind: BYTE_ARRAY, ..Forged::new(page) }.bytes(), MIB);
    assert_eq!(error.code(), "unsupported_parquet");
}

#[test]
fn two_billion_lengths_in_a_few_bytes_are_rejected() {
    // Blocks of 2^31 values in one miniblock of width 0, each a few bytes long.
    let mut run = Vec::new();
    for number in [1 << 31, 1, 0x7FFF_FF00, 0, 0] {
        push_varint(&mut run, number);
    }
    run.push(0);
    for encoding in [6, 7] {
        let page = data_page(0x7FFF_FF00, encoding, run.len(), &run);
        let lie = Forged { kind: BYTE_ARRAY, values: 0x7FFF_FF00, rows: 0x7FFF_FF00, ..Forged::new(page) };
        let error = refused(lie.bytes(), MIB);
        assert!(["unsupported_parquet", "corrupt_file"].contains(&error.code()), "{error}");
    }
}

#[test]
fn values_that_repeat_everything_before_them_are_read_in_small_batches() {
    // DELTA_BYTE_ARRAY: 4096 values. The first has 1 MiB, and all others repeat it as their prefix without a suffix.
    let count = 4096_u64;
    let delta = |first: u64, delta_of_second: i64| {
        let mut run = Vec::new();
        for number in [128 * 1024, 1, count, first << 1, 0] {
            push_varint(&mut run, number);
        }
        // One block of deltas of 0, except the delta of the second value if that is not 0: widths of 32 bits.
        if delta_of_second == 0 {
            run.push(0);
        } else {
            run.pop();
            push_varint(&mut run, (delta_of_second << 1 ^ delta_of_second >> 63) as u64);
            run.push(32);
            let rest = (-delta_of_second) as u32;
            run.extend(0_u32.to_le_bytes());
            run.extend((2..count).flat_map(|_| rest.to_le_bytes()));
            run.resize(run.len() + 4 * (128 * 1024 - count as usize + 1), 0);
        }
        run
    };
    let prefixes = delta(0, MIB as i64);
    let suffixes = delta(MIB as u64, -(MIB as i64));
    let content = [prefixes, suffixes, vec![b'x'; MIB]].concat();
    let page = data_page(count as i64, 7, content.len(), &content);
    let lie = Forged { kind: BYTE_ARRAY, values: count as i64, rows: count as i64, ..Forged::new(page) };
    let error = refused(lie.bytes(), 48 * MIB);
    assert!(["expands_too_far", "corrupt_file"].contains(&error.code()), "{error}");
}

#[test]
fn a_wrong_number_of_rows_is_corrupt() {
    let page = data_page(1, PLAIN, 4, &7_i32.to_le_bytes());
    for rows in [0, 2, i64::MAX] {
        let error = refused(Forged { rows, ..Forged::new(page.clone()) }.bytes(), MIB);
        assert_eq!(error.code(), "corrupt_file", "{error}");
    }
}

#[test]
fn a_page_beyond_the_end_of_the_file_is_corrupt() {
    let mut pages = data_page(1, PLAIN, 4, &7_i32.to_le_bytes());
    let data = Struct::default().int(1, 1).int(2, PLAIN).int(3, RLE).int(4, RLE);
    pages.extend(header(0, 1_000_000, 1_000_000).child(5, data).finish());
    let error = refused(Forged { rows: 2, values: 2, ..Forged::new(pages) }.bytes(), MIB);
    assert!(error.to_string().contains("a page is longer than the file"), "{error}");
}

#[test]
fn the_error_names_an_unsupported_codec() {
    let error = refused(Forged { codec: 3, ..Forged::new(Vec::new()) }.bytes(), MIB);
    assert_eq!(
        error.to_string(),
        "The Parquet file is compressed with LZO, which is not supported. Write it with Snappy, gzip, Zstandard, LZ4 or \
         Brotli, or without compression."
    );
}

#[test]
fn a_schema_that_is_nested_too_deeply_is_rejected_before_it_is_parsed() {
    let group = || Struct::default().int(3, REQUIRED).text(4, "g").int(5, 1);
    let leaf = Struct::default().int(1, INT32).int(3, REQUIRED).text(4, "a");
    let schema = (0..200_000).map(|_| group()).chain([leaf]);
    let footer = Struct::default().int(1, 1).children(2, schema).int(3, 0).children(4, []);
    let error = refused(with_footer(Vec::new(), footer), 16 * MIB);
    assert_eq!(error.code(), "unsupported_parquet");
}

#[test]
fn a_schema_that_declares_two_billion_columns_is_corrupt() {
    let schema = [Struct::default().text(4, "rows").int(5, i32::MAX.into())];
    let footer = Struct::default().int(1, 1).children(2, schema).int(3, 0).children(4, []);
    assert_eq!(refused(with_footer(Vec::new(), footer), MIB).code(), "corrupt_file");
}

#[test]
fn the_error_says_that_a_file_is_encrypted() {
    let algorithm = Struct::default().child(1, Struct::default());
    let footer = footer_of([]).child(8, algorithm);
    assert!(refused(with_footer(Vec::new(), footer), MIB).to_string().contains("is encrypted"));
    let mut bytes = Forged::new(Vec::new()).bytes();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(b"PARE");
    assert!(refused(bytes, MIB).to_string().contains("is encrypted"));
}

/// A decimal column of this scale and precision, by its logical type or by the older converted type.
fn decimal(is_logical: bool, scale: i64, precision: i64) -> Forged {
    let page = data_page(1, PLAIN, 4, &7_i32.to_le_bytes());
    let meaning = move |column: Struct| match is_logical {
        true => column
            .int(7, scale)
            .int(8, precision)
            .child(10, Struct::default().child(5, Struct::default().int(1, scale).int(2, precision))),
        false => column.int(6, 5).int(7, scale).int(8, precision),
    };
    Forged { meaning: Box::new(meaning), ..Forged::new(page) }
}

#[test]
fn a_decimal_with_a_scale_or_precision_out_of_range_is_refused_by_name() {
    const MAX: i64 = i32::MAX as i64;
    for is_logical in [true, false] {
        let honest = decimal(is_logical, 2, 9).bytes();
        assert_eq!(file_text(&Packing::Parquet, honest, &Limits::default()).unwrap(), "{\"a\":\"0.07\"}\n");
        for (scale, precision) in [(MAX, MAX), (MAX, 9), (10, 9), (-1, 9), (0, 0), (77, 77), (0, MAX)] {
            let error = refused(decimal(is_logical, scale, precision).bytes(), MIB);
            let is_named = error.code() == "unsupported_parquet" && error.to_string().contains("decimal column");
            // The schema parser of the crate `parquet` refuses some of them first.
            assert!(is_named || error.code() == "corrupt_file", "{scale} {precision}: {error}");
        }
        // Bytes of any length, of which the schema parser checks no precision.
        let bomb = Forged { kind: BYTE_ARRAY, ..decimal(is_logical, MAX, MAX) };
        let error = refused(bomb.bytes(), MIB);
        assert!(error.to_string().contains("precision 2147483647 and scale 2147483647"), "{error}");
    }
}

#[test]
fn a_fixed_length_of_two_gigabytes_or_none_is_rejected() {
    for encoding in [PLAIN, 7, 9] {
        for length in [Some(i64::from(i32::MAX)), Some(0), Some(-1), None] {
            let page = data_page(i32::MAX.into(), encoding, 4, b"abcd");
            let lie = Forged { kind: FIXED_LEN_BYTE_ARRAY, length, values: i32::MAX.into(), ..Forged::new(page) };
            let error = refused(lie.bytes(), MIB);
            assert!(["unsupported_parquet", "corrupt_file"].contains(&error.code()), "{encoding} {length:?}: {error}");
        }
    }
}

#[test]
fn millions_of_row_groups_or_chunks_in_a_few_megabytes_are_rejected() {
    let groups = vec![Struct::default(); 2_000_000];
    let chunks = vec![Struct::default().child(3, Struct::default()); 2_000_000];
    let of_chunks = vec![Struct::default().children(1, chunks)];
    for groups in [groups, of_chunks] {
        let error = refused(with_footer(Vec::new(), footer_of(groups)), 100 * MIB);
        assert_eq!(error.code(), "unsupported_parquet");
    }
}

/// The options for writing a small file that contains most features.
#[derive(Clone, Debug)]
struct Ways {
    codec: usize,
    encoding: Encoding,
    newer: bool,
    with_dictionary: bool,
}

fn any_ways() -> impl Strategy<Value = Ways> {
    let encodings = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
    let choices = (0..codecs().len(), proptest::sample::select(encodings.to_vec()), any::<bool>(), any::<bool>());
    choices.prop_map(|(codec, encoding, newer, with_dictionary)| Ways { codec, encoding, newer, with_dictionary })
}

impl Ways {
    fn file(&self) -> Vec<u8> {
        let properties = if self.newer { v2() } else { v1() }
            .set_compression(codecs()[self.codec])
            .set_dictionary_enabled(self.with_dictionary)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_encoding(ColumnPath::from("text"), self.encoding)
            .set_column_encoding(ColumnPath::from("number"), Encoding::DELTA_BINARY_PACKED)
            .set_column_encoding(ColumnPath::from("four"), Encoding::DELTA_BYTE_ARRAY)
            .set_column_encoding(ColumnPath::from("share"), Encoding::BYTE_STREAM_SPLIT)
            .set_data_page_row_count_limit(3)
            .set_write_batch_size(1);
        let columns = vec![
            optional(texts(&["a", "bb", "a"]), vec![1, 0, 1, 1]),
            required(Values::Int64(vec![7, -7, 1 << 40, 0])),
            required(Values::FixedBytes([b"aaaa", b"aaab", b"b\0bb", b"cccc"].map(|four| four.to_vec()).to_vec())),
            required(Values::Double(vec![0.0, 1.5, -2.5, 1e300])),
            required(Values::Boolean(vec![true, false, true, true])),
            Column {
                values: Values::Int32(vec![1, 2, 3, 4]),
                def: vec![2, 2, 1, 0, 2, 2],
                rep: vec![0, 1, 0, 0, 0, 1],
            },
        ];
        let schema = "message rows {
            optional binary text (UTF8); required int64 number; required fixed_len_byte_array(4) four;
            required double share; required boolean flag;
            optional group list (LIST) { repeated group list { required int32 element; } }
        }";
        file(schema, properties, &[columns.clone(), columns])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_damaged_file_ends_in_text_or_an_error(
        ways in any_ways(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = ways.file();
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            // Keep the tail valid, so that the bytes before it are read.
            bytes.remove(cut.index(bytes.len() - 8));
        }
        let limits = Limits { parquet_pages_max_bytes: 4 * MIB as u64, ..support::tight() };
        let (result, peak) = peak_of(|| file_text_bytes(&Packing::Parquet, bytes, &limits));
        prop_assert!(peak < 16 * MIB, "{} bytes were held", peak);
        match result {
            Ok(text_bytes) => prop_assert!(text_bytes < MIB as u64),
            Err(error) => prop_assert!(!error.is_source(), "{error}"),
        }
    }
}
