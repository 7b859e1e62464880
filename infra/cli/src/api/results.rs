//! The results of an ended job as a list of files.

use rowmill_api::results::{FileView, ManifestView, ResultsView};
use rowmill_core::model::results::ResultFile;
use rowmill_core::words::Open;

/// The `kind` of the manifest. The API shows the manifest beside the files, and without a kind.
pub const MANIFEST: &str = "manifest";

/// Every file of the results, the manifest last.
pub fn files_of(results: ResultsView) -> Vec<FileView> {
    let ManifestView { name, content_type, bytes, crc64_nvme, link } = results.manifest;
    let kind = Open::Other(MANIFEST.to_owned());
    let manifest = ResultFile { name, kind, content_type, bytes, items: None, crc64_nvme };
    results.files.into_iter().chain([FileView { file: manifest, link }]).collect()
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;

    use super::*;

    #[test]
    fn the_manifest_is_a_file_like_the_others_and_no_link_is_logged() {
        let results = examples::results();
        assert!(!format!("{results:?}").contains("X-Amz-Signature"));
        let files = files_of(results);
        let seen: Vec<_> = files.iter().map(|file| (file.file.kind.as_str(), file.file.items)).collect();
        assert_eq!(seen, [("failedRows", Some(1)), ("manifest", None)]);
    }
}
