//! Cells that a spreadsheet would run.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` (or with white space before one of these) for a formula,
//! which may do harm to whoever opens the file. In CSV meant for people such a cell gets an apostrophe in front, which
//! spreadsheets take for "this is text". Which characters, by OWASP's page on CSV injection.

use std::borrow::Cow;

const ESCAPE: char = '\'';

/// The cell, with an apostrophe in front if it would be run. Plain numbers are not, so `-1.5` stays. A cell that already
/// looks like an escaped one gets another apostrophe, so that [`unescape_formula`] always gives the cell back.
pub fn escape_formula(cell: &str) -> Cow<'_, str> {
    if is_run(cell.trim_start_matches(ESCAPE)) && !is_number(cell) {
        Cow::Owned(format!("{ESCAPE}{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// The cell that [`escape_formula`] made this one of.
pub fn unescape_formula(cell: &str) -> &str {
    match cell.strip_prefix(ESCAPE) {
        Some(rest) if is_run(rest.trim_start_matches(ESCAPE)) => rest,
        _ => cell,
    }
}

fn is_run(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

fn is_number(cell: &str) -> bool {
    cell.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'))
        && cell.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_would_be_run_is_escaped_and_numbers_are_not() {
        let escaped =
            ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "-", "+", "--1", "-inf"];
        for cell in escaped {
            assert_eq!(escape_formula(cell), format!("'{cell}"), "{cell}");
        }
        for cell in ["", "a", "1", "-1.5", "+4", "-2e5", "'", "'a", "a=1", " =1", "''"] {
            assert_eq!(escape_formula(cell), cell, "{cell}");
        }
    }

    proptest! {
        #[test]
        fn every_cell_comes_back(cell in "['=+@\\-0-9.a\t\r\n＝ ]{0,6}|.*") {
            let escaped = escape_formula(&cell);
            prop_assert_eq!(unescape_formula(&escaped), &cell);
            prop_assert!(!is_run(&escaped) || is_number(&escaped));
        }
    }
}
