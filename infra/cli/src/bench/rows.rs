//! The input of the benchmark: any number of rows, always the same ones.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

/// Bytes of a row, its line end included.
pub const ROW_BYTES: usize = 60;

/// Bytes of a row in which every cell is quoted.
pub const QUOTED_ROW_BYTES: usize = ROW_BYTES + 2 * COLUMNS;

const COLUMNS: usize = 6;

/// The header line, which is not counted as a row.
const HEADER: &str = "id,name,quantity,price,day,token\n";

/// Writes a CSV file of `rows` rows of [`ROW_BYTES`] each, or of [`QUOTED_ROW_BYTES`]. The same number gives the same
/// file.
pub fn write(rows: u64, quoted: bool, to: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, to);
    out.write_all(HEADER.as_bytes())?;
    let mut line = String::with_capacity(QUOTED_ROW_BYTES);
    for row in 1..=rows {
        line.clear();
        let noise = scramble(row);
        let quantity = 1000 + noise % 9000;
        let (whole, cents) = (1000 + (noise >> 16) % 9000, (noise >> 32) % 100);
        let (month, day) = (1 + (noise >> 40) % 12, 1 + (noise >> 48) % 28);
        writeln!(
            line,
            "{row:010},name-{:08x},{quantity},{whole}.{cents:02},2024-{month:02}-{day:02},{:010x}",
            noise as u32,
            noise >> 24,
        )
        .expect("a string takes everything");
        if quoted {
            line = format!("\"{}\"\n", line.trim_end().replace(',', "\",\""));
        }
        out.write_all(line.as_bytes())?;
    }
    out.flush()
}

/// A schema that every row of [`write()`] satisfies.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["id", "name", "quantity", "price"],
        "properties": {
            "id": {"type": "string", "minLength": 10, "maxLength": 10},
            "name": {"type": "string", "minLength": 1},
            "quantity": {"type": "integer", "minimum": 0},
            "price": {"type": "number", "minimum": 0},
            "day": {"type": "string", "minLength": 10},
            "token": {"type": "string"}
        }
    })
}

/// Steele, Lea and Flood's SplitMix64: cheap pseudo-random numbers that depend only on the row number.
fn scramble(row: u64) -> u64 {
    let mut z = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(rows: u64, quoted: bool) -> String {
        let mut file = Vec::new();
        write(rows, quoted, &mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn every_row_has_60_bytes_and_6_fields_and_the_file_is_the_same_each_time() {
        let text = written(5000, false);
        assert_eq!(text, written(5000, false));
        let mut lines = text.split_inclusive('\n');
        assert_eq!(lines.next(), Some(HEADER));
        let mut rows = 0;
        for line in lines {
            assert_eq!(line.len(), ROW_BYTES, "{line}");
            let fields: Vec<&str> = line.trim_end().split(',').collect();
            assert_eq!(fields.len(), 6, "{line}");
            // What the schema's types ask for.
            assert!(fields[2].parse::<i64>().is_ok() && fields[3].parse::<f64>().is_ok(), "{line}");
            rows += 1;
            assert_eq!(fields[0].parse(), Ok(rows));
        }
        assert_eq!(rows, 5000);
    }

    #[test]
    fn quoted_rows_are_the_same_ones_with_quotes() {
        let quoted = written(500, true);
        for line in quoted.lines().skip(1) {
            assert_eq!(line.len() + 1, QUOTED_ROW_BYTES, "{line}");
            assert_eq!(line.matches('"').count(), 2 * COLUMNS, "{line}");
        }
        assert_eq!(quoted.replace('"', ""), written(500, false));
    }
}
