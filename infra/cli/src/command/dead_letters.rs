//! `rowmill dead-letters`: lists the dead letters of a job.

use std::process::ExitCode;

use rowmill_api::dead_letter::DeadChunk;

use super::connection::JobRefArgs;
use super::{CommandError, print_list};
use crate::api::DeadLetter;
use crate::terminal::{count, cut, escape_controls, table};

/// Lists the dead letters of a job: messages that failed at every delivery
///
/// Every dead letter has been handled: its items were processed one at a time or failed with a code, or the job was
/// stopped. `rowmill job` shows the result.
#[derive(Debug, clap::Args)]
pub struct DeadLettersArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print each dead letter as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: DeadLettersArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let letters = connection.api.dead_letters(args.job.job_guid).await?;
    print_list(args.json, &letters, "The job has no dead letters.", || letter_table(&letters))?;
    Ok(ExitCode::SUCCESS)
}

fn letter_table(letters: &[DeadLetter]) -> String {
    let heading = ["recorded", "about", "attempt", "tally", "chunk", "rows", "message"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for letter in letters {
        let of_chunk = |text: fn(&DeadChunk) -> String| letter.chunk.as_ref().map(text).unwrap_or_default();
        rows.push(vec![
            format!("{:.0}", letter.at),
            cut(letter.about.as_str(), 24),
            letter.attempt.to_string(),
            of_chunk(|chunk| chunk.tally.to_string()),
            of_chunk(|chunk| chunk.index.to_string()),
            of_chunk(rows_of),
            escape_controls(&letter.message_id),
        ]);
    }
    table(&rows, &[2, 3, 4])
}

/// The rows of a chunk, as far as the message tells. In a redrive they are the failed rows from the first row on.
fn rows_of(chunk: &DeadChunk) -> String {
    format!("{} from {}", count(chunk.items.into()), count(chunk.first_row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_letter_says_what_it_was_about_and_where_its_rows_are() {
        let letters = json!([
            {"messageId": "m1", "about": "items", "attempt": 1, "at": "2025-01-01T00:00:00.5Z",
                "chunk": {"tally": 3, "index": 17, "firstRow": 12_001, "items": 500}},
            {"messageId": "m\u{1b}2", "about": "completion", "attempt": 2, "chunk": null, "at": "2025-01-01T01:00:00Z"},
        ]);
        let letters: Vec<DeadLetter> = serde_json::from_value(letters).unwrap();
        let expected = "recorded              about       attempt  tally  chunk  rows             message\n\
                        2025-01-01T00:00:00Z  items             1      3     17  500 from 12,001  m1\n\
                        2025-01-01T01:00:00Z  completion        2                                 m\\u{1b}2\n";
        assert_eq!(letter_table(&letters), expected);
    }
}
