//! The results of a job: the files that an attempt's end leaves for the job's owner, and where they are.
//!
//! An attempt's files are composed before it ends, under the name of the run that began to compose them; the
//! transaction that ends the attempt says which they are. So whoever sees a job ended sees its results whole, and files
//! of runs that were given up are never shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use rowmill_api::results::{LeftOut, Manifest, ResultFile, ResultKind};
use serde::{Deserialize, Serialize};

use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;

/// The name of the file that lists the others.
pub const MANIFEST: &str = "manifest.json";

/// What the file of the failed rows is called, without its ending.
pub const FAILED_ROWS: &str = "failed-rows";

/// What the file of the rows that were not processed is called, without its ending.
pub const UNPROCESSED_ROWS: &str = "unprocessed-rows";

/// Where the results of an attempt are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// The attempt that left them.
    pub attempt: u32,
    /// The name that the files are under.
    pub files: RunId,
    /// The name that the manifest is under.
    pub manifest: RunId,
}

impl Results {
    /// The key of the file of this name.
    pub fn file_key(&self, job: JobGuid, name: &str) -> String {
        keys::result_file(job, self.attempt, self.files, name)
    }

    /// The key of the manifest.
    pub fn manifest_key(&self, job: JobGuid) -> String {
        keys::result_file(job, self.attempt, self.manifest, MANIFEST)
    }
}

/// A CRC-64/NVME as [`ResultFile`] has it.
pub fn crc64_text(crc: u64) -> String {
    STANDARD.encode(crc.to_be_bytes())
}

/// The names of the columns that a failed-rows file has behind those of the input: `row`, `code`, `message`, `column`. Where
/// the input has a column of one of these names, all four have `rowmill_` before them, as often as it takes.
pub fn failed_rows_columns(input: &[String]) -> [String; 4] {
    let mut names = ["row", "code", "message", "column"].map(str::to_owned);
    while names.iter().any(|name| input.contains(name)) {
        names = names.map(|name| format!("rowmill_{name}"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rowmill_columns_are_never_named_like_input_columns() {
        let input = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(failed_rows_columns(&input(&["a", "b"])), ["row", "code", "message", "column"]);
        let prefixed = failed_rows_columns(&input(&["code", "b"]));
        assert_eq!(prefixed, ["rowmill_row", "rowmill_code", "rowmill_message", "rowmill_column"]);
        assert_eq!(failed_rows_columns(&input(&["row", "rowmill_column"]))[0], "rowmill_rowmill_row");
    }

    #[test]
    fn a_checksum_has_the_format_of_s3() {
        assert_eq!(crc64_text(0xae8b_1486_0a79_9888), "rosUhgp5mIg=");
    }
}
