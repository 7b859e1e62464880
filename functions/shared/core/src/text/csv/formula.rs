//! Protection against CSV injection: cells that a spreadsheet would run as formulas.
//!
//! A spreadsheet treats a cell that begins with `=`, `+`, `-` or `@` (or with white space before one of these) as a
//! formula. A formula can harm the person who opens the file. In CSV for people, such a cell gets a leading apostrophe,
//! which tells the spreadsheet that the cell is text. The list of characters follows OWASP's page on CSV injection.

use std::borrow::Cow;

const ESCAPE: char = '\'';

/// Adds a leading apostrophe if the cell would be run as a formula. Plain numbers such as `-1.5` are not changed. A
/// cell that already looks escaped gets another apostrophe, so that [`unescape_formula`] always restores the original
/// cell.
pub fn escape_formula(cell: &str) -> Cow<'_, str> {
    if is_formula(cell.trim_start_matches(ESCAPE)) && !is_number(cell) {
        Cow::Owned(format!("{ESCAPE}{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// Restores the cell that was escaped with [`escape_formula`].
pub fn unescape_formula(cell: &str) -> &str {
    match cell.strip_prefix(ESCAPE) {
        Some(rest) if is_formula(rest.trim_start_matches(ESCAPE)) => rest,
        _ => cell,
    }
}

fn is_formula(cell: &str) -> bool {
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
    fn formulas_are_escaped_and_numbers_are_not() {
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
        fn unescaping_restores_every_cell(cell in "['=+@\\-0-9.a\t\r\n＝ ]{0,6}|.*") {
            let escaped = escape_formula(&cell);
            prop_assert_eq!(unescape_formula(&escaped), &cell);
            prop_assert!(!is_formula(&escaped) || is_number(&escaped));
        }
    }
}
