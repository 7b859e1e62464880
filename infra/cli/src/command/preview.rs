//! `rowmill preview`: shows the first rows of a file as the server reads them.

use std::path::Path;
use std::process::ExitCode;

use rowmill_api::preview::{FileFormat, PreviewRow, PreviewView};
use rowmill_api::request::PreviewRequest;
use rowmill_core::model::ids::FileGuid;

use super::connection::ApiArgs;
use super::params::ParamArgs;
use super::{CommandError, print_result};
use crate::follow::Reporter;
use crate::terminal::{self, count, cut, escape_controls, fitted, table};
use crate::upload::{RememberedUploads, SourceFile, store};

/// The widest column of the table, however wide the terminal is.
const CELL_WIDTH: usize = 60;

/// Shows the first rows of a file as the server reads them
///
/// The file is stored first, as by `rowmill upload`, because workbooks, Parquet files and compressed files can only be
/// read whole. The guid of the upload is printed: with it the next preview, with other params, sends nothing. No job is
/// created.
#[derive(Debug, clap::Args)]
pub struct PreviewArgs {
    /// The file, or the guid of an upload
    #[arg(value_name = "FILE|GUID")]
    pub file: String,
    /// A job type: says too whether it would accept the params, and what it would make of these rows
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Number of rows to show, 1 to 100
    #[arg(long, default_value_t = 20)]
    pub rows: u32,
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print the answer of the API as one line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: PreviewArgs) -> Result<ExitCode, CommandError> {
    let request =
        PreviewRequest { job_type: args.job_type.clone(), params: args.params.to_json()?, rows: Some(args.rows) };
    let path = Path::new(&args.file);
    let (connection, file_guid) = match args.file.parse::<FileGuid>() {
        Ok(file_guid) if !path.exists() => (args.api.connect().await?, file_guid),
        _ => {
            let fallback_type = args.params.format.map(|format| format.content_type());
            let file = SourceFile::open(path, fallback_type).await?;
            let connection = args.api.connect().await?;
            let reporter = Reporter::on_stderr();
            let report = reporter.upload(&file);
            let remembered = RememberedUploads::of_user();
            let stored = store(&connection.api, &file, remembered.as_ref(), &report.progress).await?;
            drop(report);
            eprintln!("Stored as {}", stored.upload.file_guid);
            (connection, stored.upload.file_guid)
        }
    };
    let preview = connection.api.preview(file_guid, &request).await?;
    print_result(args.json, &preview, || shown(&preview, terminal::width()))?;
    Ok(ExitCode::SUCCESS)
}

