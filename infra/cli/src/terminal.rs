//! Text for a terminal: escaped, cut to width, aligned, with readable numbers.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::time::Duration;

use console::{Term, measure_text_width, style, truncate_str};

/// Width of lines without a terminal: enough for a whole message.
const DEFAULT_WIDTH: usize = 240;

/// Blanks between two columns of a table.
const GAP: usize = 2;

/// The least width to which a column of a table is cut.
const NARROWEST: usize = 6;

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
/// Rows of a file and texts of a server are untrusted. `ESC [ 2 J` in a row must not clear the screen, and a
/// right-to-left override must not make `txt.exe` look like `exe.txt`.
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

/// True if a character controls the terminal or the order of text.
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
    let widths = widths(rows);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[n] - measure_text_width(cell));
            if n > 0 {
                line.push_str(&" ".repeat(GAP));
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

/// Rows whose columns fit into `width` columns of the terminal, as [`table`] writes them, and how many columns were
/// left out.
///
/// The widest of the columns from `first` on are cut, all to the same width, and none below `NARROWEST`. If that is not
/// enough, the last columns are left out.
pub fn fitted(rows: &[Vec<String>], first: usize, width: usize) -> (Vec<Vec<String>>, usize) {
    let widths = widths(rows);
    let total = |columns: usize, limit: usize| -> usize {
        let cut = |(n, width): (usize, &usize)| if n < first { *width } else { limit.min(*width) };
        widths.iter().take(columns).enumerate().map(cut).map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    let shown = (first..=widths.len()).rev().find(|shown| total(*shown, NARROWEST) <= width).unwrap_or(first);
    let widest = widths.iter().copied().max().unwrap_or(0);
    let limit = (NARROWEST..=widest).rev().find(|limit| total(shown, *limit) <= width).unwrap_or(NARROWEST);
    let cell = |(n, cell): (usize, &String)| match n < first {
        true => cell.clone(),
        false => truncate_str(cell, limit, "…").into_owned(),
    };
    let rows = rows.iter().map(|row| row.iter().take(shown).enumerate().map(cell).collect());
    (rows.collect(), widths.len() - shown)
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |n: usize| rows.iter().filter_map(|row| row.get(n)).map(|cell| measure_text_width(cell)).max();
    (0..columns).map(|n| width(n).unwrap_or(0)).collect()
}

/// The text in amber, if standard output is a terminal with colours. Must be escaped before.
pub fn amber(text: &str) -> String {
    style(text).yellow().to_string()
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

/// The age of something, in its largest unit: `42 s`, `5 min`, `3 h`, `12 d`.
pub fn age(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
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
    fn columns_are_cut_from_the_widest_on_until_they_fit() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["row", "name", "漢字漢字漢字漢字", "text"]),
            row(["12,345,678", "ab", "c", "a longer text than fits"]),
        ];
        let shown = |width| {
            let (rows, left_out) = fitted(&rows, 1, width);
            (table(&rows, &[0]), left_out)
        };
        let all =
            "       row  name  漢字漢字漢字漢字  text\n12,345,678  ab    c                 a longer text than fits\n";
        assert_eq!(shown(200), (all.to_owned(), 0));
        let cut = "       row  name  漢字漢字…  text\n12,345,678  ab    c          a longer …\n";
        assert_eq!(shown(40), (cut.to_owned(), 0));
        assert_eq!(shown(30).1, 1);
        for width in [12, 20, 26, 33, 41, 60] {
            let (text, _) = shown(width);
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{width}\n{text}");
        }
    }

    #[test]
    fn an_age_is_given_in_its_largest_unit() {
        let ages = [0, 59, 60, 7200, 86_400, 259_200].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["0 s", "59 s", "1 min", "2 h", "24 h", "3 d"]);
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
