//! What an ended job has left to be fetched, as the API tells it.

use jiff::Timestamp;
use serde::Deserialize;

use super::JobStatus;

/// The `kind` of the manifest, which the API lists apart from the files it is about.
const MANIFEST: &str = "manifest";

/// What `GET /api/jobs/{jobGuid}/results` answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// The job's name.
    pub job_guid: String,
    /// The attempt that composed them.
    pub attempt: u32,
    /// How the job ended.
    pub status: JobStatus,
    /// Until when the links work.
    pub expires_at: Option<Timestamp>,
    files: Vec<ResultFile>,
    manifest: ResultFile,
}

impl Results {
    /// Every file there is, the manifest as the last one.
    pub fn into_files(self) -> Vec<ResultFile> {
        let manifest = ResultFile { kind: MANIFEST.to_owned(), ..self.manifest };
        self.files.into_iter().chain([manifest]).collect()
    }
}

/// A file a job has left.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultFile {
    /// What it is called among the results of any job: `failed-rows.csv`.
    pub name: String,
    /// `failedRows`, `unprocessedRows`, `output` or `manifest`.
    #[serde(default)]
    pub kind: String,
    /// Its media type.
    pub content_type: String,
    /// Its bytes.
    pub bytes: u64,
    /// The items it tells of.
    pub items: Option<u64>,
    /// CRC-64/NVME of its content: 8 bytes, big endian, in Base64.
    pub crc64_nvme: String,
    /// What it is to be called where it is stored. The name comes from elsewhere: it may be anything.
    pub file_name: String,
    /// Where to get it. It holds a signature, so it is never printed.
    pub url: String,
}

impl ResultFile {
    /// Whether both are the same bytes under the same name, whatever their links.
    pub fn is_same_content(&self, other: &Self) -> bool {
        (&self.name, self.bytes, &self.crc64_nvme) == (&other.name, other.bytes, &other.crc64_nvme)
    }
}

impl std::fmt::Debug for ResultFile {
    /// Whoever holds the link may read the file: it must not reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResultFile").field("name", &self.name).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_a_file_like_the_others_and_no_link_is_logged() {
        let text = r#"{"jobGuid":"g","attempt":2,"status":"completed","expiresAt":"2026-11-21T00:00:00Z","files":[
            {"name":"failed-rows.csv","kind":"failedRows","contentType":"text/csv","bytes":123,"items":5,
             "crc64Nvme":"AAAAAAAAAAA=","fileName":"a-failed-rows.csv","url":"https://s?X-Sig=secret"}],
            "manifest":{"name":"manifest.json","contentType":"application/json","bytes":456,"crc64Nvme":"AAAAAAAAAAA=",
             "fileName":"a-manifest.json","url":"https://s?X-Sig=secret"},"later":1}"#;
        let results: Results = serde_json::from_str(text).unwrap();
        assert!(!format!("{results:?}").contains("secret"));
        let files = results.into_files();
        let seen: Vec<_> = files.iter().map(|file| (file.kind.as_str(), file.items)).collect();
        assert_eq!(seen, [("failedRows", Some(5)), ("manifest", None)]);
    }
}
