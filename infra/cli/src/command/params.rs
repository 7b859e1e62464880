//! Job params from the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::{CommandError, parse_span, word_of};
use crate::upload::{CSV, JSON_LINES, PARQUET, XLSX};

/// Format of an uploaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Delimiter-separated values.
    Csv,
    /// JSON Lines: one JSON value per line.
    Jsonl,
    /// An Excel workbook.
    Xlsx,
    /// A Parquet file.
    Parquet,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => CSV,
            Self::Jsonl => JSON_LINES,
            Self::Xlsx => XLSX,
            Self::Parquet => PARQUET,
        }
    }
}

/// Format of a file that a job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TextFormat {
    /// Comma-separated values with a header line.
    Csv,
    /// JSON Lines: one JSON value per line.
    Jsonl,
}

/// Compression of an uploaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// Not compressed, even if the file name says otherwise.
    None,
}

/// Params of the job, named as in the API.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ParamArgs {
    /// Dataset to write the records to
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// Columns that identify a record, separated by commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub key: Vec<String>,
    /// Keep each record this long after the creation of its job: 1h, 30d, … The first import into a dataset decides
    /// [default: for ever]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires_in: Option<Duration>,
    /// File with a JSON Schema for the rows
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Character between the cells of a CSV row, `\t` or `tab` for a tab [default: detected in the header line]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_delimiter)]
    pub delimiter: Option<char>,
    /// The file has no header line: its columns are named column1, column2, …
    #[arg(long)]
    pub no_header: bool,
    /// Row of the file that names the columns, counted from 1 behind the skipped ones; 0 for none [default: 1]
    #[arg(long, value_name = "ROW", conflicts_with = "no_header")]
    pub header_row: Option<u32>,
    /// Rows at the start of the file to skip, such as titles; blank lines do not count [default: 0]
    #[arg(long, value_name = "ROWS")]
    pub skip_rows: Option<u32>,
    /// Format of the file [default: detected from its content and extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Sheet of a workbook to read [default: the first]
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// Compression of the file [default: detected from its content]
    #[arg(long, value_enum)]
    pub compression: Option<Compression>,
    /// Text encoding by its WHATWG label, for example `utf-16le`, `windows-1252` or `shift_jis` [default: from the byte
    /// order mark, else utf-8]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// Mapping for transform: a JSON array, or the name of a file with one
    #[arg(long, value_name = "FILE|JSON")]
    pub mapping: Option<String>,
    /// Output format of transform
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<TextFormat>,
    /// Only check the rows, do not process them
    #[arg(long)]
    pub dry_run: bool,
    /// Any other param of the job type, with its value as JSON
    #[arg(long = "param", value_name = "NAME=JSON", value_parser = parse_param)]
    pub params: Vec<(String, Value)>,
}

impl ParamArgs {
    /// The `params` member of a new job.
    ///
    /// # Errors
    ///
    /// [`CommandError::File`] for an unusable schema or mapping, [`CommandError::Usage`] for a param that is given
    /// twice or an invalid mapping.
    pub fn to_json(&self) -> Result<Map<String, Value>, CommandError> {
        let schema = self.schema.as_deref().map(read_json).transpose()?;
        let mapping = self.mapping.as_deref().map(read_mapping).transpose()?;
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        let given = [
            ("dataset", text(&self.dataset)),
            ("key", (!self.key.is_empty()).then(|| self.key.clone().into())),
            ("expiresInSeconds", self.expires_in.map(|span| span.as_secs().into())),
            ("schema", schema),
            ("delimiter", self.delimiter.map(|delimiter| delimiter.to_string().into())),
            ("header", self.no_header.then_some(false.into())),
            ("headerRow", self.header_row.map(Value::from)),
            ("skipRows", self.skip_rows.map(Value::from)),
            ("format", self.format.map(|format| word_of(format).into())),
            ("sheet", text(&self.sheet)),
            ("compression", self.compression.map(|compression| word_of(compression).into())),
            ("encoding", text(&self.encoding)),
            ("mapping", mapping),
            ("outputFormat", self.output_format.map(|format| word_of(format).into())),
            ("dryRun", self.dry_run.then_some(true.into())),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut params = Map::from_iter(given);
        for (name, value) in &self.params {
            if params.insert(name.clone(), value.clone()).is_some() {
                let text = format!("the param `{name}` is given twice");
                return Err(CommandError::Usage(text));
            }
        }
        Ok(params)
    }
}

/// The JSON in a file.
pub(super) fn read_json(path: &Path) -> Result<Value, CommandError> {
    let unusable =
        |reason: Box<dyn std::error::Error + Send + Sync>| CommandError::File { path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| unusable(error.into()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.into()))
}

/// A mapping, given as JSON or as a file name.
fn read_mapping(given: &str) -> Result<Value, CommandError> {
    // A file name hardly ever begins like this.
    let mapping = match given.trim_start().starts_with('[') {
        true => serde_json::from_str(given)
            .map_err(|error| CommandError::Usage(format!("--mapping is not JSON: {error}")))?,
        false => read_json(Path::new(given))?,
    };
    match mapping {
        Value::Array(_) => Ok(mapping),
        _ => Err(CommandError::Usage("--mapping is not a JSON array".to_owned())),
    }
}

fn parse_delimiter(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (text, characters.next(), characters.next()) {
        ("\\t" | "tab", ..) => Ok('\t'),
        (_, Some(delimiter), None) => Ok(delimiter),
        _ => Err("expected one character, or `tab`".to_owned()),
    }
}

fn parse_param(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=JSON")?;
    if name.is_empty() {
        return Err("expected a name before the `=`".to_owned());
    }
    let value = serde_json::from_str(value)
        .map_err(|error| format!("`{value}` is not JSON ({error}); text needs quotes: --param '{name}=\"{value}\"'"))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ParamArgs,
    }

