//! Fuzzing of the decoders by mutation.
//!
//! A seed decides everything: the decoder, the file of the corpus that is mutated, and the mutations (`mutate`). Each
//! input must end in text or an error ([`check`]): without a panic in Rowmill's own code, without an unbounded amount
//! of memory or time, and with the records that other libraries find. An input that breaks this is saved in the corpus
//! (`tests/data/fuzz`), which a test replays.
//!
//! The command is `cargo run --bin fuzz -- --help`.

pub mod check;
mod mutate;
pub mod worker;

use std::fs;
use std::io;
use std::path::PathBuf;

pub use mutate::mutated;

#[path = "../../../functions/shared/formats/tests/support/memory.rs"]
pub mod memory;

/// The target of the fuzzer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoder {
    Parquet,
    Xlsx,
    /// A zip archive of files.
    Zip,
    Gzip,
    Zstd,
    /// CSV: head, cutter and reader.
    Csv,
    /// JSON lines: cutter and reader.
    Jsonl,
    /// A JSON array.
    Json,
    Charset,
}

impl Decoder {
    pub const ALL: [Self; 9] = [
        Self::Parquet,
        Self::Xlsx,
        Self::Zip,
        Self::Gzip,
        Self::Zstd,
        Self::Csv,
        Self::Jsonl,
        Self::Json,
        Self::Charset,
    ];

    /// Its folder in the corpus.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Xlsx => "xlsx",
            Self::Zip => "zip",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Json => "json",
            Self::Charset => "charset",
        }
    }
}

/// The files that inputs are made of, by decoder.
pub struct Corpus(Vec<(Decoder, Vec<CorpusFile>)>);

/// A file of the corpus: its path and its bytes.
pub type CorpusFile = (PathBuf, Vec<u8>);

impl Corpus {
    pub fn folder() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/fuzz")
    }

    /// Reads the corpus, in the order of the file names.
    ///
    /// # Errors
    /// A file or folder cannot be read.
    pub fn read() -> io::Result<Self> {
        let files_of = |decoder: Decoder| {
            let entries = fs::read_dir(Self::folder().join(decoder.name()))?;
            let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            let files = paths.into_iter().map(|path| fs::read(&path).map(|bytes| (path, bytes)));
            Ok((decoder, files.collect::<io::Result<Vec<_>>>()?))
        };
        Decoder::ALL.into_iter().map(files_of).collect::<io::Result<_>>().map(Self)
    }

    /// The files of a decoder, with their paths.
    pub fn files(&self, decoder: Decoder) -> &[CorpusFile] {
        self.0.iter().find(|(known, _)| *known == decoder).map_or(&[], |(_, files)| files)
    }

    pub fn input(&self, seed: u64) -> (Decoder, Vec<u8>) {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (decoder, files) = &self.0[rng.usize(..self.0.len())];
        let file =
            |rng: &mut fastrand::Rng| files.get(rng.usize(..files.len().max(1))).map(|(_, bytes)| bytes.as_slice());
        let (base, other) = (file(&mut rng).unwrap_or_default(), file(&mut rng).unwrap_or_default());
        (*decoder, mutated(&mut rng, *decoder, base, other))
    }

    /// Saves an input that broke a rule, and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(decoder: Decoder, seed: u64, input: &[u8]) -> io::Result<PathBuf> {
        let path = Self::folder().join(decoder.name()).join(format!("found-{seed}"));
        fs::write(&path, input)?;
        Ok(path)
    }
}
