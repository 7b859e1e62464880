//! Decoding of compressed text and of text in other charsets.

mod support;

use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;

use proptest::prelude::*;
use rowmill_core::model::packing::{Charset, Compression, TextPacking};
use rowmill_formats::{BLOCK_MAX_BYTES, DecodeError, Limits, decode_prefix, decode_stream};
use support::{gzip, packed, stream_text, tight, utf16, zstd};

const GZIP: Option<Compression> = Some(Compression::Gzip);
const ZSTD: Option<Compression> = Some(Compression::Zstd);

fn decoded(compression: Option<Compression>, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    stream_text(packed(compression, None), bytes, &Limits::default())
}

/// Text that does not compress well, so that it has many compressed blocks.
fn lines(count: u64) -> Vec<u8> {
    (0..count).flat_map(|row| format!("{row},{}\n", row.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into_bytes()).collect()
}

#[test]
fn concatenated_members_or_frames_are_one_text() {
    let (one, two) = (lines(10), lines(50_000));
    let both = [one.clone(), two.clone()].concat();
    assert_eq!(decoded(GZIP, &[gzip(&one), gzip(b""), gzip(&two)].concat()).unwrap(), both);
    assert_eq!(decoded(ZSTD, &[zstd(&one), zstd(b""), zstd(&two)].concat()).unwrap(), both);
    let skippable = [b"\x50\x2a\x4d\x18\x04\0\0\0skip".as_slice(), &zstd(&two)].concat();
    assert_eq!(decoded(ZSTD, &skippable).unwrap(), two);
    assert_eq!(decoded(None, &both).unwrap(), both);
}

#[test]
fn a_text_of_exactly_full_blocks_ends_with_a_full_block() {
    for bytes in [BLOCK_MAX_BYTES - 1, BLOCK_MAX_BYTES, BLOCK_MAX_BYTES + 1, 2 * BLOCK_MAX_BYTES] {
        let text = &lines(100_000)[..bytes];
        assert_eq!(decoded(GZIP, &gzip(text)).unwrap(), text);
    }
    assert_eq!(decoded(GZIP, &gzip(b"")).unwrap(), b"");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_corrupt() {
    for (compression, whole) in [(GZIP, gzip(&lines(300))), (ZSTD, zstd(&lines(300)))] {
        for end in 0..whole.len() {
            let error = decoded(compression, &whole[..end]).map(|text| text.len()).expect_err("the file is cut short");
            assert_eq!(error.code(), "corrupt_file", "{end}: {error}");
        }
    }
    let error = decoded(GZIP, &gzip(&lines(300))[..100]).map(|text| text.len()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The gzip file is damaged at byte 100: data is missing at its end. Check that the original file \
         opens without errors, export it again, and upload the new file."
    );
}

/// Bytes behind the last member or frame: garbage, zeros of a tape block, one line end.
const FOLLOWING: [&[u8]; 4] = [b"garbage and more of it", &[0; 512], b"\n", b"\x1f"];

#[test]
fn bytes_after_the_last_gzip_member_are_ignored_and_noted_as_by_gzip() {
    let whole = [gzip(b"a\n"), gzip(b"b\n")].concat();
    for rest in FOLLOWING {
        let bytes = [whole.as_slice(), rest].concat();
        assert_eq!(decoded(GZIP, &bytes).unwrap(), b"a\nb\n");
        for capacity in [1, 2, 7, 8192] {
            let reader = BufReader::with_capacity(capacity, bytes.as_slice());
            let end =
                decode_stream(packed(GZIP, None), reader, &Limits::default(), |_| ControlFlow::Continue(())).unwrap();
            assert_eq!(end.ignored_from, Some(whole.len() as u64), "{rest:?}");
        }
    }
    let clean =
        decode_stream(packed(GZIP, None), whole.as_slice(), &Limits::default(), |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(clean.ignored_from, None);
}

#[test]
fn a_damaged_gzip_member_after_a_good_one_is_corrupt() {
    for rest in [b"\x1f\x8b".as_slice(), b"\x1f\x8bnonsense and more of it"] {
        let bytes = [&gzip(b"a\n"), rest].concat();
        let error = decoded(GZIP, &bytes).map(|text| text.len()).expect_err("a member begins");
        assert_eq!(error.code(), "corrupt_file");
    }
}

#[test]
fn data_after_the_last_zstd_frame_is_corrupt() {
    for rest in FOLLOWING {
        let bytes = [&zstd(b"a\n"), rest].concat();
        let error = decoded(ZSTD, &bytes).map(|text| text.len()).expect_err("something follows");
        assert_eq!(error.code(), "corrupt_file");
    }
}

#[test]
fn the_checksum_detects_a_flipped_bit() {
    let mut bytes = gzip(&lines(1000));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert_eq!(decoded(GZIP, &bytes).map(|text| text.len()).unwrap_err().code(), "corrupt_file");
}

#[test]
fn charsets_are_decoded_in_compressed_files_too() {
    let text = "name;städte\n😀;Zürich\n";
    for (charset, bytes) in [
        (Charset::UTF_16LE, utf16(&format!("\u{feff}{text}"), Charset::UTF_16LE)),
        (Charset::UTF_16BE, utf16(text, Charset::UTF_16BE)),
        (Charset::WINDOWS_1252, b"name;st\xe4dte\n\x80;Z\xfcrich\n".to_vec()),
    ] {
        let expected = if charset == Charset::WINDOWS_1252 { text.replace('😀', "€") } else { text.to_owned() };
        for (compression, bytes) in [(None, bytes.clone()), (GZIP, gzip(&bytes)), (ZSTD, zstd(&bytes))] {
            let decoded = stream_text(packed(compression, Some(charset)), &bytes, &Limits::default()).unwrap();
            assert_eq!(String::from_utf8(decoded).unwrap(), expected);
        }
    }
}

#[test]
fn a_gzip_bomb_is_stopped_by_its_ratio() {
    let bomb = gzip(&vec![b'0'; 64 * 1024 * 1024]);
    let error = stream_text(packed(GZIP, None), &bomb, &tight()).map(|text| text.len()).unwrap_err();
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { limit: 250 }), "{error}");
    assert_eq!(error.code(), "expands_too_far");
    assert!(
        stream_text(packed(GZIP, None), &bomb, &Limits::default()).is_ok(),
        "small files may be as repetitive as they like"
    );
}

#[test]
fn a_zstd_bomb_is_stopped_by_its_ratio() {
    // A frame with an 8 MiB window whose blocks each repeat one byte 128 KiB times: 1 GiB in 32 KiB.
    let mut bomb = b"\x28\xb5\x2f\xfd\x00\x68".to_vec();
    for block in 0..8192_u32 {
        let header = (128 * 1024) << 3 | 1 << 1 | u32::from(block == 8191);
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'0');
    }
    let error = decoded(ZSTD, &bomb).map(|text| text.len()).unwrap_err();
    assert!(matches!(error, DecodeError::ExpandsTooSteeply { .. }), "{error}");
}