    fn params(arguments: &[&str]) -> Result<Value, String> {
        let line = Line::try_parse_from([&["rowmill"], arguments].concat()).map_err(|error| error.to_string())?;
        line.args.to_json().map(Value::Object).map_err(|error| error.explain())
    }

    #[test]
    fn arguments_become_the_apis_parameters() {
        let mut schema = tempfile::NamedTempFile::new().unwrap();
        write!(schema, r#"{{"type":"object"}}"#).unwrap();
        let given = params(&[
            "--dataset=d",
            "--key",
            "a,b",
            "--expires-in=30d",
            "--delimiter=tab",
            "--no-header",
            "--format=csv",
            "--schema",
            schema.path().to_str().unwrap(),
            "--param",
            r#"batch=5"#,
        ]);
        let expected = json!({
            "dataset": "d", "key": ["a", "b"], "delimiter": "\t", "header": false, "format": "csv",
            "expiresInSeconds": 2_592_000, "schema": {"type": "object"}, "batch": 5,
        });
        assert_eq!(given, Ok(expected));
        assert_eq!(params(&[]), Ok(json!({})), "what is not said is the API's to decide");
    }

    #[test]
    fn packing_and_outputs_become_params() {
        let packed = ["--format=xlsx", "--sheet=Q 1", "--compression=none", "--encoding=windows-1252"];
        let expected = json!({"format": "xlsx", "sheet": "Q 1", "compression": "none", "encoding": "windows-1252"});
        assert_eq!(params(&packed), Ok(expected));
        assert_eq!(params(&["--compression=zstd"]), Ok(json!({"compression": "zstd"})));
    }

    #[test]
    fn a_mapping_is_given_as_it_is_or_in_a_file() {
        let mapping = json!([{"rename": {"from": "a", "to": "b"}}]);
        let expected = json!({"mapping": mapping, "outputFormat": "jsonl"});
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{mapping}").unwrap();
        for given in [format!(" {mapping}"), file.path().to_str().unwrap().to_owned()] {
            assert_eq!(params(&["--mapping", &given, "--output-format=jsonl"]), Ok(expected.clone()));
        }
        assert!(params(&["--mapping", "[1,"]).unwrap_err().contains("--mapping is not JSON"));
        assert!(params(&["--mapping", "/no/such.json"]).unwrap_err().contains("/no/such.json"));
        write!(file.reopen().unwrap(), "{{}}  ").unwrap();
        file.as_file().set_len(2).unwrap();
        let error = params(&["--mapping", file.path().to_str().unwrap()]).unwrap_err();
        assert!(error.contains("not a JSON array"), "{error}");
    }

    #[test]
    fn the_error_explains_contradicting_arguments() {
        let error = |arguments: &[&str]| params(arguments).unwrap_err();
        assert!(error(&["--param", "mode=fast"]).contains(r#"--param 'mode="fast"'"#));
        assert!(error(&["--param", "mode"]).contains("NAME=JSON"));
        assert!(error(&["--delimiter", "ab"]).contains("one character"));
        assert!(error(&["--dataset", "d", "--param", "dataset=1"]).contains("given twice"));
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("schema.json");
        let missing = missing.to_str().unwrap();
        assert!(error(&["--schema", missing]).contains(&format!("cannot use `{missing}`: No such")));
    }
}