fn shown(preview: &PreviewView, width: usize) -> String {
    let mut text = format!("{}\n\n", heading(preview));
    let is_number = |name: &str| matches!(name, "integer" | "number");
    let columns = || preview.columns.iter();
    let mut lines = vec![
        [String::new()].into_iter().chain(columns().map(|column| cut(&column.name, CELL_WIDTH))).collect::<Vec<_>>(),
        ["row".to_owned()].into_iter().chain(columns().map(|column| escape_controls(column.r#type.as_str()))).collect(),
    ];
    lines.extend(
        preview.rows.iter().filter(|row| row.cells.is_some() || row.value.is_some()).map(|row| line(preview, row)),
    );
    let numbers = (1..).zip(columns()).filter(|(_, column)| is_number(column.r#type.as_str())).map(|(place, _)| place);
    let right: Vec<usize> = [0].into_iter().chain(numbers).collect();
    let (lines, left_out) = fitted(&lines, 1, width);
    text += &table(&lines, &right);
    if left_out > 0 {
        let names = columns().skip(preview.columns.len() - left_out).map(|column| column.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        text += &format!("{}\n", cut(&format!("and {} more columns: {names}", count(left_out as u64)), width));
    }
    if !preview.complete {
        text += "…\n";
    }
    let problems = preview.rows.iter().filter_map(|row| Some((row.row, row.problem.as_ref()?)));
    for (place, (row, problem)) in problems.enumerate() {
        let gap = if place == 0 { "\n" } else { "" };
        text += &format!(
            "{gap}row {}: {}\n",
            count(row),
            escape_controls(&format!("{}: {}", problem.code, problem.message))
        );
    }
    let mut outputs = preview.rows.iter().filter_map(|row| row.output.as_deref()).peekable();
    if outputs.peek().is_some() {
        text += "\nA job would write:\n";
        text.extend(outputs.map(|output| format!("{}\n", cut(output.trim_end(), width))));
    }
    for warning in &preview.warnings {
        text += &format!("\nwarning: {}\n", escape_controls(&warning.message));
    }
    if let Some(problem) = &preview.params_problem {
        text += &format!("\nA job would be refused: {}\n", escape_controls(&problem.detail));
    }
    text
}

/// The format of the file, in a line.
fn heading(preview: &PreviewView) -> String {
    let mut facts = vec![match preview.format.as_str() {
        "csv" => "CSV".to_owned(),
        "jsonl" => "JSON lines".to_owned(),
        "json" => "JSON array".to_owned(),
        "xlsx" => "Excel workbook".to_owned(),
        "parquet" => "Parquet".to_owned(),
        other => escape_controls(other),
    }];
    if let Some(packing) = &preview.packing {
        facts.push(escape_controls(packing.as_str()));
    }
    if let Some(encoding) = &preview.encoding {
        facts.push(escape_controls(encoding));
    }
    if let Some(delimiter) = preview.delimiter.as_deref().filter(|_| preview.format == FileFormat::Csv) {
        facts.push(format!("delimiter `{}`", escape_controls(delimiter)));
    }
    match preview.header_row {
        Some(0) => facts.push("no header".to_owned()),
        Some(row) => facts.push(format!("header in row {row}")),
        None => {}
    }
    facts.push(format!("{} columns", count(preview.column_count)));
    facts.join(", ")
}

/// A row of the table: its number and its cells in the order of the columns.
fn line(preview: &PreviewView, row: &PreviewRow) -> Vec<String> {
    let number = count(row.row);
    let cells: Vec<String> = match (&row.cells, &row.value) {
        (Some(cells), _) => cells.clone(),
        (None, Some(value)) => {
            let value_of = |name: &str| match value.get(name) {
                None => String::new(),
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            preview.columns.iter().map(|column| value_of(&column.name)).collect()
        }
        (None, None) => Vec::new(),
    };
    [number].into_iter().chain(cells.iter().map(|cell| cut(cell, CELL_WIDTH))).collect()
}

#[cfg(test)]
mod tests {
    use rowmill_api::preview::{ParamsProblem, RowProblem};
    use rowmill_api::routes::Body as _;

    use super::*;

    #[test]
    fn a_preview_shows_how_the_file_is_read_and_its_rows() {
        let expected = "CSV, windows-1252, delimiter `;`, header in row 1, 2 columns\n\n          id  city\nrow  integer  string\n  1        1  Köln\n  2        2  Orléans\n";
        assert_eq!(shown(&PreviewView::example(), 80), expected);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_listed_below_the_table_and_widens_no_column() {
        let mut preview = PreviewView::example();
        preview.rows[0].cells = None;
        let message =
            "The row has 3 cells, but the header has 2 columns. Quote cells that hold the delimiter.".to_owned();
        preview.rows[0].problem = Some(RowProblem { code: "ragged_row".to_owned(), message: message.clone() });
        let expected = format!(
            "CSV, windows-1252, delimiter `;`, header in row 1, 2 columns\n\n          id  city\nrow  integer  string\n  2        2  \
             Orléans\n\nrow 1: ragged_row: {message}\n"
        );
        assert_eq!(shown(&preview, 80), expected);
    }

    #[test]
    fn what_is_wrong_is_shown_and_nothing_drives_the_terminal() {
        let mut preview = PreviewView::example();
        preview.complete = false;
        preview.rows[0].cells = None;
        let problem = RowProblem { code: "ragged_row".to_owned(), message: "The row has\u{1b} 3 cells".to_owned() };
        preview.rows[0].problem = Some(problem);
        preview.rows[1].cells = Some(vec!["2".to_owned(), "x".repeat(500)]);
        let problem = ParamsProblem { field: "params.key".to_owned(), detail: "`params.key` is missing.".to_owned() };
        preview.params_problem = Some(problem);
        let text = shown(&preview, 60);
        assert!(text.contains("…\n\nrow 1: ragged_row: The row has\\u{1b} 3 cells\n"), "{text}");
        assert!(text.ends_with("\n\nA job would be refused: `params.key` is missing.\n"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| console::measure_text_width(line) <= 60), "{text}");
    }
}
