//! Writes a file of the results: bytes are held up to the length of a part, then stored part by part.

use std::io::Write;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};
use flate2::Compression;
use flate2::write::GzEncoder;
use rowmill_core::model::results::{ResultFile, ResultKind, crc64_text};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{MultipartObjects, Objects, PortError, UploadedPart};
use rowmill_core::text::Format;
use serde::{Deserialize, Serialize};

/// The length of a part, in bytes. S3 takes no part below 5 MiB, except the last. After 1,000 parts each part is twice as
/// long, since S3 takes at most 10,000 of them.
pub const PART_BYTES: usize = 8 * 1024 * 1024;

/// See [`PART_BYTES`].
const SHORT_PARTS: u32 = 1000;

/// The text length of a member of a compressed file.
const MEMBER_BYTES: usize = 1024 * 1024;

/// A file that is being written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenFile {
    /// Its name.
    pub name: String,
    /// Its place among the results.
    pub kind: ResultKind,
    /// Its media type.
    pub content_type: String,
    /// Whether it is compressed.
    pub gzip: bool,
    /// How many items it holds.
    pub items: u64,
    /// The name of its multipart upload, once it has more than a part.
    multipart: Option<String>,
    /// How many parts are stored.
    parts: u32,
    /// Their bytes.
    bytes: u64,
    /// Their checksum.
    crc: u64,
}

impl OpenFile {
    /// A file with nothing in it.
    pub const fn new(name: String, kind: ResultKind, content_type: String, gzip: bool) -> Self {
        Self { name, kind, content_type, gzip, items: 0, multipart: None, parts: 0, bytes: 0, crc: 0 }
    }

    /// A file with nothing in it, for rows in the format of the input. `stem` is its name without the extension.
    pub fn of_rows(stem: &str, kind: ResultKind, spec: &Spec) -> Self {
        let (extension, content_type) = match spec.head.dialect.format {
            Format::Csv => ("csv", "text/csv"),
            Format::Jsonl => ("jsonl", "application/x-ndjson"),
        };
        Self::new(format!("{stem}.{extension}"), kind, content_type.to_owned(), false)
    }
}

/// Where a file is written.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    /// Stores a file of at most one part.
    pub objects: &'a dyn Objects,
    /// Stores a longer file.
    pub multipart: &'a dyn MultipartObjects,
    /// The length of a part, see [`PART_BYTES`].
    pub part_bytes: usize,
}

/// Writes a file.
///
/// The bytes of a part depend only on the bytes written before it, so two runs that resume at the same place write the
/// same parts.
pub struct ResultWriter<'a> {
    to: Destination<'a>,
    key: String,
    file: OpenFile,
    /// Bytes of the file that are not stored yet.
    tail: Vec<u8>,
    /// Text that is not compressed yet.
    text: Vec<u8>,
}

impl<'a> ResultWriter<'a> {
    /// Writes on at this file, of which these bytes are not stored yet.
    pub const fn new(to: Destination<'a>, key: String, file: OpenFile, tail: Vec<u8>) -> Self {
        Self { to, key, file, tail, text: Vec::new() }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.file.bytes == 0 && self.tail.is_empty() && self.text.is_empty()
    }

    /// Counts items that have been written.
    pub const fn count(&mut self, items: u64) {
        self.file.items += items;
    }

