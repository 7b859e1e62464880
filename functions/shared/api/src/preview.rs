//! The beginning of a file as a job would read it.

use rowmill_core::text::ColumnType;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::job::JobWarning;

words! {
    /// What kind of file it is: the words of the param `format`.
    FileFormat {
        /// Cells between delimiters, a record per line.
        Csv = "csv",
        /// A JSON object per line.
        Jsonl = "jsonl",
        /// A JSON array: each of its elements is an item.
        Json = "json",
        /// An Excel workbook, of which one sheet is read.
        Xlsx = "xlsx",
        /// A Parquet file.
        Parquet = "parquet",
    }
}

words! {
    /// How a text file is compressed.
    FilePacking {
        /// With gzip.
        Gzip = "gzip",
        /// With zstd.
        Zstd = "zstd",
    }
}

/// The beginning of a file as a job would read it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewView {
    /// The name of the file that is shown, if the upload is a zip archive: its first one. Otherwise null.
    #[serde(default)]
    #[schema(required)]
    pub member: Option<String>,
    /// What kind of file it is.
    #[schema(value_type = FileFormat)]
    pub format: Open<FileFormat>,
    /// How it is compressed. Null if it is not, and for workbooks and Parquet files.
    #[schema(value_type = Option<FilePacking>)]
    pub packing: Option<Open<FilePacking>>,
    /// The character between two cells. Null if the file has none.
    pub delimiter: Option<String>,
    /// The charset of its text, by its name in the WHATWG encoding standard and in lower case. Null for workbooks and
    /// Parquet files.
    pub encoding: Option<String>,
    /// Which row behind the skipped ones names the columns, as the param `headerRow`; 0 for none. Null if the format
    /// has no header.
    pub header_row: Option<u32>,
    /// The columns, with types guessed from the rows below: in the order of the file, or by name if the rows are JSON
    /// objects. At most 1,000.
    pub columns: Vec<PreviewColumn>,
    /// How many columns there are. More than `columns` has, if the file has very many.
    pub column_count: u64,
    /// The first rows.
    pub rows: Vec<PreviewRow>,
    /// Whether these are all rows of the file.
    pub complete: bool,
    /// What to know about the file, although it can be read.
    pub warnings: Vec<JobWarning>,
    /// Why a job of the request's type would refuse the params. The same as the problem `invalid_params` of a new job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub params_problem: Option<ParamsProblem>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PreviewColumn {
    /// The name under which it is read, cut off behind 1,000 characters.
    pub name: String,
    /// What its values look like.
    #[schema(value_type = ColumnType)]
    pub r#type: Open<ColumnType>,
}

/// A row: it has `cells` or `value`, unless it cannot be read or shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PreviewRow {
    /// Its 1-based number in the file; the header is not counted.
    #[schema(minimum = 1)]
    pub row: u64,
    /// Its cells, in the order of `columns`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cells: Option<Vec<String>>,
    /// Its JSON object.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub value: Option<Map<String, Value>>,
    /// Why it would fail, or why it is not shown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<RowProblem>,
    /// What a job of the request's type would write for it, cut off behind 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<String>,
    /// Whether some of its texts are cut off and end with `…`, or cells are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub shortened: bool,
}

/// Why a row would fail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RowProblem {
    /// For a program: a code of a failed item such as `ragged_row`, `unterminated_quote`, with which the job would
    /// stop, or `not_shown` for a row that is only too long to be shown here.
    pub code: String,
    /// For a person.
    pub message: String,
}

/// Why a job type refuses the params.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ParamsProblem {
    /// The field of the request, such as `params.key`.
    pub field: String,
    /// What is wrong with it and what to do.
    pub detail: String,
}
