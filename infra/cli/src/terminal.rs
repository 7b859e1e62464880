//! Text for a terminal: escaped, cut to width, aligned, with readable numbers.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::time::Duration;

use console::{Term, measure_text_width, truncate_str};

/// Width of lines without a terminal: enough for a whole message.
const DEFAULT_WIDTH: usize = 240;

/// Writes to standard output. A closed pipe (`rowmill jobs | head`) is not an error.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Width of the terminal, or a default if standard output is not a terminal.
pub fn width() -> usize {
    Term::stdout().size_checked().map_or(DEFAULT_WIDTH, |(_, columns)| usize::from(columns).max(40))
}

/// The last cause of an error: `Connection refused` says more than `error sending request`.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    escape_controls(&last.to_string())
}

/// Replaces characters that control the terminal or reorder its text by a visible escape.
///
/// Rows of a file and texts of a server are untrusted. `ESC [ 2 J` in a row must not clear the screen, and a right-to-left
/// override must not make `txt.exe` look like `exe.txt`.
pub fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => escaped.extend(c.escape_default()),
            c if drives_terminal(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether a character controls the terminal or the order of text.
pub fn drives_terminal(c: char) -> bool {
    c.is_control() || is_invisible_control(c)
}

/// Control characters outside of the category `Cc`: bidirectional controls, line and paragraph separator, BOM.
fn is_invisible_control(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text, escaped and cut to `width` columns. A cut text ends with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    truncate_str(&escape_controls(text), width, "…").into_owned()
}

/// Formats rows as columns, two spaces apart. Columns listed in `right` are aligned to the right.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|n| rows.iter().filter_map(|row| row.get(n)).map(|c| measure_text_width(c)).max())
        .map(|width| width.unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[n] - measure_text_width(cell));
            if n > 0 {
                line.push_str("  ");
            }
            if right.contains(&n) {
                line.push_str(&padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.push_str(&padding);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A number with thousands separators: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes with a unit: `812.4 KiB`.
pub fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

/// Dollars with three digits that count, and at least cents.
pub fn dollars(usd: f64) -> String {
    let usd = usd.clamp(0.0, 1e12);
    let places = (2.0 - usd.max(1e-9).log10().floor()).clamp(2.0, 9.0);
    format!("${usd:.*}", places as usize)
}

/// A readable duration: `0.8 s`, `42 s`, `3 min 5 s`, `2 h 10 min`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_for_the_terminal_are_escaped() {
        let hostile = "a\u{1b}[2Jb\u{9b}31m\u{202e}c\r\n\0\u{7f}\u{2028}é漢";
        let safe = escape_controls(hostile);
        let expected = r"a\u{1b}[2Jb\u{9b}31m\u{202e}c\r\n\u{0}\u{7f}\u{2028}é漢";
        assert_eq!(safe, expected);
    }

    #[test]
    fn a_truncated_text_fits_its_width_in_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert!(measure_text_width(&cut("漢字漢字", 5)) <= 5);
    }

    #[test]
    fn tables_are_aligned_and_have_no_trailing_blanks() {
        let rows = [vec!["row".into(), "code".into()], vec!["1,024".into(), "x".into()]];
        assert_eq!(table(&rows, &[0]), "  row  code\n1,024  x\n");
    }

    #[test]
    fn dollars_have_three_digits_that_count() {
        let written = [0.0, 0.000_183_159, 0.012_34, 1.5, 1234.567, 1e300, f64::NAN].map(dollars);
        let expected = ["$0.000000000", "$0.000183", "$0.0123", "$1.50", "$1234.57", "$1000000000000.00", "$NaN"]
            .map(str::to_owned);
        assert_eq!(written, expected);
    }

    #[test]
    fn numbers_and_spans_are_readable() {
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        let spans = [0.04, 9.96, 60.0, 185.0, 7200.0, 7800.0].map(|s| span(Duration::from_secs_f64(s)));
        assert_eq!(spans, ["0.0 s", "10 s", "1 min", "3 min 5 s", "2 h", "2 h 10 min"]);
    }
}
