//! Measures decoding: its time, the size of its output, and the peak memory of the process.
//!
//! ```console
//! $ cargo run --release -p rowmill-formats --example measure -- make xlsx 10000000 /tmp/cells.xlsx
//! $ cargo run --release -p rowmill-formats --example measure -- read /tmp/cells.xlsx
//! ```
//!
//! `text` writes the text to the standard output instead. `make` writes a test file: `gzip`, `zstd` or `utf-16` text
//! with this number of bytes, a workbook with this number of cells (`xlsx`: numbers, `strings`: unique texts), or a
//! `parquet` file with this number of rows.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rowmill_core::model::packing::{Packing, TextPacking};
use rowmill_formats::{Hints, Limits, decode_file, detect};
use rust_xlsxwriter::Workbook;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", kind, count, path] => make(kind, count.parse()?, path),
        ["read", path] => read(path),
        ["text", path] => text(path),
        _ => Err("usage: `make KIND COUNT PATH`, `read PATH` or `text PATH`".into()),
    }
}

fn packing_of(path: &str) -> Result<Packing, Box<dyn Error>> {
    let mut prefix = vec![0; 64 * 1024];
    let length = File::open(path)?.read(&mut prefix)?;
    let packing = detect(&prefix[..length], &Hints { file_name: Some(path), ..Hints::default() })?;
    Ok(packing.unwrap_or(Packing::Text(TextPacking::default())))
}

fn text(path: &str) -> Result<(), Box<dyn Error>> {
    let (mut output, mut written) = (std::io::stdout().lock(), Ok(()));
    decode_file(&packing_of(path)?, File::open(path)?, &Limits::default(), |block| {
        written = output.write_all(block.bytes);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(written?)
}

fn read(path: &str) -> Result<(), Box<dyn Error>> {
    let packing = packing_of(path)?;
    let (start, mut bytes, mut lines) = (Instant::now(), 0, 0);
    let decoded = decode_file(&packing, File::open(path)?, &Limits::default(), |block| {
        bytes += block.bytes.len();
        lines += memchr::memchr_iter(b'\n', block.bytes).count();
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    let size = fs::metadata(path)?.len();
    println!("{packing:?}: {size} bytes -> {bytes} bytes, {lines} lines in {seconds:.2} s; {peak}");
    if let Err(error) = decoded {
        println!("{}: {error}", error.code());
    }
    Ok(())
}

fn make(kind: &str, count: u64, path: &str) -> Result<(), Box<dyn Error>> {
    match kind {
        "gzip" => {
            let mut target = flate2::write::GzEncoder::new(File::create(path)?, flate2::Compression::default());
            write_lines(&mut target, count)?;
            target.finish()?;
        }
        "zstd" => {
            let mut target = zstd::stream::Encoder::new(File::create(path)?, 3)?;
            write_lines(&mut target, count)?;
            target.finish()?;
        }
        "utf-16" => {
            let mut target = BufWriter::new(File::create(path)?);
            target.write_all(b"\xff\xfe")?;
            for row in 0..count / 60 {
                let line: Vec<u8> = line(row).encode_utf16().flat_map(u16::to_le_bytes).collect();
                target.write_all(&line)?;
            }
            target.flush()?;
        }
        "xlsx" | "strings" => make_workbook(kind, count, path)?,
        "parquet" => make_parquet(count, path)?,
        _ => return Err("unknown kind of file".into()),
    }
    Ok(())
}

fn line(row: u64) -> String {
    format!("{row},customer {},{}.{:02},2026-01-31T12:00:00Z\n", row % 9973, row.wrapping_mul(31) % 10_000, row % 100)
}

fn write_lines(target: &mut impl Write, bytes: u64) -> std::io::Result<()> {
    let (mut written, mut row) = (0, 0);
    while written < bytes {
        let line = line(row);
        target.write_all(line.as_bytes())?;
        (written, row) = (written + line.len() as u64, row + 1);
    }
    Ok(())
}

fn make_workbook(kind: &str, cells: u64, path: &str) -> Result<(), Box<dyn Error>> {
    const COLUMNS: u64 = 20;
    let mut workbook = Workbook::new();
    // Shared strings need a worksheet without constant memory.
    let sheet = match kind {
        "xlsx" => workbook.add_worksheet_with_constant_memory()?,
        _ => workbook.add_worksheet(),
    };
    for row in 0..cells / COLUMNS {
        for column in 0..COLUMNS {
            let (at, number) = (u32::try_from(row)?, row.wrapping_mul(0x9E37_79B9) % 1_000_003 + column);
            match kind {
                "xlsx" => sheet.write(at, column as u16, number as f64 / 8.0)?,
                _ => sheet.write(at, column as u16, format!("text {row} {column}"))?,
            };
        }
    }
    workbook.save(path)?;
    Ok(())
}

fn make_parquet(rows: u64, path: &str) -> Result<(), Box<dyn Error>> {
    let columns: String =
        (0..5).map(|n| format!("required int64 i{n}; required double d{n}; required binary s{n} (UTF8); ")).collect();
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {columns} }}"))?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, properties)?;
    for start in (0..rows).step_by(500_000) {
        let part: Vec<u64> = (start..rows.min(start + 500_000)).collect();
        let mut group = writer.next_row_group()?;
        let mut index = 0;
        while let Some(mut column) = group.next_column()? {
            match index % 3 {
                0 => {
                    let values: Vec<i64> = part.iter().map(|row| (row * 31 + index) as i64).collect();
                    column.typed::<Int64Type>().write_batch(&values, None, None)?;
                }
                1 => {
                    let values: Vec<f64> = part.iter().map(|row| (row % 9973) as f64 / 8.0).collect();
                    column.typed::<DoubleType>().write_batch(&values, None, None)?;
                }
                _ => {
                    let values: Vec<ByteArray> = part.iter().map(|row| line(*row).as_str().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
            }
            column.close()?;
            index += 1;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