#[test]
fn a_text_over_the_size_limit_is_rejected() {
    let text = lines(100_000);
    let limits = Limits { expanded_max_bytes: text.len() as u64 - 1, ..Limits::default() };
    let error = stream_text(packed(GZIP, None), &gzip(&text), &limits).map(|text| text.len()).unwrap_err();
    assert_eq!(error.code(), "expands_too_far");
    let limits = Limits { expanded_max_bytes: text.len() as u64, ..Limits::default() };
    assert!(stream_text(packed(GZIP, None), &gzip(&text), &limits).is_ok());
}

#[test]
fn the_error_for_a_window_that_is_too_large_says_what_to_do() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(27).unwrap();
    io::copy(&mut io::repeat(b'a').take(1024 * 1024), &mut encoder).unwrap();
    let error = decoded(ZSTD, &encoder.finish().unwrap()).map(|text| text.len()).unwrap_err();
    assert!(matches!(error, DecodeError::WindowTooLarge { .. }), "{error:?}");
    assert!(error.to_string().contains("--long"), "{error}");
}

#[test]
fn a_sink_that_breaks_ends_decoding_without_an_error() {
    let bytes = gzip(&lines(1_000_000));
    let mut blocks = 0;
    let decoded = decode_stream(packed(GZIP, None), bytes.as_slice(), &Limits::default(), |_| {
        blocks += 1;
        if blocks == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(decoded.is_ok());
    assert_eq!(blocks, 2);
}

#[test]
fn an_unreadable_source_is_distinguished_from_a_corrupt_file() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection reset"))
        }
    }
    for (compression, whole) in [(None, lines(1000)), (GZIP, gzip(&lines(1000))), (ZSTD, zstd(&lines(1000)))] {
        let source = BufReader::with_capacity(64, whole[..500].chain(Broken));
        let error = decode_stream(packed(compression, None), source, &Limits::default(), |_| ControlFlow::Continue(()));
        let error = error.expect_err("the source is broken");
        assert!(error.is_source(), "{error}");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "connection reset");
    }
}

