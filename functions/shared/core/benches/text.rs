//! Speed of cutting, reading and checking text. CONTRIBUTING.md says how to run it.
//!
//! The rows have 60 bytes on average and five cells of different lengths, so that no branch is always the same.

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use rowmill_core::text::{Chunk, ChunkCutter, ChunkLimits, ChunkMode, Dialect, Format, Position};

fn main() {
    divan::main();
}

/// The notation of the rows.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Plain,
    /// With CR and LF.
    Crlf,
    /// Every cell in quotes.
    Quoted,
    /// Every cell in quotes, and one of them has an escaped quote.
    Escaped,
    /// A cell without quotes around it has one in it, for inches.
    Stray,
    /// One cell has a thousand bytes.
    Long,
    Json,
}

const NAMES: [&str; 7] =
    ["Ann Li", "John Smith", "Zoë Ørsted", "Maximiliane Mustermann", "B. Ng", "Ada Lovelace", "Ole Nordmann"];
const CITIES: [&str; 4] = ["Rome, Via Appia 7", "Llanfairpwllgwyngyll", "Bern", "San Francisco"];
const KINDS: [&str; 4] = ["private", "business", "school", "other"];

impl Rows {
    const CSV: [Self; 6] = [Self::Plain, Self::Crlf, Self::Quoted, Self::Escaped, Self::Stray, Self::Long];
    const ALL: [Self; 7] = [Self::Plain, Self::Crlf, Self::Quoted, Self::Escaped, Self::Stray, Self::Long, Self::Json];

    fn dialect(self) -> Dialect {
        let format = if matches!(self, Self::Json) { Format::Jsonl } else { Format::Csv };
        Dialect { format, delimiter: b';' }
    }

    fn write(self, row: usize, text: &mut String) {
        let id = row * 31 % 1_000_003;
        let name = format!("{} of {}", NAMES[row % 7], CITIES[row * 13 % 11 % 4]);
        let kind = KINDS[row * 7 % 13 % 4];
        let amount = format!("{}.{:02}", row * 7919 % 9973, row % 100);
        let active = row.is_multiple_of(3);
        *text += &match self {
            Self::Plain => format!("{id};{name};{kind};{amount};{active}\n"),
            Self::Crlf => format!("{id};{name};{kind};{amount};{active}\r\n"),
            Self::Quoted => format!("\"{id}\";\"{name}\";\"{kind}\";\"{amount}\";\"{active}\"\n"),
            Self::Escaped => format!("\"{id}\";\"The \"\"{name}\"\"\";\"{kind}\";\"{amount}\";\"{active}\"\n"),
            Self::Stray => format!("{id};{name} 5\";{kind};{amount};{active}\n"),
            Self::Long => format!("{id};{name}{};{kind};{amount};{active}\n", " and many others".repeat(60)),
            Self::Json => format!(
                "{{\"id\":{id},\"name\":\"{name}\",\"kind\":\"{kind}\",\"amount\":{amount},\"active\":{active}}}\n"
            ),
        };
    }

    /// Rows of that many bytes together, and how many there are.
    fn text(self, bytes: usize) -> (Vec<u8>, usize) {
        let (mut text, mut rows) = (String::new(), 0);
        while text.len() < bytes {
            self.write(rows, &mut text);
            rows += 1;
        }
        (text.into_bytes(), rows)
    }
}

fn columns() -> Arc<[String]> {
    ["id", "name", "kind", "amount", "active"].map(str::to_owned).into()
}

/// All of this text as one chunk.
fn chunk(text: &[u8], rows: usize) -> Chunk {
    let items = u32::try_from(rows).unwrap_or(u32::MAX);
    Chunk { offset: 0, length: text.len() as u64, first_row: 1, items, mode: ChunkMode::Items }
}

const MEBIBYTE: usize = 1 << 20;

