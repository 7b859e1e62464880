//! Function packages for Lambda: compiled by cargo, zipped as `bootstrap`.

mod build;
mod compile_progress;
mod lambda_image;
mod local;

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::process::ExitStatus;

use bytes::Bytes;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

pub use build::{build, build_for_this_machine, cargo, forget_outer_cargo};
use lambda_image::Unfit;
pub use local::LocalPackages;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// Graviton.
    #[value(name = "arm64")]
    Arm64,
    /// Intel and AMD.
    #[value(name = "x86_64")]
    X86_64,
}

impl Architecture {
    /// The architecture of this machine, if Lambda supports it.
    pub fn of_this_machine() -> Option<Self> {
        Self::named(&std::env::consts::ARCH.replace("aarch64", "arm64"))
    }

    /// The architecture with this name in CloudFormation.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Arm64, Self::X86_64].into_iter().find(|architecture| architecture.name() == name)
    }

    /// Its name in CloudFormation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arm64 => "arm64",
            Self::X86_64 => "x86_64",
        }
    }
}

/// The compiler of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// Plain cargo, for functions that run on this machine.
    Cargo {
        /// The `release` profile instead of `dev`.
        release: bool,
    },
    /// cargo-lambda: links against the C library of Lambda's image and compiles for both architectures.
    CargoLambda(Architecture),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Name of the package and of its binary.
    pub package: String,
    pub path: PathBuf,
}

/// A function package ready to upload.
#[derive(Debug, Clone)]
pub struct Package {
    /// The package it is built from.
    pub name: String,
    /// The zip file for Lambda. It contains one executable file named `bootstrap`. The same executable makes the same
    /// bytes.
    pub zip: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("cannot start cargo")]
    NoCargo(#[source] std::io::Error),
    #[error(
        "cargo-lambda is not installed; deploying to AWS needs it to build for Lambda's image\n\
         install it with one of\n  pip3 install cargo-lambda\n  brew install cargo-lambda/tap/cargo-lambda\n  \
         cargo install --locked cargo-lambda"
    )]
    NoCargoLambda,
    /// The functions do not compile. cargo has printed the reason.
    #[error("the functions do not build ({0}); cargo's messages are above")]
    Build(ExitStatus),
    /// cargo succeeded, but did not report the binary.
    #[error("cargo built no binary `{0}`")]
    Missing(String),
    #[error("{} does not list its functions: {why}", .path.display())]
    Unlisted { path: PathBuf, why: String },
    #[error("cannot copy {} into {}", .path.display(), .folder.display())]
    Uncopied {
        path: PathBuf,
        folder: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{package} would not start on Lambda: {source}")]
    Unfit {
        package: String,
        #[source]
        source: Unfit,
    },
    #[error("cannot read {}", .path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Package {
    /// Zips a built function.
    ///
    /// `compress` makes an upload over a network faster. Within a machine it only costs time.
    pub fn of(binary: &Binary, compress: bool) -> Result<Self, PackageError> {
        let method = if compress { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        Ok(Self { name: binary.package.clone(), zip: zip_of(&binary.read()?, method) })
    }
}

/// The zip file for Lambda with this as its executable.
fn zip_of(executable: &[u8], method: CompressionMethod) -> Bytes {
    let options = SimpleFileOptions::default().compression_method(method).unix_permissions(0o755);
    let options = options.last_modified_time(DateTime::default());
    let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(executable.len() + 1024)));
    let written = zip.start_file("bootstrap", options).and_then(|()| Ok(zip.write_all(executable)?));
    written.and_then(|()| zip.finish()).expect("writing to memory does not fail").into_inner().into()
}

impl Binary {
    fn read(&self) -> Result<Vec<u8>, PackageError> {
        std::fs::read(&self.path).map_err(|source| PackageError::Unreadable { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn package(content: &[u8], compress: bool) -> Bytes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("split-job");
        std::fs::write(&path, content).unwrap();
        Package::of(&Binary { package: "split-job".into(), path }, compress).unwrap().zip
    }

    #[test]
    fn a_package_is_one_executable_bootstrap() {
        for compress in [false, true] {
            let bytes = package(b"\x7fELF...", compress);
            let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
            assert_eq!(zip.len(), 1);
            let mut file = zip.by_index(0).unwrap();
            assert_eq!((&*file.name().unwrap(), file.unix_mode().map(|mode| mode & 0o777)), ("bootstrap", Some(0o755)));
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            assert_eq!(content, b"\x7fELF...");
        }
    }

    #[test]
    fn the_same_executable_makes_the_same_zip() {
        assert_eq!(package(b"one", true), package(b"one", true));
        assert_ne!(package(b"one", true), package(b"two", true));
    }
}
