//! Input files.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The real file that comes with the project: 11,231 characters of Unicode, one a row.
pub fn unicode_csv() -> Vec<u8> {
    data("unicode.csv")
}

/// A file of `tests/data`.
pub fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A CSV file of `rows` good rows under the header `id,name,amount`; `id` is the row number.
pub fn plain_csv(rows: u64) -> Vec<u8> {
    let mut text = String::from("id,name,amount\n");
    for row in 1..=rows {
        let _ = writeln!(text, "{row},\"name {row}\",{}", row * 7 % 1000);
    }
    text.into_bytes()
}