/// The split: the borders of records are found, and chunks are cut.
#[divan::bench(args = Rows::ALL)]
fn cut(bencher: Bencher<'_, '_>, rows: Rows) {
    let (text, count) = rows.text(8 * MEBIBYTE);
    let limits = ChunkLimits { max_items: 500, max_bytes: MEBIBYTE as u64, max_record_bytes: MEBIBYTE as u64 };
    bencher.counter(BytesCount::of_slice(&text)).counter(ItemsCount::new(count)).bench(|| {
        let mut cutter = ChunkCutter::new(&rows.dialect(), limits, Position { offset: 0, row: 1 });
        let mut chunks = Vec::new();
        cutter.push(black_box(&text), &mut chunks);
        cutter.finish(&mut chunks).expect("every quote is closed");
        chunks
    });
}

/// Reading the items of a chunk.
mod read {
    use rowmill_core::text::read_items;

    use super::*;

    #[divan::bench(args = Rows::ALL)]
    fn items(bencher: Bencher<'_, '_>, rows: Rows) {
        let (text, count) = rows.text(MEBIBYTE);
        let (chunk, columns) = (chunk(&text, count), columns());
        bencher.counter(ItemsCount::new(count)).bench(|| {
            let items = read_items(&chunk, black_box(&text), &rows.dialect(), &columns);
            let good = items.filter(|item| black_box(item).record.is_ok()).count();
            assert_eq!(good, count);
        });
    }

    /// The same by the `csv` crate, with a record for each row.
    #[divan::bench(args = Rows::CSV)]
    fn csv_string_records(bencher: Bencher<'_, '_>, rows: Rows) {
        let (text, count) = rows.text(MEBIBYTE);
        bencher.counter(ItemsCount::new(count)).bench(|| {
            let mut reader =
                csv::ReaderBuilder::new().delimiter(b';').has_headers(false).from_reader(black_box(text.as_slice()));
            let good = reader.records().filter(|record| black_box(record).is_ok()).count();
            assert_eq!(good, count);
        });
    }

    /// The same with one record that is used again.
    #[divan::bench(args = Rows::CSV)]
    fn csv_one_string_record(bencher: Bencher<'_, '_>, rows: Rows) {
        let (text, count) = rows.text(MEBIBYTE);
        bencher.counter(ItemsCount::new(count)).bench(|| {
            let mut reader =
                csv::ReaderBuilder::new().delimiter(b';').has_headers(false).from_reader(black_box(text.as_slice()));
            let (mut record, mut good) = (csv::StringRecord::new(), 0);
            while reader.read_record(&mut record).is_ok_and(|more| more) {
                black_box(&record);
                good += 1;
            }
            assert_eq!(good, count);
        });
    }
}

/// Checking rows against a schema with five properties.
mod schema {
    use rowmill_core::text::{Record, RowSchema, read_items};
    use serde_json::{Value, json};

    use super::*;

    fn five_properties() -> RowSchema {
        let schema: Value = json!({
            "type": "object",
            "required": ["id", "name", "kind"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "name": {"type": "string", "minLength": 1, "maxLength": 100},
                "kind": {"enum": KINDS},
                "amount": {"type": ["number", "null"], "minimum": 0, "exclusiveMaximum": 1_000_000},
                "active": {"type": "boolean"}
            }
        });
        RowSchema::compile(Some(&schema)).expect("a valid schema")
    }

    fn records(rows: Rows) -> Vec<Record> {
        let (text, count) = rows.text(64 * 1024);
        let items = read_items(&chunk(&text, count), &text, &rows.dialect(), &columns());
        items.map(|item| item.record.expect("a good row")).collect()
    }

    /// As `import` does: the row is checked, and becomes an object with typed values.
    #[divan::bench(args = [Rows::Plain, Rows::Json])]
    fn check(bencher: Bencher<'_, '_>, rows: Rows) {
        let (schema, records) = (five_properties(), records(rows));
        bencher.counter(ItemsCount::of_iter(&records)).bench(|| {
            for record in &records {
                black_box(schema.check(black_box(record).clone()).expect("a valid row"));
            }
        });
    }

    /// As `validate` does: the row is only checked.
    #[divan::bench(args = [Rows::Plain, Rows::Json])]
    fn validate(bencher: Bencher<'_, '_>, rows: Rows) {
        let (schema, records) = (five_properties(), records(rows));
        bencher.counter(ItemsCount::of_iter(&records)).bench(|| {
            for record in &records {
                schema.validate(black_box(record)).expect("a valid row");
            }
        });
    }
}
