//! The file to upload: name, size, media type and content.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use futures::{Stream, stream};
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::UploadError;

/// Read buffer. With the number of parallel parts it bounds the memory of an upload.
const BUFFER_BYTES: usize = 256 * 1024;

/// A regular, readable file, as it was when the upload began.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: PathBuf,
    /// Its name without folders.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, if the system says so.
    pub modified: Option<SystemTime>,
    pub content_type: &'static str,
}

impl SourceFile {
    /// Inspects the file. `fallback_type` is its media type if the extension is unknown.
    ///
    /// # Errors
    ///
    /// [`UploadError::Missing`], [`UploadError::NotAFile`] or [`UploadError::Unreadable`]; the
    /// file is opened once, so that missing permissions are found here and not later.
    pub async fn open(path: &Path, fallback_type: Option<&'static str>) -> Result<Self, UploadError> {
        let metadata = tokio::fs::metadata(path).await.map_err(|error| unreadable(path, error))?;
        if !metadata.is_file() {
            return Err(UploadError::NotAFile(path.to_owned()));
        }
        File::open(path).await.map_err(|error| unreadable(path, error))?;
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        Ok(Self {
            path: path.to_owned(),
            name,
            size: metadata.len(),
            modified: metadata.modified().ok(),
            content_type: content_type_of(path).or(fallback_type).unwrap_or(OCTET_STREAM),
        })
    }

    /// True if the API accepts its media type as a request body.
    pub fn is_text(&self) -> bool {
        [CSV, TAB_SEPARATED, JSON_LINES].contains(&self.content_type)
    }

    /// The whole content; for small files.
    pub async fn read_whole(&self) -> Result<Vec<u8>, UploadError> {
        let content = tokio::fs::read(&self.path).await.map_err(|error| unreadable(&self.path, error))?;
        if content.len() as u64 == self.size { Ok(content) } else { Err(UploadError::Changed(self.path.clone())) }
    }

    /// SHA-256 of the content in hexadecimal.
    pub async fn sha256(&self) -> Result<String, UploadError> {
        let file = self.clone();
        tokio::task::spawn_blocking(move || file.hash()).await.expect("hashing does not panic")
    }