    /// Adds these bytes. Only the end of the file shows whether the parts stored before still exist.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), PortError> {
        match self.file.gzip {
            false => self.tail.extend_from_slice(bytes),
            true => {
                self.text.extend_from_slice(bytes);
                if self.text.len() >= MEMBER_BYTES {
                    self.compress()?;
                }
            }
        }
        while self.tail.len() >= self.part_bytes() {
            let rest = self.tail.split_off(self.part_bytes());
            self.put_part().await?;
            self.tail = rest;
        }
        Ok(())
    }

    const fn part_bytes(&self) -> usize {
        if self.file.parts < SHORT_PARTS { self.to.part_bytes } else { 2 * self.to.part_bytes }
    }

    /// Makes a member of the text so far. An empty file needs one too, to be a valid compressed file.
    fn compress(&mut self) -> Result<(), PortError> {
        let mut member = GzEncoder::new(&mut self.tail, Compression::default());
        let compressed = member.write_all(&self.text).and_then(|()| member.finish().map(drop));
        self.text.clear();
        compressed.map_err(|error| PortError::invalid("compressing a result", error))
    }

    fn add_to_checksum(&mut self) {
        let crc = checksum(CrcAlgorithm::Crc64Nvme, &self.tail);
        let bytes = self.tail.len() as u64;
        self.file.crc = match self.file.bytes {
            0 => crc,
            _ => checksum_combine(CrcAlgorithm::Crc64Nvme, self.file.crc, crc, bytes),
        };
        self.file.bytes += bytes;
    }

    async fn put_part(&mut self) -> Result<(), PortError> {
        let multipart = match &self.file.multipart {
            Some(multipart) => multipart.clone(),
            None => {
                let multipart = self.to.multipart.begin_multipart(&self.key, &self.file.content_type).await?;
                self.file.multipart.insert(multipart).clone()
            }
        };
        self.add_to_checksum();
        self.file.parts += 1;
        let part = Bytes::from(std::mem::take(&mut self.tail));
        match self.to.multipart.put_part(&self.key, &multipart, self.file.parts, part).await {
            // Another run has joined the file, or the upload is lost: `join_parts` finds out which.
            Err(PortError::NotFound) => Ok(()),
            put => put.map(drop),
        }
    }

    /// The file so far and its bytes that are not stored, for another run to write on.
    ///
    /// # Errors
    /// None in practice.
    pub fn pause(mut self) -> Result<(OpenFile, Vec<u8>), PortError> {
        if !self.text.is_empty() {
            self.compress()?;
        }
        Ok((self.file, self.tail))
    }

    /// Stores the rest, which completes the file. The caller says whether all of its items are counted.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if parts that were stored before are gone.
    pub async fn finish(mut self, are_counted: bool) -> Result<ResultFile, PortError> {
        if self.file.gzip && (!self.text.is_empty() || self.is_empty()) {
            self.compress()?;
        }
        if self.file.multipart.is_some() {
            if !self.tail.is_empty() {
                self.put_part().await?;
            }
            self.join_parts().await?;
        } else {
            self.add_to_checksum();
            let bytes = Bytes::from(std::mem::take(&mut self.tail));
            self.to.objects.put(&self.key, &self.file.content_type, bytes, None).await?;
        }
        let OpenFile { name, kind, content_type, bytes, crc, items, .. } = self.file;
        let items = are_counted.then_some(items);
        Ok(ResultFile { name, kind: kind.into(), content_type, bytes, items, crc64_nvme: crc64_text(crc) })
    }

    async fn join_parts(&self) -> Result<(), PortError> {
        let multipart = self.file.multipart.as_deref().unwrap_or_default();
        let joined = match self.to.multipart.parts(&self.key, multipart).await {
            Ok(mut parts) => {
                parts.retain(|part: &UploadedPart| part.number <= self.file.parts);
                let bytes: u64 = parts.iter().map(|part| part.size).sum();
                match (parts.len(), bytes) == (self.file.parts as usize, self.file.bytes) {
                    true => self.to.multipart.complete_multipart(&self.key, multipart, &parts).await,
                    false => Err(PortError::NotFound),
                }
            }
            Err(error) => Err(error),
        };
        match joined {
            // Joined before: by a request whose reply was lost, or by a run that lost its lease.
            Err(PortError::NotFound) if self.to.objects.head(&self.key).await?.size == self.file.bytes => Ok(()),
            joined => joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use rowmill_core::in_memory::InMemoryObjects;

    use super::*;

    fn to(objects: &InMemoryObjects) -> Destination<'_> {
        Destination { objects, multipart: objects, part_bytes: PART_BYTES }
    }

    fn open(gzip: bool) -> OpenFile {
        OpenFile::new("f".into(), ResultKind::Output, "text/csv".into(), gzip)
    }

    /// Writes lines, pausing at some of them; the file as described and its bytes.
    async fn written(gzip: bool, lines: usize, pauses: &[usize]) -> (ResultFile, Vec<u8>) {
        let objects = InMemoryObjects::default();
        let mut writer = ResultWriter::new(to(&objects), "k".into(), open(gzip), Vec::new());
        for line in 0..lines {
            if pauses.contains(&line) {
                let (file, tail) = writer.pause().unwrap();
                writer = ResultWriter::new(to(&objects), "k".into(), file, tail);
            }
            writer.write(format!("{line:0>99}\n").as_bytes()).await.unwrap();
        }
        let file = writer.finish(false).await.unwrap();
        (file, objects.read("k").await.unwrap().to_vec())
    }

    #[tokio::test]
    async fn a_file_of_any_length_is_complete_and_has_the_right_checksum() {
        for lines in [0, 1, 90_000, 200_000] {
            let (file, bytes) = written(false, lines, &[]).await;
            assert_eq!((bytes.len(), file.bytes), (lines * 100, lines as u64 * 100));
            assert!(
                (0..lines).zip(bytes.chunks(100)).all(|(line, found)| found == format!("{line:0>99}\n").as_bytes())
            );
            assert_eq!(file.crc64_nvme, crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &bytes)));
            assert_eq!(written(false, lines, &[0, 5, 50_000, 85_000, 199_999]).await, (file, bytes));
        }
    }

    #[tokio::test]
    async fn a_compressed_file_reads_back() {
        for pauses in [&[][..], &[3, 20_000]] {
            let (file, bytes) = written(true, 30_000, pauses).await;
            let mut text = String::new();
            MultiGzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
            assert_eq!((text.len(), text.lines().count()), (3_000_000, 30_000));
            assert_eq!(file.crc64_nvme, crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &bytes)));
        }
    }

    #[tokio::test]
    async fn a_file_that_another_run_completed_is_accepted() {
        let objects = InMemoryObjects::default();
        let mut first = ResultWriter::new(to(&objects), "k".into(), open(false), Vec::new());
        first.write(&vec![b'x'; PART_BYTES + 7]).await.unwrap();
        let (file, tail) = first.pause().unwrap();
        let resumed = || ResultWriter::new(to(&objects), "k".into(), file.clone(), tail.clone());
        let expected = resumed().finish(true).await.unwrap();
        assert_eq!(resumed().finish(true).await.unwrap(), expected);
        let mut longer = resumed();
        longer.write(b"more").await.unwrap();
        assert!(matches!(longer.finish(true).await, Err(PortError::NotFound)), "it is not this file that is there");
    }

    #[tokio::test]
    async fn a_file_with_a_missing_part_is_not_completed() {
        let objects = InMemoryObjects::default();
        let mut writer = ResultWriter::new(to(&objects), "k".into(), open(false), Vec::new());
        writer.write(&vec![b'x'; PART_BYTES + 7]).await.unwrap();
        let (mut file, tail) = writer.pause().unwrap();
        file.parts += 1;
        file.bytes += 5;
        let resumed = ResultWriter::new(to(&objects), "k".into(), file, tail);
        assert!(matches!(resumed.finish(true).await, Err(PortError::NotFound)));
        assert!(objects.read("k").await.is_err());
    }
}
