//! Parameters of a job as the command line gives them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::CommandError;
use crate::upload::{CSV, JSON_LINES};

/// How the file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Delimiter-separated values.
    Csv,
    /// One JSON value a line.
    Jsonl,
}

impl Format {
    /// The media type of such a file.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => CSV,
            Self::Jsonl => JSON_LINES,
        }
    }
}

/// Parameters of the job, each as the API names it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ParamArgs {
    /// Dataset the records go to
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// Columns that identify a record
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub key: Vec<String>,
    /// File with a JSON Schema for the rows
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Character between the cells of a CSV row, `\t` or `tab` for a tab [default: found in the header line]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_delimiter)]
    pub delimiter: Option<char>,
    /// The first row is data: columns are named column1, column2, …
    #[arg(long)]
    pub no_header: bool,
    /// How the file is written [default: by its extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Check every row as the job type would, and do nothing with it
    #[arg(long)]
    pub dry_run: bool,
    /// Any other parameter of the job type, its value as JSON
    #[arg(long = "param", value_name = "NAME=JSON", value_parser = parse_param)]
    pub params: Vec<(String, Value)>,
}

impl ParamArgs {
    /// The `params` member of a new job.
    ///
    /// # Errors
    ///
    /// [`CommandError::File`] for an unusable schema, [`CommandError::Usage`] for a parameter given twice.
    pub fn to_json(&self) -> Result<Map<String, Value>, CommandError> {
        let mut params = Map::new();
        if let Some(dataset) = &self.dataset {
            params.insert("dataset".into(), dataset.as_str().into());
        }
        if !self.key.is_empty() {
            params.insert("key".into(), self.key.clone().into());
        }
        if let Some(path) = &self.schema {
            params.insert("schema".into(), read_schema(path)?);
        }
        if let Some(delimiter) = self.delimiter {
            params.insert("delimiter".into(), delimiter.to_string().into());
        }
        if self.no_header {
            params.insert("header".into(), false.into());
        }
        if let Some(format) = self.format {
            let name = match format {
                Format::Csv => "csv",
                Format::Jsonl => "jsonl",
            };
            params.insert("format".into(), name.into());
        }
        if self.dry_run {
            params.insert("dryRun".into(), true.into());
        }
        for (name, value) in &self.params {
            if params.insert(name.clone(), value.clone()).is_some() {
                let text = format!("the parameter `{name}` is given twice");
                return Err(CommandError::Usage(text));
            }
        }
        Ok(params)
    }
}

fn read_schema(path: &Path) -> Result<Value, CommandError> {
    let unusable =
        |reason: Box<dyn std::error::Error + Send + Sync>| CommandError::File { path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| unusable(error.into()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.into()))
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
            "--delimiter=tab",
            "--no-header",
            "--format=csv",
            "--schema",
            schema.path().to_str().unwrap(),
            "--param",
            r#"encoding="utf-8""#,
        ]);
        let expected = json!({
            "dataset": "d", "key": ["a", "b"], "delimiter": "\t", "header": false, "format": "csv",
            "schema": {"type": "object"}, "encoding": "utf-8",
        });
        assert_eq!(given, Ok(expected));
        assert_eq!(params(&[]), Ok(json!({})), "what is not said is the API's to decide");
    }

    #[test]
    fn what_cannot_be_meant_is_explained() {
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