#[test]
fn the_start_of_a_text_is_decoded_from_the_start_of_its_file() {
    let text = lines(100_000);
    for (compression, file) in [(None, text.clone()), (GZIP, gzip(&text)), (ZSTD, zstd(&text))] {
        let (head, whole) = decode_prefix(packed(compression, None), &file[..400_000], false, 1000).unwrap();
        assert_eq!((head.as_slice(), whole), (&text[..1000], false));
        let (head, whole) = decode_prefix(packed(compression, None), &file[..400_000], false, usize::MAX - 1).unwrap();
        assert!(text.starts_with(&head) && head.len() >= 100_000 && !whole, "{}", head.len());
        let (all, whole) = decode_prefix(packed(compression, None), &file, true, text.len()).unwrap();
        assert!(all == text && whole);
        let (_, whole) = decode_prefix(packed(compression, None), &file, true, text.len() - 1).unwrap();
        assert!(!whole, "a byte is missing");
    }
    let cut = &gzip(&text)[..1000];
    assert_eq!(decode_prefix(packed(GZIP, None), cut, true, 1 << 20).unwrap_err().code(), "corrupt_file");
    assert_eq!(decode_prefix(packed(GZIP, None), b"\x1f\x8b", false, 10).unwrap(), (vec![], false));
    let odd = utf16("héader", Charset::UTF_16BE);
    let (head, whole) = decode_prefix(packed(None, Some(Charset::UTF_16BE)), &odd[..5], false, 100).unwrap();
    assert_eq!((head.as_slice(), whole), ("hé".as_bytes(), false));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(any::<char>(), 0..2000).prop_map(String::from_iter),
        "[a-z,\n]{0,200}".prop_map(|piece| piece.repeat(500)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn compressed_text_is_decoded_to_the_original(text in any_text(), pieces in 1..4_usize) {
        let bytes = text.as_bytes();
        let (first, rest) = bytes.split_at(bytes.len() / pieces);
        let parts = [first, rest];
        prop_assert_eq!(decoded(GZIP, &parts.iter().flat_map(|part| gzip(part)).collect::<Vec<_>>()).unwrap(), bytes);
        prop_assert_eq!(decoded(ZSTD, &parts.iter().flat_map(|part| zstd(part)).collect::<Vec<_>>()).unwrap(), bytes);
    }

    #[test]
    fn encoded_text_is_decoded_to_the_original(text in any_text(), marked in any::<bool>()) {
        let text = text.trim_start_matches('\u{feff}');
        let with_mark = if marked { format!("\u{feff}{text}") } else { text.to_owned() };
        for charset in [Charset::UTF_16LE, Charset::UTF_16BE] {
            let decoded = stream_text(packed(None, Some(charset)), &utf16(&with_mark, charset), &Limits::default()).unwrap();
            prop_assert_eq!(decoded, text.as_bytes());
        }
        let (bytes, _, had_errors) = encoding_rs::WINDOWS_1252.encode(text);
        if !had_errors {
            let decoded = stream_text(packed(None, Some(Charset::WINDOWS_1252)), &bytes, &Limits::default()).unwrap();
            prop_assert_eq!(decoded, text.as_bytes());
        }
    }

    #[test]
    fn arbitrary_bytes_end_in_text_or_an_error(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..4000),
        magic in prop_oneof![Just(&b""[..]), Just(&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..]), Just(&b"\x28\xb5\x2f\xfd"[..])],
    ) {
        bytes.splice(0..0, magic.iter().copied());
        for compression in [None, GZIP, ZSTD] {
            for charset in [None, Some(Charset::UTF_16LE), Some(Charset::WINDOWS_1252)] {
                let _ = stream_text(packed(compression, charset), &bytes, &tight());
                let _ = decode_prefix(packed(compression, charset), &bytes, false, 100);
            }
        }
        let _ = rowmill_formats::detect(&bytes, &rowmill_formats::Hints::default());
    }
}

#[test]
fn an_array_becomes_lines() {
    let array = format!("[{}]", vec!["{\n  \"id\": 7\n}"; 200_000].join(",\n"));
    let packing = TextPacking { json_array: true, ..packed(GZIP, None) };
    let lines = stream_text(packing, &gzip(array.as_bytes()), &Limits::default()).unwrap();
    assert_eq!(lines, "{\"id\": 7}\n".repeat(200_000).as_bytes());
    let cut = &array.as_bytes()[..array.len() - 1];
    let error = stream_text(packing, &gzip(cut), &Limits::default()).map(|text| text.len()).unwrap_err();
    let expected = format!("The JSON array is damaged at byte {} of its text: data is missing at its end.", cut.len());
    assert!(error.to_string().starts_with(&expected), "{error}");
    // The first rows of a file are read before it is known whether the array ends.
    let plain = TextPacking { json_array: true, ..TextPacking::default() };
    assert_eq!(decode_prefix(plain, b"[1,{\"a\"", false, 100).unwrap(), (b"1\n{\"a\"".to_vec(), false));
    assert_eq!(decode_prefix(plain, b"[1,2] x", true, 100).unwrap_err().code(), "corrupt_file");
}