    fn hash(&self) -> Result<String, UploadError> {
        let read = || -> io::Result<(u64, Sha256)> {
            let mut source = std::fs::File::open(&self.path)?;
            let mut buffer = vec![0; BUFFER_BYTES];
            let (mut length, mut hash) = (0, Sha256::new());
            loop {
                match source.read(&mut buffer) {
                    Ok(0) => return Ok((length, hash)),
                    Ok(read) => {
                        hash.update(&buffer[..read]);
                        length += read as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        };
        let (length, hash) = read().map_err(|error| unreadable(&self.path, error))?;
        if length != self.size {
            return Err(UploadError::Changed(self.path.clone()));
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The bytes of `range`, one buffer at a time. `sent` gets the size of each. Ends with an error if the file has
    /// become too short.
    pub async fn stream(
        &self,
        range: Range<u64>,
        sent: impl Fn(u64) + Send + 'static,
    ) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
        let mut file = File::open(&self.path).await?;
        file.seek(io::SeekFrom::Start(range.start)).await?;
        let left = range.end - range.start;
        Ok(stream::try_unfold((file, left, sent), |(mut file, left, sent)| async move {
            if left == 0 {
                return Ok(None);
            }
            let mut buffer = vec![0; left.min(BUFFER_BYTES as u64) as usize];
            let read = file.read(&mut buffer).await?;
            if read == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file became shorter"));
            }
            buffer.truncate(read);
            sent(read as u64);
            Ok(Some((Bytes::from(buffer), (file, left - read as u64, sent))))
        }))
    }

    /// True if the file still has the size that was announced, and was not written to since.
    pub async fn is_unchanged(&self) -> bool {
        let metadata = tokio::fs::metadata(&self.path).await;
        metadata.is_ok_and(|metadata| metadata.len() == self.size && metadata.modified().ok() == self.modified)
    }
}

const OCTET_STREAM: &str = "application/octet-stream";

pub const CSV: &str = "text/csv";

pub const JSON_LINES: &str = "application/x-ndjson";

const TAB_SEPARATED: &str = "text/tab-separated-values";

const JSON: &str = "application/json";

pub const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

pub const PARQUET: &str = "application/vnd.apache.parquet";

/// The media type of the stored bytes: that of the compression for `rows.csv.gz`. The name tells the format inside.
fn content_type_of(path: &Path) -> Option<&'static str> {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv") => Some(CSV),
        Some("tsv" | "tab") => Some(TAB_SEPARATED),
        Some("jsonl" | "ndjson") => Some(JSON_LINES),
        Some("json") => Some(JSON),
        Some("xlsx") => Some(XLSX),
        Some("parquet" | "parq" | "pq") => Some(PARQUET),
        Some("gz" | "gzip") => Some("application/gzip"),
        Some("zst" | "zstd") => Some("application/zstd"),
        _ => None,
    }
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> UploadError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::NotFound => UploadError::Missing(path),
        _ => UploadError::Unreadable { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[tokio::test]
    async fn a_file_that_cannot_be_uploaded_is_named_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let open = async |name: &str| SourceFile::open(&folder.path().join(name), None).await;
        assert!(matches!(open("none.csv").await, Err(UploadError::Missing(_))));
        assert!(matches!(open("").await, Err(UploadError::NotAFile(_))));
    }

    #[test]
    fn the_content_type_comes_from_the_extension() {
        let of = |name| content_type_of(Path::new(name));
        assert_eq!(of("a.csv"), Some("text/csv"));
        assert_eq!(of("A.TSV"), Some("text/tab-separated-values"));
        assert_eq!((of("a.jsonl"), of("a.ndjson")), (Some(JSON_LINES), Some(JSON_LINES)));
        assert_eq!((of("a.bin"), of("csv")), (None, None));
        assert_eq!((of("a.xlsx"), of("a.parquet")), (Some(XLSX), Some(PARQUET)));
    }

    #[test]
    fn a_compressed_file_has_the_content_type_of_its_compression() {
        let of = |name| content_type_of(Path::new(name));
        for name in ["a.csv.gz", "a.jsonl.gz", "A.NDJSON.GZ", "a.gz"] {
            assert_eq!(of(name), Some("application/gzip"), "{name}");
        }
        assert_eq!(of("a.csv.zst"), Some("application/zstd"));
    }

    #[tokio::test]
    async fn only_text_may_travel_with_its_request() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("a.csv", true), ("a.tsv", true), ("a.jsonl", true), ("a.csv.gz", false), ("a.xlsx", false)]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, "a").unwrap();
            assert_eq!(SourceFile::open(&path, None).await.unwrap().is_text(), text, "{name}");
        }
    }

    #[tokio::test]
    async fn a_range_is_streamed_as_it_stands_in_the_file() {
        let mut source = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        std::io::Write::write_all(&mut source, &content).unwrap();
        let file = SourceFile::open(source.path(), None).await.unwrap();
        let counted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&counted);
        let stream = file
            .stream(300..900_001, move |n| {
                counter.fetch_add(n, Ordering::Relaxed);
            })
            .await
            .unwrap();
        let chunks: Vec<Bytes> = stream.try_collect().await.unwrap();
        assert!(chunks.iter().all(|chunk| chunk.len() <= BUFFER_BYTES));
        assert_eq!(chunks.concat(), content[300..900_001]);
        assert_eq!(counted.load(Ordering::Relaxed), 899_701);
    }

    #[tokio::test]
    async fn a_file_that_shrinks_is_noticed() {
        let source = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(source.path(), "abcdef").unwrap();
        let file = SourceFile::open(source.path(), None).await.unwrap();
        let abcdef = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";
        assert_eq!(file.sha256().await.unwrap(), abcdef);
        std::fs::write(source.path(), "abc").unwrap();
        assert!(!file.is_unchanged().await);
        assert!(matches!(file.sha256().await, Err(UploadError::Changed(_))));
        assert!(matches!(file.read_whole().await, Err(UploadError::Changed(_))));
        let stream = file.stream(0..6, |_| ()).await.unwrap();
        assert!(stream.try_collect::<Vec<_>>().await.is_err());
    }
}
