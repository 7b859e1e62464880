//! The format, name and media type of the decoded text of a packed file.

use rowmill_core::model::packing::Packing;
use rowmill_core::text::Format;

/// The format of the decoded text, if the packing determines it.
///
/// The text of a workbook is CSV with commas, regardless of the content of its first row.
pub fn text_format(packing: &Packing) -> Option<Format> {
    match packing {
        Packing::Text(text) | Packing::Member { text, .. } => text.json_array.then_some(Format::Jsonl),
        Packing::Xlsx { .. } => Some(Format::Csv),
        Packing::Parquet => Some(Format::Jsonl),
    }
}

/// The file name of the decoded text: `orders.csv` for `orders.csv.gz` and `orders.xlsx`, `orders.jsonl` for
/// `orders.parquet`. An extension such as `.gz` is removed even if the bytes are not compressed: some downloads
/// decompress the file and keep the name.
pub fn text_file_name(file_name: &str, packing: Option<&Packing>) -> String {
    let without = |extensions: &[&str]| {
        let (stem, extension) = file_name.rsplit_once('.')?;
        extensions.iter().any(|known| extension.eq_ignore_ascii_case(known)).then_some(stem)
    };
    match packing {
        None | Some(Packing::Text(_) | Packing::Member { .. }) => {
            without(&["gz", "gzip", "zst", "zstd"]).unwrap_or(file_name).to_owned()
        }
        Some(Packing::Xlsx { .. }) => format!("{}.csv", without(&["xlsx", "xlsm", "zip"]).unwrap_or(file_name)),
        Some(Packing::Parquet) => format!("{}.jsonl", without(&["parquet", "parq", "pq"]).unwrap_or(file_name)),
    }
}

/// The media type of the decoded text; `None` if the media type of the file says nothing about it, such as
/// `application/gzip`.
pub fn text_content_type<'a>(content_type: &'a str, packing: Option<&Packing>) -> Option<&'a str> {
    match packing {
        Some(Packing::Xlsx { .. }) => Some("text/csv"),
        Some(Packing::Parquet) => Some("application/x-ndjson"),
        None | Some(Packing::Text(_) | Packing::Member { .. }) => {
            let says_nothing = matches!(
                essence(content_type).as_str(),
                "application/gzip" | "application/x-gzip" | "application/zstd" | "application/octet-stream"
            );
            (!says_nothing).then_some(content_type)
        }
    }
}

/// A media type without its params.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::packing::{Compression, TextPacking};

    use super::*;

    #[test]
    fn the_name_and_type_of_the_text_are_derived_from_those_of_the_file() {
        let gzip = Packing::Text(TextPacking { compression: Some(Compression::Gzip), ..TextPacking::default() });
        let xlsx = Packing::Xlsx { sheet: None, title_rows: 0 };
        assert_eq!(text_file_name("orders.csv.gz", Some(&gzip)), "orders.csv");
        assert_eq!(text_file_name("orders.jsonl.ZST", None), "orders.jsonl");
        assert_eq!(text_file_name("orders", Some(&gzip)), "orders");
        assert_eq!(text_file_name("Q3.report.XLSX", Some(&xlsx)), "Q3.report.csv");
        assert_eq!(text_file_name("part-0.snappy.parquet", Some(&Packing::Parquet)), "part-0.snappy.jsonl");
        assert_eq!(text_file_name("part-0", Some(&Packing::Parquet)), "part-0.jsonl");
        assert_eq!(text_content_type("application/gzip", Some(&gzip)), None);
        assert_eq!(text_content_type("text/csv; charset=latin1", Some(&gzip)), Some("text/csv; charset=latin1"));
        assert_eq!(
            text_content_type("application/octet-stream", Some(&Packing::Parquet)),
            Some("application/x-ndjson")
        );
        assert_eq!((text_format(&gzip), text_format(&xlsx)), (None, Some(Format::Csv)));
    }
}
