//! The results of a job: the files for its owner that exist from the end of an attempt on, and their keys.
//!
//! The files are composed before the attempt ends, each under the id of the run that stores it. The manifest names the files
//! with these ids, and the transaction that ends the attempt names the manifest. So the results of an ended job are always
//! complete, and a run that was given up can neither show nor change a file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use rowmill_api::results::{LeftOut, Manifest, ManifestFile, ResultFile, ResultKind};
use serde::{Deserialize, Serialize};

use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;

/// The name of the manifest, the file that lists the others.
pub const MANIFEST: &str = "manifest.json";

/// The name of the file of failed rows, without its extension.
pub const FAILED_ROWS: &str = "failed-rows";

/// The name of the file of unprocessed rows, without its extension.
pub const UNPROCESSED_ROWS: &str = "unprocessed-rows";

/// The location of the results of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    pub attempt: u32,
    /// The id in the key of the manifest.
    pub manifest: RunId,
}

impl Results {
    /// The key of a file that the manifest lists.
    pub fn file_key(&self, job: JobGuid, file: &ManifestFile) -> String {
        keys::result_file(job, self.attempt, &file.by, &file.file.name)
    }

    pub fn manifest_key(&self, job: JobGuid) -> String {
        keys::result_file(job, self.attempt, &self.manifest.to_string(), MANIFEST)
    }
}

/// A CRC-64/NVME in the format of [`ResultFile`].
pub fn crc64_text(crc: u64) -> String {
    STANDARD.encode(crc.to_be_bytes())
}

/// The names of the columns that follow the input's columns in a failed-rows file: `row`, `code`, `message`, `column`. If
/// the input has a column of one of these names, all four get the prefix `rowmill_`, repeated until no name is taken.
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
