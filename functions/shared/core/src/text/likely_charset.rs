//! Guesses the charset of text that is not UTF-8.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

/// Number of bytes that a guess looks at, from the first invalid byte's surroundings on. More bytes rarely change it.
const SAMPLE_BYTES: usize = 64 * 1024;

/// Number of bytes before the first invalid one that are looked at.
const CONTEXT_BYTES: usize = 1024;

/// The name of the likely charset of text that is not valid UTF-8, as the WHATWG encoding standard writes it. It is a
/// guess: without enough text, one charset looks like another. `None` for text of which the most is valid UTF-8 beyond
/// ASCII, so that single bytes are damaged, and for valid UTF-8.
pub fn likely_charset(text: &[u8]) -> Option<&'static str> {
    let invalid = std::str::from_utf8(text).err()?.valid_up_to();
    let from = invalid.saturating_sub(CONTEXT_BYTES);
    let sample = &text[from..text.len().min(from + SAMPLE_BYTES)];
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in sample.utf8_chunks() {
        good += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    if good >= bad {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    Some(detector.guess(None, Utf8Detection::Deny).name())
}

/// Finds the first byte of a stream of text that is not valid UTF-8. It gets the text slice by slice.
#[derive(Debug, Default)]
pub struct Utf8Watch {
    /// Number of bytes looked at.
    at: u64,
    /// The first bytes of a character whose last ones have not arrived yet.
    unfinished: Vec<u8>,
    /// The first invalid byte, and the likely charset of the text around it.
    found: Option<(u64, Option<&'static str>)>,
}

impl Utf8Watch {
    /// A watch on text from this byte of the file on.
    pub fn from(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// Takes the next bytes. After the first invalid byte it costs nothing.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.found.is_some() || bytes.is_empty() {
            return;
        }
        let joined;
        let text = if self.unfinished.is_empty() {
            bytes
        } else {
            joined = [self.unfinished.as_slice(), bytes].concat();
            joined.as_slice()
        };
        let start = self.at - self.unfinished.len() as u64;
        self.at += bytes.len() as u64;
        let unfinished = match std::str::from_utf8(text) {
            Ok(_) => &[][..],
            Err(error) if error.error_len().is_none() => &text[error.valid_up_to()..],
            Err(error) => {
                self.found = Some((start + error.valid_up_to() as u64, likely_charset(text)));
                return;
            }
        };
        self.unfinished = unfinished.to_vec();
    }

    /// Ends the text: the first bytes of a character alone are invalid too.
    pub fn finish(&mut self) {
        if self.found.is_none() && !self.unfinished.is_empty() {
            let start = self.at - self.unfinished.len() as u64;
            self.found = Some((start, likely_charset(&self.unfinished)));
        }
    }

    /// The first invalid byte, and the likely charset, if one has been found.
    pub const fn found(&self) -> Option<(u64, Option<&'static str>)> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_charset_of_common_texts_is_recognised() {
        let of = |encoding: &'static encoding_rs::Encoding, text: &str| likely_charset(&encoding.encode(text).0);
        let german = "Straße;Größe;Fußgänger;Käse;Bücher;Übung\n";
        assert_eq!(of(encoding_rs::WINDOWS_1252, german), Some("windows-1252"));
        let japanese = "東京都;大阪府;北海道の天気は晴れです;日本語のテキスト\n";
        assert_eq!(of(encoding_rs::SHIFT_JIS, japanese), Some("Shift_JIS"));
        let polish = "Zażółć gęślą jaźń; źdźbło; święto; książka; żółw; łódź\n";
        assert_eq!(of(encoding_rs::WINDOWS_1250, polish), Some("windows-1250"));
        let chinese = "中华人民共和国的首都是北京;上海是最大的城市;你好世界\n";
        assert_eq!(of(encoding_rs::GBK, chinese), Some("GBK"));
        let russian = "Москва является столицей России; Санкт-Петербург\n";
        assert_eq!(of(encoding_rs::WINDOWS_1251, russian), Some("windows-1251"));
    }

    #[test]
    fn utf_8_with_a_damaged_byte_looks_like_no_other_charset() {
        assert_eq!(likely_charset("Straße;Größe".as_bytes()), None);
        assert_eq!(likely_charset(b"Stra\xc3\x9fe;Gr\xc3\xb6\xc3\x9fe;\xff"), None);
    }

    #[test]
    fn a_far_byte_is_found_with_its_place() {
        let mut watch = Utf8Watch::from(7);
        watch.push(&vec![b'a'; 100_000]);
        watch.push("grö".as_bytes());
        assert_eq!(watch.found(), None);
        watch.push(b";K\xe4se\n");
        assert_eq!(watch.found().map(|(byte, _)| byte), Some(100_000 + 7 + 4 + 2));
    }

    proptest! {
        #[test]
        fn the_first_invalid_byte_does_not_depend_on_how_the_text_arrives(
            text in prop::collection::vec(prop::sample::select(b"a\xc3\xa4\xe2\x82\xac\xff\xf0\x9f\x98\x80".to_vec()), 0..20),
            size in 1..5_usize,
        ) {
            let mut watch = Utf8Watch::default();
            text.chunks(size).for_each(|piece| watch.push(piece));
            watch.finish();
            let expected = std::str::from_utf8(&text).err().map(|error| error.valid_up_to() as u64);
            prop_assert_eq!(watch.found().map(|(byte, _)| byte), expected);
        }
    }
}
