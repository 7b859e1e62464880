//! A file with several kinds of bad rows, and the expected outcome of each row.

use std::fmt::Write as _;

/// A CSV file with known outcomes.
pub struct StormFile {
    pub bytes: Vec<u8>,
}

impl StormFile {
    /// A file with this many rows under the header `id,name,amount`; `id` is the row number.
    pub fn new(rows: u64) -> Self {
        let mut text = "id,name,amount\n".to_owned();
        for row in 1..=rows {
            let _ = match fault(row) {
                Some("ragged_row") => writeln!(text, "{row},few"),
                Some("schema_violation") => writeln!(text, "{row},n,many"),
                Some(_) => writeln!(text, ",n,1"),
                None if row % 97 == 0 => writeln!(text, "{row},\"a\n\"\"b\"\"\",1"),
                None => writeln!(text, "{row},n,{}", row % 10),
            };
        }
        Self { bytes: text.into_bytes() }
    }

    /// The code that this row must fail with, if it is bad.
    pub fn fault_of(&self, row: u64) -> Option<&'static str> {
        fault(row)
    }
}

fn fault(row: u64) -> Option<&'static str> {
    match row {
        row if row % 101 == 7 => Some("ragged_row"),
        row if row % 103 == 5 => Some("schema_violation"),
        row if row % 107 == 3 => Some("missing_key"),
        _ => None,
    }
}
